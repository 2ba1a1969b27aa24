// Package redisscript runs Lua scripts in Redis so that a script which charges
// never charges twice: for redisstore and ratelimiter.
package redisscript

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Script is a text that Redis runs, and the name it knows it by. Make one with
// [New].
type Script struct{ text, sha string }

// New names a script that returns whole numbers.
func New(text string) Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // Redis names scripts by SHA-1; nothing is secured by it
	return Script{text: text, sha: hex.EncodeToString(sum[:])}
}

// Run sends the script by its name, and its text only to a server that does not
// know it yet, or that has refused because some of the keys are on their way to another
// server of its Cluster, see [Moving]. Nothing else is sent twice: see once. The error is the
// client's; [Explain] makes it fit to be read.
func (s Script) Run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) ([]int64, error) {
	calls := []Call{{Script: s, Keys: keys, Args: args}}
	err := Await(ctx, func() error {
		Send(ctx, client, calls)
		for pause := FirstPause; pause < LastPause && Moving(calls[0].cmd.Err()) && ctx.Err() == nil; pause *= 2 {
			time.Sleep(pause)
			Send(ctx, client, calls)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return calls[0].cmd.Int64Slice()
}

// Moving says whether err is that some keys of a call are on their way to another server of a
// Cluster, so that nothing was done. To send again helps, after pauses that double from
// FirstPause until LastPause: a quarter of a second in all.
func Moving(err error) bool { return redis.HasErrorPrefix(err, "TRYAGAIN") }

// The pauses for [Moving].
const (
	FirstPause = time.Millisecond
	LastPause  = 256 * time.Millisecond
)

// Call is a run of a script.
type Call struct {
	Script Script
	Keys   []string
	Args   []any

	cmd once
}

// Text is what a script returned that returns a string, once it has been sent.
func (c *Call) Text() (string, error) { return c.cmd.Text() }

// Send makes calls in one trip, and a second one for those whose script a server did not
// know. It does not look at ctx, but for what a hook of the client may find in it.
func Send(ctx context.Context, client redis.UniversalClient, calls []Call) {
	all := make([]*Call, len(calls))
	for i := range calls {
		all[i] = &calls[i]
		all[i].build(ctx, "evalsha", calls[i].Script.sha)
	}
	process(ctx, client, all)
	all = slices.DeleteFunc(all, func(c *Call) bool { return !redis.HasErrorPrefix(c.cmd.Err(), "NOSCRIPT") })
	for _, c := range all {
		c.build(ctx, "eval", c.Script.text)
	}
	process(ctx, client, all)
}

// build makes the command, which names the script by body.
func (c *Call) build(ctx context.Context, name, body string) {
	words := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	words = append(words, name, body, len(c.Keys))
	for _, key := range c.Keys {
		words = append(words, key)
	}
	c.cmd = once{redis.NewCmd(ctx, append(words, c.Args...)...)}
	c.cmd.SetFirstKeyPos(3)
}

// process sends the commands. Each keeps its own error.
func process(ctx context.Context, client redis.UniversalClient, calls []*Call) {
	switch len(calls) {
	case 0:
	case 1:
		lookAround(ctx, client, client.Process(ctx, calls[0].cmd))
	default:
		pipe := client.Pipeline()
		for _, c := range calls {
			_ = pipe.Process(ctx, c.cmd)
		}
		_, _ = pipe.Exec(ctx)
		for _, c := range calls {
			lookAround(ctx, client, c.cmd.Err())
		}
	}
}

// once is a command that the client must not send again by itself: if the
// connection breaks before the answer is read, the charge may have been made. The
// client still follows MOVED and ASK, whose answers prove that nothing ran.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }
