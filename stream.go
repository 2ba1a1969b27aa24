package headgate

import (
	"context"
	"errors"
	"io"
	"time"
)

// NewReader limits what is read from r to the tokens of w, one for each byte. Any
// number of readers and writers may share one w: those that always have something
// to do, and buffers that hold a chunk, get equal parts. They stand in line for
// chunks of at most 4 KiB, and at most 1/128 of what passes in a period (but at least a
// byte). One alone passes evenly, not the bytes of a burst or of a whole period at once.
//
// A Read reads first, then waits until as much as came may pass, and returns it: what
// is not read costs nothing. If waiting fails, because ctx has ended or w was closed,
// Read returns that error, and what it had read is lost. The end of ctx is noticed at once, and
// that w was closed after at most a second.
//
// Read returns an [InvalidError] if w is nil.
func NewReader(ctx context.Context, r io.Reader, w Waiter) io.Reader {
	return &reader{r: r, turns: stream{ctx: ctx, waiter: w}}
}

// NewWriter limits what is written to wr to the tokens of w, one for each byte, in
// the same chunks as [NewReader]. A Write waits for a chunk's turn before it writes
// it; one that is then written in part is charged in whole. If waiting fails, Write
// returns that error, and how many bytes were written before. It returns an
// [InvalidError] if w is nil.
func NewWriter(ctx context.Context, wr io.Writer, w Waiter) io.Writer {
	return &writer{wr: wr, turns: stream{ctx: ctx, waiter: w}}
}

const (
	chunkMost = 4096
	chunkPart = 128 // what does not fill a chunk passes unused: less than this part

	// A stream that was late may catch up on this part of a period, and on as much as
	// timers are late.
	catchUpPart  = 64
	catchUpLeast = 2 * time.Millisecond

	pauseMost = time.Second // after it, a stream asks again whether its gate is closed
)

var errWritten = errors.New("headgate: a Write returned a count that cannot be")

// stream takes the turns of one reader or writer.
type stream struct {
	ctx    context.Context //nolint:containedctx // Read and Write have no room for one
	waiter Waiter
	due    time.Time // when all that passed would have, evenly
}

// chunk is how many bytes pass together.
func (s *stream) chunk() int {
	most := s.waiter.Most()
	tokens, _ := s.waiter.Rate()
	return int(min(max(most/chunkPart, min(most/2, tokens/chunkPart), 1), chunkMost))
}

// wait waits for the turn of n bytes.
//
// At times there is enough for all, and then nobody stands in line: who is fastest would take
// all there is, period after period. So a stream takes no more than what an even pace
// would give it if it were alone. Two then get half each: while there is enough because
// both go at that pace, and while there is not because they take turns.
func (s *stream) wait(n int) error {
	tokens, period := s.waiter.Rate()
	if tokens < 1 {
		return s.waiter.WaitN(s.ctx, int64(n))
	}
	if err := pause(s.ctx, time.Until(s.due)); err != nil {
		return err
	}
	if err := s.waiter.WaitN(s.ctx, int64(n)); err != nil {
		return err
	}
	if behind := time.Now().Add(-max(period/catchUpPart, catchUpLeast)); s.due.Before(behind) {
		s.due = behind
	}
	even := float64(period) / float64(tokens) * float64(n)
	s.due = s.due.Add(time.Duration(min(max(even, 0), float64(maxPeriod)))) // a foreign Waiter may say anything
	return nil
}

// pause sleeps, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(min(d, pauseMost))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type reader struct {
	r     io.Reader
	turns stream
}

func (r *reader) Read(p []byte) (int, error) {
	if err := missing(r.turns.waiter); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p[:min(len(p), r.turns.chunk())])
	if n <= 0 {
		return n, err
	}
	if err := r.turns.wait(n); err != nil {
		return 0, err
	}
	return n, err
}

type writer struct {
	wr    io.Writer
	turns stream
}

func (w *writer) Write(p []byte) (written int, err error) {
	if err := missing(w.turns.waiter); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return w.wr.Write(p)
	}
	for most := w.turns.chunk(); written < len(p); {
		part := p[written:min(written+most, len(p))]
		if err := w.turns.wait(len(part)); err != nil {
			return written, err
		}
		n, err := w.wr.Write(part)
		if n < 0 || n > len(part) {
			return written, errWritten
		}
		written += n
		if err != nil {
			return written, err
		}
		if n < len(part) {
			return written, io.ErrShortWrite
		}
	}
	return written, nil
}
