package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/headgate/headgate"
	"github.com/redis/go-redis/v9"
)

// files are the parts of the scripts: each algorithm beside its Go twin in the
// root package, what they share before them, what calls them after.
//
//go:embed *.lua
var files embed.FS

// parts names the file of each algorithm.
var parts = [...]string{
	headgate.AlgorithmTokenBucket:   "tokenbucket",
	headgate.AlgorithmStepped:       "steppedtokenbucket",
	headgate.AlgorithmFixedWindow:   "fixedwindow",
	headgate.AlgorithmSlidingWindow: "slidingwindow",
	headgate.AlgorithmSlidingLog:    "slidinglog",
}

// script is a text that Redis runs, and the name it knows it by.
type script struct{ text, sha string }

// algorithms is a set of algorithms: bit a stands for algorithm a.
type algorithms uint8

func algorithmsOf(rs []headgate.Request) algorithms {
	var set algorithms
	for _, r := range rs {
		set |= 1 << r.Limit.Algorithm()
	}
	return set
}

// scripts holds a script for each set of algorithms that was asked for. One with
// all of them would do as well, but Redis runs a script from its beginning each
// time, and to define an algorithm that is not needed costs time (see ARCHITECTURE.md).
var scripts sync.Map // algorithms -> script

func scriptFor(set algorithms) script {
	if known, ok := scripts.Load(set); ok {
		s, _ := known.(script)
		return s
	}
	var b strings.Builder
	b.WriteString(file("prelude"))
	if set&^(1<<headgate.AlgorithmSlidingLog) != 0 {
		b.WriteString(file("versions"))
	}
	for a, part := range parts {
		if set&(1<<a) != 0 {
			b.WriteString(file(part))
		}
	}
	b.WriteString(file("take"))
	sum := sha1.Sum([]byte(b.String())) //nolint:gosec // Redis names scripts by SHA-1; nothing is secured by it
	s := script{text: b.String(), sha: hex.EncodeToString(sum[:])}
	scripts.Store(set, s)
	return s
}

func file(name string) string {
	body, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	return string(body)
}

// run sends the script by its name, and its text only to a server that does not
// know it yet. Nothing else is sent twice: see once.
func (s script) run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) ([]int64, error) {
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
