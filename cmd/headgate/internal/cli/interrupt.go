package cli

import (
	"context"
	"io"
	"time"
)

// interruptible reads from r until ctx ends. A read that hangs then is left running until the
// process ends. Nothing is read ahead, so nothing is lost.
type interruptible struct {
	ctx  context.Context //nolint:containedctx // a Reader gets no other
	r    io.Reader
	room []byte // not the caller's, which a read that hangs must not touch
	done chan readResult
	err  error // of the last read
}

type readResult struct {
	n   int
	err error
}

func newInterruptible(ctx context.Context, r io.Reader) *interruptible {
	return &interruptible{
		ctx: ctx, r: r, room: make([]byte, longestPart), done: make(chan readResult, 1),
	}
}

func (i *interruptible) Read(b []byte) (int, error) {
	if i.err == nil {
		i.err = i.ctx.Err()
	}
	if i.err != nil {
		return 0, i.err
	}
	room := i.room[:min(len(b), len(i.room))]
	go func() {
		n, err := i.r.Read(room)
		i.done <- readResult{n, err}
	}()
	var r readResult
	select {
	case r = <-i.done:
	case <-i.ctx.Done():
		r.err = i.ctx.Err()
	}
	i.err = r.err
	return copy(b, room[:r.n]), r.err
}

// lastWrite is how long a write may still take when it is interrupted.
const lastWrite = 100 * time.Millisecond

// writeUntil writes b until ctx ends. A write that hangs then, because nothing reads, is left
// running until the process ends.
func writeUntil(ctx context.Context, w io.Writer, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.Write(b)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(lastWrite):
		return ctx.Err()
	}
}
