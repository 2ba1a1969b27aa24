package main

import (
	"context"
	"io"
)

// interruptible reads from r until ctx ends: a read that is stuck then is left to the end
// of the process. Nothing is read before it is asked for, so that nothing is lost.
type interruptible struct {
	ctx   context.Context //nolint:containedctx // a Reader is given no other
	r     io.Reader
	room  []byte
	reads chan int
	done  chan readResult
	err   error // of the last read
}

type readResult struct {
	n   int
	err error
}

func (i *interruptible) Read(b []byte) (int, error) {
	if i.err == nil {
		i.err = i.ctx.Err()
	}
	if i.err != nil {
		return 0, i.err
	}
	if i.reads == nil {
		i.start()
	}
	i.reads <- min(len(b), len(i.room))
	var r readResult
	select {
	case r = <-i.done:
	case <-i.ctx.Done():
		r.err = i.ctx.Err()
	}
	if i.err = r.err; i.err != nil {
		close(i.reads)
	}
	return copy(b, i.room[:r.n]), r.err
}

func (i *interruptible) start() {
	i.room, i.reads, i.done = make([]byte, longestPart), make(chan int), make(chan readResult, 1)
	go func() {
		for n := range i.reads {
			n, err := i.r.Read(i.room[:n])
			i.done <- readResult{n, err}
		}
	}()
}
