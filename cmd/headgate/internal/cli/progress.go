package cli

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressAfter is how long a verb runs before its progress is shown.
const progressAfter = 500 * time.Millisecond

// progress shows how much has been read, if it writes to a terminal.
type progress struct {
	bar   *progressbar.ProgressBar // nil if not on a terminal
	begun time.Time
	shown bool
	read  atomic.Int64 // bytes, by the goroutine that reads
	then  atomic.Value // what is done after reading, a string
}

// withProgress runs work in a goroutine and shows its progress. It returns at once when ctx ends,
// even if a read hangs.
func withProgress[T any](ctx context.Context, p *progress, work func() (T, error)) (T, error) {
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

// newProgress shows on w how much of size bytes a verb has read. size is -1 if not known.
func newProgress(w io.Writer, verb string, size int64) *progress {
	p := &progress{begun: time.Now()}
	if isTerminal(w) {
		p.bar = newBar(w, verb, size)
	}
	return p
}

// show updates what is on the terminal.
func (p *progress) show() {
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
func (p *progress) clear() {
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
