package gate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// endless reads as many bytes as it is asked for.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Two who share 1 MB/s get half each, whatever their buffers, and use it all.
func TestReadersShareABandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, seconds = 1_000_000, 5
		g := must(New(rate, time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		var got [2]int64
		var wg sync.WaitGroup
		for i, buffer := range []int{4 << 10, 512 << 10} {
			wg.Go(func() {
				to := struct{ io.Writer }{io.Discard}
				got[i], _ = io.CopyBuffer(to, NewReader(ctx, endless{}, g), make([]byte, buffer))
			})
		}
		wg.Wait()
		sum := got[0] + got[1]
		if sum < rate*seconds*99/100 || sum > rate*(seconds+1) {
			t.Errorf("%d bytes in %d s", sum, seconds)
		}
		if 100*got[0] < 95*sum/2 || 100*got[1] < 95*sum/2 {
			t.Errorf("%d and %d bytes; want half each within 5%%", got[0], got[1])
		}
	})
}

// A limiter shares its bandwidth as well, whatever its algorithm, and with those of other
// processes that share its store.
func TestReadersShareALimiter(t *testing.T) {
	for _, text := range []string{"1000000/s", "1000000/s burst 10000", "1000000/s stepped",
		"1000000/s fixed-window", "100000/100ms fixed-window", "100000/100ms sliding-window"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rate, seconds = 1_000_000, 5
				m := headgate.NewMemorySize(100)
				ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
				defer cancel()
				var got [2]int64
				var wg sync.WaitGroup
				for i := range got {
					l := must(headgate.NewLimiter(m, must(headgate.ParseLimit(text))))
					wg.Go(func() {
						to := struct{ io.Writer }{io.Discard}
						got[i], _ = io.CopyBuffer(
							to, NewReader(ctx, endless{}, NewKeyWaiter(l, "all")),
							make([]byte, 64<<10))
					})
				}
				wg.Wait()
				sum := got[0] + got[1]
				if sum < rate*seconds*95/100 || sum > rate*(seconds+1) ||
					100*got[0] < 95*sum/2 || 100*got[1] < 95*sum/2 {
					t.Errorf("%d and %d bytes in %d s", got[0], got[1], seconds)
				}
			})
		})
	}
}

// Of several limits, the slowest paces a stream, and the smallest bounds what passes at once.
func TestAKeyWaiterOfSeveralLimits(t *testing.T) {
	w := NewKeyWaiter(must(headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(20),
		headgate.PerMinute(600), headgate.PerSecond(30).Burst(10))), "k")
	if n, period := w.Rate(); n != 600 || period != time.Minute || w.Burst() != 10 {
		t.Errorf("%d in %s, burst %d", n, period, w.Burst())
	}
}

// One alone has the whole bandwidth, and evenly.
func TestAReaderAloneReadsEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(New(1_000_000, time.Second))
		r := NewReader(t.Context(), endless{}, g)
		start := time.Now()
		for read, buffer := 0, make([]byte, 4096); time.Since(start) < 5*time.Second; {
			read += must(r.Read(buffer))
			if even := int(time.Since(start) / time.Microsecond); read < even-4096 ||
				read > even+1_000_000/32 {
				t.Fatalf("%d bytes after %s", read, time.Since(start))
			}
		}
	})
}

// What was not read costs nothing, and nothing costs nothing.
func TestReaderChargesWhatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(New(1280, time.Second)) // chunks of 10
		r := NewReader(t.Context(),
			iotest.DataErrReader(iotest.OneByteReader(strings.NewReader("hello"))), g)
		text := must(io.ReadAll(r))
		if string(text) != "hello" || !g.passesAtOnce(1275) || tries(t, g, 0) {
			t.Errorf("%q; want hello for 5 tokens", text)
		}
		start := time.Now()
		for range 3 {
			if n, err := r.Read(nil); n != 0 || err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("no bytes: %d, %v", n, err)
			}
			if n, err := NewWriter(t.Context(), io.Discard, g).Write(nil); n != 0 || err != nil {
				t.Errorf("no bytes: %d, %v", n, err)
			}
		}
		if time.Since(start) != 0 {
			t.Error("reading or writing nothing waits")
		}
	})
}

// passesAtOnce takes n tokens, if they are there.
func (g *Gate) passesAtOnce(n int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	return g.WaitN(ctx, n) == nil
}

// foreign is a Waiter that lets all pass and tells a rate that cannot be.
type foreign struct {
	most, tokens int64
	period       time.Duration
}

func (foreign) WaitN(context.Context, int64) error   { return nil }
func (f foreign) Burst() int64                       { return f.most }
func (f foreign) Rate() (n int64, per time.Duration) { return f.tokens, f.period }

// Whatever a Waiter says of itself, a stream goes on, after a second at the latest.
func TestStreamsBearForeignWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []foreign{
			{1 << 20, 1, math.MaxInt64},
			{1 << 20, 1, math.MinInt64},
			{-1, -1, -1},
			{0, 0, 0},
			{math.MaxInt64, math.MaxInt64, 1},
		} {
			start := time.Now()
			if n, err := NewWriter(t.Context(), io.Discard, f).Write(
				make([]byte, 100)); n != 100 || err != nil {
				t.Errorf("%+v: wrote %d, %v", f, n, err)
			}
			if took := time.Since(start); took > 100*time.Second {
				t.Errorf("%+v: 100 bytes took %s", f, took)
			}
		}
	})
}

func TestStreamsEndWithTheirGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(New(256, time.Second)) // chunks of 2
		time.AfterFunc(time.Second, func() { _ = g.Close() })
		var to bytes.Buffer
		n, err := NewWriter(t.Context(), &to, g).Write(make([]byte, 1000))
		if n < 250 || n > 264 || to.Len() != n || !errors.Is(err, ErrClosed) {
			t.Errorf("wrote %d, %d arrived, %v; want about 256 and ErrClosed", n, to.Len(), err)
		}
		if n, err := NewReader(t.Context(), endless{}, g).Read(make([]byte, 10)); n != 0 ||
			!errors.Is(err, ErrClosed) {
			t.Errorf("read %d, %v; want ErrClosed", n, err)
		}
	})
}

// faulty writes a part of what it is given, and says so in this way.
type faulty struct {
	n   int
	err error
}

func (f faulty) Write([]byte) (int, error) { return f.n, f.err }

func TestWriterTellsShortWrites(t *testing.T) {
	g := must(New(1<<40, time.Second))
	for _, c := range []struct {
		wr   io.Writer
		n    int
		want error
	}{
		{faulty{3, nil}, 3, io.ErrShortWrite},
		{faulty{3, io.ErrClosedPipe}, 3, io.ErrClosedPipe},
		{faulty{0, io.ErrNoProgress}, 0, io.ErrNoProgress},
		{faulty{4096, nil}, 8192, nil},
	} {
		if n, err := NewWriter(t.Context(), c.wr, g).Write(make([]byte, 8192)); n != c.n ||
			!errors.Is(err, c.want) {
			t.Errorf("%v: wrote %d, %v; want %d, %v", c.wr, n, err, c.n, c.want)
		}
	}
}
