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
type Script struct{ text, sha string }

// New names a script that returns whole numbers.
func New(text string) Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // Redis names scripts by SHA-1; nothing is secured by it
	return Script{text: text, sha: hex.EncodeToString(sum[:])}
}

// Run sends the script by its name, and its text only to a server that does not
// know it yet, or that has refused because some of the keys are on their way to another
// server of its Cluster (TRYAGAIN). Nothing else is sent twice: see once. The error is the client's;
// [Explain] makes it fit to be read.
func (s Script) Run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) ([]int64, error) {
	numbers, err := s.send(ctx, client, keys, args)
	for pause := time.Millisecond; pause < maxPause && redis.HasErrorPrefix(err, "TRYAGAIN"); pause *= 2 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		numbers, err = s.send(ctx, client, keys, args)
	}
	return numbers, err
}

// maxPause ends the pauses after which a script is sent again that a Cluster has refused
// because its keys are on their way to another server: all of them take a quarter of a second.
const maxPause = 256 * time.Millisecond

func (s Script) send(ctx context.Context, client redis.UniversalClient, keys []string, args []any) ([]int64, error) {
	numbers, err := send(ctx, client, "evalsha", s.sha, keys, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return send(ctx, client, "eval", s.text, keys, args)
	}
	return numbers, err
}

func send(ctx context.Context, client redis.UniversalClient, name, body string, keys []string, args []any) ([]int64, error) {
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, name, body, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	words = append(words, args...)
	cmd := once{redis.NewCmd(ctx, words...)}
	cmd.SetFirstKeyPos(3)
	if err := Process(ctx, client, cmd); err != nil {
		return nil, err
	}
	return cmd.Int64Slice()
}

// once is a command that the client must not send again by itself: if the
// connection breaks before the answer is read, the charge may have been made. The
// client still follows MOVED and ASK, whose answers prove that nothing ran.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }
