package logs

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

// progressAfter is how long a verb runs before its progress is shown.
const progressAfter = 500 * time.Millisecond

// Progress shows how much has been read, if it writes to a terminal.
type Progress struct {
	bar   *progressbar.ProgressBar // nil if not on a terminal
	begun time.Time
	shown bool
	read  atomic.Int64 // bytes, by the goroutine that reads
	then  atomic.Value // what is done after reading, a string
}

// WithProgress runs work in a goroutine and shows its progress. It returns at once when ctx ends,
// even if a read hangs.
func WithProgress[T any](ctx context.Context, p *Progress, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := work()
		done <- result{value, err}
	}()
	defer p.clear()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case r := <-done:
			return r.value, r.err
		case <-ctx.Done():
			return *new(T), context.Cause(ctx)
		case <-ticks.C:
			p.show()
		}
	}
}

// NewProgress shows on w how much of size bytes a verb has read. size is -1 if not known.
func NewProgress(w io.Writer, verb string, size int64) *Progress {
	p := &Progress{begun: time.Now()}
	if command.IsTerminal(w) {
		p.bar = newBar(w, verb, size)
	}
	return p
}

// Read notes how many bytes have been read.
func (p *Progress) Read(bytes int64) { p.read.Store(bytes) }

// show updates what is on the terminal.
func (p *Progress) show() {
	if p.bar == nil || time.Since(p.begun) < progressAfter {
		return
	}
	p.shown = true
	if then, ok := p.then.Load().(string); ok {
		p.bar.Describe(then)
	}
	p.bar.Set64(p.read.Load()) //nolint:errcheck // the work goes on without a bar
}

// clear removes the bar from the terminal.
func (p *Progress) clear() {
	if p.shown {
		p.bar.Clear() //nolint:errcheck // as above
	}
}

// newBar makes a bar of a verb for size bytes.
func newBar(w io.Writer, verb string, size int64) *progressbar.ProgressBar {
	options := []progressbar.Option{
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(verb),
		progressbar.OptionSetWidth(20),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionSetElapsedTime(false), // without words, nobody knows which time it is
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionShowBytes(false),
		progressbar.OptionUseANSICodes(true),
	}
	if size <= 0 {
		size = -1
		options = append(options, progressbar.OptionShowBytes(true), progressbar.OptionShowCount(),
			progressbar.OptionSpinnerType(9))
	}
	return progressbar.NewOptions64(size, options...)
}
