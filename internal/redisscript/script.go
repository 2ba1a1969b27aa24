// Package redisscript runs Lua scripts in Redis so that a script that changes something is sent
// once.
package redisscript

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"reflect"
	"time"

	"github.com/headgate/headgate/internal/await"
	"github.com/redis/go-redis/v9"
)

// Script is the text of a script and its name in Redis. Make one with [New].
type Script struct{ text, sha any } // strings

// New names a script.
func New(text string) Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // Redis names scripts so; nothing is secured by it
	return Script{text: text, sha: hex.EncodeToString(sum[:])}
}

// Run runs the script, and returns the whole numbers that it answers. It sends the script by its
// name, and its text only to a server that does not know it yet. It sends again if some of the keys
// are moving to another server of a Cluster, see [Moving]. Nothing else is sent twice: see once.
// The error is the client's; [Explain] makes it fit to be read.
func (s Script) Run(
	ctx context.Context, client redis.UniversalClient, keys []string, args []any,
) ([]int64, error) {
	return run(ctx, s, client, keys, args, (*redis.Cmd).Int64Slice)
}

// Texts is [Script.Run] for a script that answers texts.
func (s Script) Texts(
	ctx context.Context, client redis.UniversalClient, keys []string, args []any,
) ([]string, error) {
	return run(ctx, s, client, keys, args, (*redis.Cmd).StringSlice)
}

func run[T any](
	ctx context.Context, s Script, client redis.UniversalClient, keys []string, args []any,
	read func(*redis.Cmd) ([]T, error),
) ([]T, error) {
	var answer []T
	err := Await(ctx, func() error {
		cmd, err := s.send(ctx, client, keys, args)
		for pause := FirstPause; pause < LastPause && Moving(err) && ctx.Err() == nil; pause *= 2 {
			time.Sleep(pause)
			cmd, err = s.send(ctx, client, keys, args)
		}
		if err == nil {
			answer, err = read(cmd)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (s Script) send(
	ctx context.Context, client redis.UniversalClient, keys []string, args []any,
) (cmd *redis.Cmd, err error) {
	for _, form := range [][2]any{{"evalsha", s.sha}, {"eval", s.text}} {
		cmd = redis.NewCmd(ctx, append(words(nil, form[0], form[1], keys), args...)...)
		cmd.SetFirstKeyPos(firstKey)
		if err = process(ctx, client, once{cmd}); !unknown(err) {
			break
		}
	}
	return cmd, err
}

// firstKey is the place of the first key among the words of a command.
const firstKey = 3

// words appends the words of a command to those given, up to the arguments.
func words(all []any, name, body any, keys []string) []any {
	all = append(all, name, body, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	return all
}

// IsNil reports whether client is nil, or an interface around a nil pointer, as an unset variable
// of type *redis.Client is.
func IsNil(client redis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Process sends cmd and returns when it is answered or ctx ends. If ctx ends first, the command
// goes on in the background until the client's timeouts, and may be carried out. Nothing is sent
// for a context that has ended.
func Process(ctx context.Context, client redis.UniversalClient, cmd redis.Cmder) error {
	return Await(ctx, func() error {
		return process(ctx, client, cmd)
	})
}

// Await runs call and returns its error, or that of ctx if ctx ends first.
// Then call goes on in the background; it is not begun if ctx has ended before. The clients of
// go-redis need it because they wait for answers whatever the context, or look at its deadline
// alone (ContextTimeoutEnabled).
func Await(ctx context.Context, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var err error
	if await.Do(ctx, func() { err = call() }) {
		return ctx.Err()
	}
	return err
}

// process sends a command. If there is no answer, the client of a Cluster asks for the slots again,
// in the background: by itself it does so only for commands that it may send again, and else goes
// on for a minute to ask a primary that has been replaced.
func process(ctx context.Context, client redis.UniversalClient, cmd redis.Cmder) error {
	err := client.Process(ctx, cmd)
	if err != nil {
		reload(ctx, client, err)
	}
	return err
}

func reload(ctx context.Context, client redis.UniversalClient, err error) {
	if _, answered := errors.AsType[redis.Error](err); answered {
		return
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// Run is one run of a script that answers a string. A Run can be used again, and then reuses its
// memory. The zero Run is ready for [Run.Prepare].
type Run struct {
	script Script
	words  []any
	args   [2]bytes
	reply  []byte
	cmd    *redis.ZeroCopyStringCmd // which the client does not send again, as once
}

// bytes is an argument that is sent as it is. A pointer to it becomes an interface without a copy.
type bytes []byte

// MarshalBinary implements encoding.BinaryMarshaler, for the client.
func (b *bytes) MarshalBinary() ([]byte, error) { return *b, nil }

// String is for hooks of the client that print commands.
func (b *bytes) String() string { return string(*b) }

// Prepare sets what is run: a script on keys, for a reply of a size, with at most two arguments,
// and after them the time, unless that is 0. The caller keeps keys and args as they are until the
// reply is there.
func (r *Run) Prepare(s Script, keys []string, now int64, size int, args ...[]byte) {
	r.script, r.words = s, words(r.words[:0], "evalsha", s.sha, keys)
	for i, arg := range args {
		r.args[i] = arg
		r.words = append(r.words, &r.args[i])
	}
	if now != 0 {
		r.words = append(r.words, now)
	}
	// with the end of the line it is read at once
	if room := size + len("\r\n"); cap(r.reply) < room {
		r.reply = make([]byte, room)
	} else {
		r.reply = r.reply[:room]
	}
	r.build()
}

// Clear drops what a Run that will be used again refers to.
func (r *Run) Clear() {
	clear(r.words)
	r.cmd, r.args = nil, [2]bytes{}
}

func (r *Run) build() {
	r.cmd = redis.NewZeroCopyStringCmd(context.Background(), r.reply, r.words...)
	r.cmd.SetFirstKeyPos(firstKey)
}

// again makes the command with the script's text, if the server does not know its name.
func (r *Run) again() bool {
	if !unknown(r.cmd.Err()) {
		return false
	}
	r.words[0], r.words[1] = "eval", r.script.text
	r.build()
	return true
}

// Loaded reports whether a server did not know the script, so that its text was sent.
func (r *Run) Loaded() bool { return r.words[0] == "eval" }

// Reply returns what the script answered. It is valid until the next Prepare.
func (r *Run) Reply() ([]byte, error) {
	if err := r.cmd.Err(); err != nil {
		return nil, err
	}
	return r.cmd.Bytes(), nil
}

// Send runs all in one trip, or in two if the server does not know a script. Each keeps its own
// error. Send does not look at ctx, which is for hooks of the client.
func Send(ctx context.Context, client redis.UniversalClient, all ...*Run) {
	for len(all) > 0 {
		if len(all) == 1 {
			_ = client.Process(ctx, all[0].cmd)
		} else {
			pipe := client.Pipeline()
			for _, r := range all {
				_ = pipe.Process(ctx, r.cmd)
			}
			_, _ = pipe.Exec(ctx)
		}
		var again []*Run
		for _, r := range all {
			if err := r.cmd.Err(); err != nil {
				reload(ctx, client, err)
			}
			if r.words[0] == "evalsha" && r.again() { //nolint:contextcheck // ctx is for the hooks
				again = append(again, r)
			}
		}
		all = again
	}
}
