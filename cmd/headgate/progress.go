package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressAfter is how long a replay runs before its progress is shown.
const progressAfter = 500 * time.Millisecond

// progress shows how much has been read, if it writes to a terminal.
type progress struct {
	bar   *progressbar.ProgressBar // nil if not on a terminal
	begun time.Time
	shown bool
}

// newProgress shows how much of size bytes has been read on w. size is -1 if not known.
func newProgress(w io.Writer, size int64) *progress {
	p := &progress{begun: time.Now()}
	if isTerminal(w) {
		p.bar = newBar(w, size, columns(w))
	}
	return p
}

// show updates the number of bytes that have been read.
func (p *progress) show(read int64) {
	if p.bar == nil || time.Since(p.begun) < progressAfter {
		return
	}
	p.shown = true
	p.bar.Set64(read) //nolint:errcheck // a bar that cannot be drawn is not a reason to stop
}

// clear removes the bar from the terminal.
func (p *progress) clear() {
	if p.shown {
		p.bar.Clear() //nolint:errcheck // as above
	}
}

// newBar makes a bar for size bytes, without the parts for which a narrow terminal has no room.
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
		options = append(options, progressbar.OptionShowBytes(true), progressbar.OptionShowCount(),
			progressbar.OptionSpinnerType(9))
	}
	return progressbar.NewOptions64(size, options...)
}
