package redisscript

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// What is sent again: only what proves by its answer that nothing ran. That is NOSCRIPT (with the
// text of the script), TRYAGAIN (after a pause), NOTIME (see [Clock]), and in redisstore SLOWPATH;
// the client follows MOVED and ASK by itself. A lost answer is not repeated.

// unknown reports whether err is that the server does not know a script by its name.
func unknown(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// Moving reports whether err is that some keys are moving to another server of a Cluster, so that
// nothing was done. To send again helps, after pauses that double from FirstPause until
// LastPause: a quarter of a second in all.
func Moving(err error) bool { return err != nil && redis.HasErrorPrefix(err, "TRYAGAIN") }

// The pauses for [Moving].
const (
	FirstPause = time.Millisecond
	LastPause  = 256 * time.Millisecond
)

// once is a command that the client must not send again by itself: if the
// connection breaks before the answer is read, the charge may have been made. The
// client still follows MOVED and ASK, whose answers prove that nothing ran.
type once struct{ *redis.Cmd }

// Once makes a command of words. The client sends it only once.
func Once(ctx context.Context, words ...any) redis.Cmder {
	return once{redis.NewCmd(ctx, words...)}
}

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }
