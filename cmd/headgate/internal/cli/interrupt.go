package cli

import (
	"context"
	"io"

	"github.com/headgate/headgate/internal/await"
)

// interruptible reads from r until ctx ends. A read that hangs then is left running until the
// process ends. Nothing is read ahead, so nothing is lost.
type interruptible struct {
	ctx  context.Context //nolint:containedctx // a Reader gets no other
	r    io.Reader
	room []byte // not the caller's, which a read that hangs must not touch
	err  error  // of the last read
}

func newInterruptible(ctx context.Context, r io.Reader) *interruptible {
	return &interruptible{ctx: ctx, r: r, room: make([]byte, longestPart)}
}

func (i *interruptible) Read(b []byte) (int, error) {
	if i.err == nil {
		i.err = i.ctx.Err()
	}
	if i.err != nil {
		return 0, i.err
	}
	room := i.room[:min(len(b), len(i.room))]
	var n int
	var err error
	if left := await.Do(i.ctx, func() { n, err = i.r.Read(room) }); left {
		i.err = i.ctx.Err()
		return 0, i.err
	}
	i.err = err
	return copy(b, room[:n]), err
}
