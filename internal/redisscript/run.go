package redisscript

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Run is one run of a script that answers a string. A Run can be used again, and then reuses its
// memory. The zero Run is ready for [Run.Prepare].
type Run struct {
	script   Script
	words    []any
	now      int64
	limits   bytes
	requests bytes
	reply    []byte
	cmd      *redis.ZeroCopyStringCmd // which the client does not send again, as once
}

// bytes is an argument that is sent as it is. A pointer to it becomes an interface without a copy.
type bytes []byte

// MarshalBinary implements encoding.BinaryMarshaler, for the client.
func (b *bytes) MarshalBinary() ([]byte, error) { return *b, nil }

// String is for hooks of the client that print commands.
func (b *bytes) String() string { return string(*b) }

// Prepare sets what is run: a script on keys, at a time, with two arguments, for a reply of a size.
// The caller keeps keys, limits and requests as they are until the reply is there.
func (r *Run) Prepare(s Script, keys []string, now int64, limits, requests []byte, size int) {
	r.script, r.now, r.limits, r.requests = s, now, limits, requests
	r.words = append(words(r.words[:0], "evalsha", s.sha, keys), now, &r.limits, &r.requests)
	if room := size + len("\r\n"); cap(r.reply) < room { // with the end of the line it is read at once
		r.reply = make([]byte, room)
	} else {
		r.reply = r.reply[:room]
	}
	r.build()
}

// Clear drops what a Run that will be used again refers to.
func (r *Run) Clear() {
	clear(r.words)
	r.cmd, r.limits, r.requests = nil, nil, nil
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

// Reply returns what the script answered. It is valid until the next Prepare.
func (r *Run) Reply() ([]byte, error) {
	if err := r.cmd.Err(); err != nil {
		return nil, err
	}
	return r.cmd.Bytes(), nil
}

// Send runs r, in a second trip if the server does not know the script. It does not look at ctx,
// which is for hooks of the client.
func (r *Run) Send(ctx context.Context, client redis.UniversalClient) {
	_ = process(ctx, client, r.cmd)
	if r.again() {
		_ = process(ctx, client, r.cmd)
	}
}

// SendAll does so for several, in one trip, or two. Each keeps its own error.
func SendAll(ctx context.Context, client redis.UniversalClient, all []*Run) {
	for len(all) > 0 {
		pipe := client.Pipeline()
		for _, r := range all {
			_ = pipe.Process(ctx, r.cmd)
		}
		_, _ = pipe.Exec(ctx)
		var again []*Run
		for _, r := range all {
			lookAround(ctx, client, r.cmd.Err())
			if r.words[0] == "evalsha" && r.again() {
				again = append(again, r)
			}
		}
		all = again
	}
}
