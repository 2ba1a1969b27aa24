package bodies

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// All bodies together hold at most so many bytes; small ones are read nevertheless, and what was
// passed on, or closed, makes room.
func TestBodiesTogether(t *testing.T) {
	const size = 1 << 20
	var full []*Reader
	read := func(n int) (*Reader, int, error) {
		r := New(io.NopCloser(bytes.NewReader(make([]byte, n))))
		b, err := io.ReadAll(r)
		return r, len(b), err
	}
	for range 2 * most / size {
		r, _, err := read(size)
		full = append(full, r)
		if err != nil && !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
	}
	if n := held.Load(); n > most || n < most-size {
		t.Errorf("%d bytes are held; want at most %d", n, most)
	}
	if _, n, err := read(free - 512); n != free-512 || err != nil { // 512 to see its end
		t.Errorf("a small body: %d bytes, %v", n, err)
	}
	last := full[len(full)-1]
	last.Pass()
	if rest, err := io.ReadAll(last); err != nil || len(rest) == 0 {
		t.Errorf("the rest: %d bytes, %v", len(rest), err)
	}
	_ = full[0].Close()
	if _, n, err := read(size / 2); n != size/2 || err != nil {
		t.Errorf("after one was closed: %d bytes, %v", n, err)
	}
	for _, r := range full {
		r.Release()
		r.Release()
	}
	if n := held.Load(); n >= size {
		t.Errorf("%d bytes are held in the end", n)
	}
}

type slow struct{}

func (slow) Read(p []byte) (int, error) { time.Sleep(time.Second); return copy(p, "x"), nil }
func (slow) Close() error               { return nil }

// A body that takes long is read no further.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := io.ReadAll(New(slow{}))
		if !errors.Is(err, ErrFull) || len(b) < 10 || len(b) > 12 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
}
