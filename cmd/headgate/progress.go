package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// patience is how long something may take before its progress is shown.
const patience = 500 * time.Millisecond

// progress shows on a terminal how much has been read. Elsewhere it does nothing.
type progress struct {
	bar   *progressbar.ProgressBar // nil if nobody watches
	begun time.Time
	shown bool
}

// newProgress shows on w how much of size bytes has been read; -1 is not known.
func newProgress(w io.Writer, size int64) *progress {
	p := &progress{begun: time.Now()}
	if isTerminal(w) {
		p.bar = newBar(w, size, columns(w))
	}
	return p
}

// show says that read bytes have been read.
func (p *progress) show(read int64) {
	if p.bar == nil || time.Since(p.begun) < patience {
		return
	}
	p.shown = true
	p.bar.Set64(read) //nolint:errcheck // a bar that cannot be drawn is no reason to stop
}

// clear takes the bar off the terminal.
func (p *progress) clear() {
	if p.shown {
		p.bar.Clear() //nolint:errcheck // as above
	}
}

// newBar is a bar for size bytes that leaves out what a narrow terminal has no
// room for.
func newBar(w io.Writer, size int64, width int) *progressbar.ProgressBar {
	roomy := width == 0 || width >= 70
	options := []progressbar.Option{
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("replay"),
		progressbar.OptionSetWidth(20),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionSetElapsedTime(roomy),
		progressbar.OptionSetPredictTime(roomy),
		progressbar.OptionShowBytes(false),
		progressbar.OptionUseANSICodes(true),
	}
	if size <= 0 {
		size = -1
		options = append(options, progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionSpinnerType(9))
	}
	return progressbar.NewOptions64(size, options...)
}
