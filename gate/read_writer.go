package gate

import (
	"context"
	"io"
	"time"

	"github.com/headgate/headgate/internal/await"
)

// NewReader returns a reader that reads from r at the pace of w, one token for each byte.
//
// Readers and writers that share one w get equal parts of its pace, if each always has bytes to
// pass and a buffer for a chunk. A chunk is at most 4 KiB, and at most 1/128 of what passes in a
// period. A single stream is spread evenly over the period instead of coming in bursts.
//
// Read reads first and then waits, so it takes tokens only for bytes that it has read. If waiting
// fails, because ctx has ended or w was closed, Read returns that error, and the bytes that it has
// read are lost. It returns a [headgate.InvalidError] if w is nil.
func NewReader(ctx context.Context, r io.Reader, w Waiter) io.Reader {
	return &reader{r: r, pace: stream{ctx: ctx, waiter: w}}
}

// NewWriter returns a writer that writes to wr at the pace of w, one token for each byte.
//
// It writes in chunks of the size that [NewReader] describes, and waits before each. A chunk that
// is written only in part is charged in full. If waiting fails, Write returns that error and how
// many bytes it has written. It returns a [headgate.InvalidError] if w is nil.
func NewWriter(ctx context.Context, wr io.Writer, w Waiter) io.Writer {
	return &writer{wr: wr, pace: stream{ctx: ctx, waiter: w}}
}

const (
	maxChunk  = 4096
	chunkPart = 128 // what does not fill a chunk passes unused: less than this part

	// A stream that was late may catch up on this part of a period, and on as much as
	// timers are late.
	catchUpPart = 64
	minCatchUp  = 2 * time.Millisecond

	maxPause = time.Second // after it, a stream looks again whether its gate is closed
)

// stream waits for one reader or writer.
type stream struct {
	ctx    context.Context //nolint:containedctx // Read and Write have no room for one
	waiter Waiter
	due    time.Time // when all that has passed would have passed at an even pace
}

// chunk is how many bytes pass together.
func (s *stream) chunk() int {
	burst := s.waiter.Burst()
	tokens, _ := s.waiter.Rate()
	return int(min(max(burst/chunkPart, min(burst/2, tokens/chunkPart), 1), maxChunk))
}

// wait waits until n bytes may pass.
//
// While there is enough for all, no stream waits at the gate, and the fastest would take all
// there is, period after period. So a stream takes no more than an even pace would give it if
// it were alone. Two then get half each: while there is enough because both keep that pace,
// and while there is not because the gate serves them in order.
func (s *stream) wait(n int) error {
	tokens, period := s.waiter.Rate()
	if tokens < 1 {
		return s.waiter.WaitN(s.ctx, int64(n))
	}
	if err := await.Sleep(s.ctx, min(time.Until(s.due), maxPause)); err != nil {
		return err
	}
	if err := s.waiter.WaitN(s.ctx, int64(n)); err != nil {
		return err
	}
	if behind := time.Now().Add(-max(period/catchUpPart, minCatchUp)); s.due.Before(behind) {
		s.due = behind
	}
	even := float64(period) / float64(tokens) * float64(n)
	s.due = s.due.Add(time.Duration(min(max(even, 0), float64(maxPeriod)))) // of any Waiter
	return nil
}

type reader struct {
	r    io.Reader
	pace stream
}

func (r *reader) Read(p []byte) (int, error) {
	if err := missing(r.pace.waiter); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p[:min(len(p), r.pace.chunk())])
	if n <= 0 {
		return n, err
	}
	if err := r.pace.wait(n); err != nil {
		return 0, err
	}
	return n, err
}

type writer struct {
	wr   io.Writer
	pace stream
}

func (w *writer) Write(p []byte) (written int, err error) {
	if err := missing(w.pace.waiter); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return w.wr.Write(p)
	}
	for chunk := w.pace.chunk(); written < len(p); {
		part := p[written:min(written+chunk, len(p))]
		if err := w.pace.wait(len(part)); err != nil {
			return written, err
		}
		n, err := w.wr.Write(part)
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
