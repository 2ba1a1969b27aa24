// Package redisscript runs Lua scripts in Redis so that a script which charges
// never charges twice: for redisstore and ratelimiter.
package redisscript

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"time"

	"github.com/redis/go-redis/v9"
)

// Script is a text that Redis runs, and the name it knows it by. Make one with
// [New].
type Script struct{ text, sha any } // strings

// New names a script that returns whole numbers.
func New(text string) Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // Redis names scripts by SHA-1; nothing is secured by it
	return Script{text: text, sha: hex.EncodeToString(sum[:])}
}

// Run runs the script, and returns the whole numbers that it answers. It sends the script by its
// name, and its text only to a server that does not know it yet. It sends again if some of the keys
// are moving to another server of a Cluster, see [Moving]. Nothing else is sent twice: see once.
// The error is the client's; [Explain] makes it fit to be read.
func (s Script) Run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) ([]int64, error) {
	var numbers []int64
	err := Await(ctx, func() (err error) {
		numbers, err = s.run(ctx, client, keys, args)
		for pause := FirstPause; pause < LastPause && Moving(err) && ctx.Err() == nil; pause *= 2 {
			time.Sleep(pause)
			numbers, err = s.run(ctx, client, keys, args)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return numbers, nil
}

func (s Script) run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) ([]int64, error) {
	words := append(words(nil, "evalsha", s.sha, keys), args...)
	cmd := once{redis.NewCmd(ctx, words...)}
	cmd.SetFirstKeyPos(firstKey)
	err := process(ctx, client, cmd)
	if unknown(err) {
		words[0], words[1] = "eval", s.text
		cmd = once{redis.NewCmd(ctx, words...)}
		cmd.SetFirstKeyPos(firstKey)
		err = process(ctx, client, cmd)
	}
	if err != nil {
		return nil, err
	}
	return cmd.Int64Slice()
}

// firstKey is the place of the first key among the words of a command.
const firstKey = 3

// words appends the words of a command to those given, up to the arguments.
func words(all []any, name string, body any, keys []string) []any {
	all = append(all, name, body, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	return all
}

// unknown reports whether err is that the server does not know a script by its name.
func unknown(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// process sends a command. A Cluster is asked for its slots again if there was no answer.
func process(ctx context.Context, client redis.UniversalClient, cmd redis.Cmder) error {
	err := client.Process(ctx, cmd)
	lookAround(ctx, client, err)
	return err
}

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

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }
