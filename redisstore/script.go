package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

// files are the parts of the one script: each algorithm beside its Go twin in
// the root package, what they share before them, what calls them after.
//
//go:embed *.lua
var files embed.FS

var parts = []string{
	"prelude", "tokenbucket", "steppedtokenbucket", "fixedwindow", "slidingwindow", "slidinglog", "take",
}

// script is the text that Redis runs, and scriptSHA the name it knows it by.
var script, scriptSHA = join()

func join() (text, sha string) {
	var b strings.Builder
	for _, part := range parts {
		body, err := files.ReadFile(part + ".lua")
		if err != nil {
			panic(err) // cannot happen: the file is embedded
		}
		b.Write(body)
	}
	sum := sha1.Sum([]byte(b.String())) //nolint:gosec // Redis names scripts by SHA-1; nothing is secured by it
	return b.String(), hex.EncodeToString(sum[:])
}

// run sends the script by its name, and its text only to a server that does not
// know it yet. Nothing else is sent twice: see once.
func run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) ([]int64, error) {
	numbers, err := send(ctx, client, "evalsha", scriptSHA, keys, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return send(ctx, client, "eval", script, keys, args)
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
	if err := client.Process(ctx, cmd); err != nil {
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
