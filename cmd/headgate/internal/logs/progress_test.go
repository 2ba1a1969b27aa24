package logs

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// drawing collects what a bar draws, in a goroutine of its own, too.
type drawing struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *drawing) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *drawing) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// A bar fits its terminal, and nothing is drawn without a terminal.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		size  int64
		width int
	}{{100, 40}, {-1, 40}, {0, 40}} {
		var w drawing
		bar := newBar(&w, "replay", c.size)
		if err := bar.Set64(50); err != nil {
			t.Error(err)
		}
		frames := w.String()
		for frame := range strings.SplitSeq(frames, "\r") {
			if frame = strings.ReplaceAll(frame, "\x1b[2K", ""); len(frame) > c.width || strings.Contains(frame, "\n") {
				t.Errorf("size %d in %d columns: %q", c.size, c.width, frame)
			}
		}
		if frames == "" || strings.Contains(frames, "[0s") {
			t.Errorf("size %d in %d columns: %q", c.size, c.width, frames)
		}
	}
	var w bytes.Buffer
	p := NewProgress(&w, "replay", 100)
	p.begun = time.Time{}
	p.read.Store(50)
	p.show()
	p.clear()
	if w.Len() > 0 {
		t.Errorf("drawn without a terminal: %q", w.String())
	}
}
