package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The network is this program, which a test runs again.
func TestMain(m *testing.M) {
	if os.Getenv(delayVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Bytes come in order on each of several connections, and none comes before the delay. The end of
// a connection comes after its bytes.
func TestDelayer(t *testing.T) {
	const delay, pieces = 30 * time.Millisecond, 500
	server, proxy := listen(t), listen(t)
	var echoes sync.WaitGroup
	echoes.Go(func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			echoes.Go(func() { _, _ = io.Copy(c, c); _ = c.Close() })
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	echoes.Go(func() { _ = newDelayer(server.Addr().String(), delay).serve(ctx, proxy) })
	var clients sync.WaitGroup
	for n := range 3 {
		clients.Go(func() {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", proxy.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			var sent []byte
			for i := range pieces {
				sent = append(sent, bytes.Repeat([]byte{byte(n), byte(i)}, i*i%997)...)
			}
			start := time.Now()
			go func() {
				for rest := sent; len(rest) > 0; {
					size := min(len(rest), 1+len(rest)%4001)
					_, _ = c.Write(rest[:size])
					rest = rest[size:]
				}
			}()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(c, got[:1]); err != nil || time.Since(start) < 2*delay {
				t.Errorf("the first byte came back after %v: %v", time.Since(start), err)
			}
			if _, err := io.ReadFull(c, got[1:]); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes came back as others: %v", len(sent), err)
			}
		})
	}
	clients.Wait()
	cancel()
	_ = server.Close()
	echoes.Wait() // each echo ends when the proxy has closed its connection
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The times between arrivals are those of Poisson: their deviation is their mean.
func TestPoisson(t *testing.T) {
	const rate, seconds, keys = 6000, 20, 100
	plan := poisson(1, rate, seconds*time.Second, keys)
	if n := float64(len(plan)); math.Abs(n/(rate*seconds)-1) > 0.01 {
		t.Errorf("%.0f arrivals, want about %d", n, rate*seconds)
	}
	var last, squares float64
	taken := make([]int, keys)
	for _, a := range plan {
		gap := a.at.Seconds() - last
		last = a.at.Seconds()
		if squares += gap * gap; gap < 0 {
			t.Fatalf("an arrival %v before the last", gap)
		}
		taken[a.key]++
	}
	mean := last / float64(len(plan))
	if second := squares / float64(len(plan)) / (2 * mean * mean); math.Abs(second-1) > 0.03 {
		t.Errorf("the second moment is %.3f of that of Poisson", second)
	}
	if few := slices.Min(taken); few < len(plan)/keys*3/4 {
		t.Errorf("a key is taken %d times of %d", few, len(plan))
	}
	if last > seconds || slices.Equal(plan, poisson(2, rate, seconds*time.Second, keys)) {
		t.Errorf("the last arrival is at %.1f s, or two seeds make one plan", last)
	}
}

func TestPercentile(t *testing.T) {
	var sorted []uint32
	for i := range 200 {
		sorted = append(sorted, uint32(i*1000))
	}
	if p50, p99 := percentile(sorted, 50), percentile(sorted, 99); p50 != 100 || p99 != 198 {
		t.Errorf("median %v and p99 %v, want 100 and 198", p50, p99)
	}
	if p := percentile([]uint32{7000}, 99); p != 7 {
		t.Errorf("p99 of one latency of 7 us is %v", p)
	}
}

// crowd answers once a number of calls are under way.
type crowd struct {
	size int64
	full chan struct{}

	calls, now, most atomic.Int64
	fail             error
}

func (c *crowd) Take(ctx context.Context, _ string) (bool, error) {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); {
		most = c.most.Load()
	}
	if c.calls.Add(1) == c.size {
		for range 10_000 { // so that a call too many would come
			runtime.Gosched()
		}
		close(c.full)
	}
	if ctx.Done() == nil {
		return false, errors.New("the context cannot be cancelled")
	}
	<-c.full
	return true, c.fail
}

// An open loop makes calls while earlier ones wait, but not too many at once. A latency counts
// from the planned time.
func TestOpenLoop(t *testing.T) {
	const calls = mostUnderWay + 100
	plan := make([]arrival, calls)
	late := 20 * time.Millisecond
	for i := mostUnderWay / 4; i < calls; i++ {
		plan[i].at = late
	}
	c := &crowd{size: mostUnderWay, full: make(chan struct{})}
	sample, answers, err := runOpenLoop(t.Context(), c, repeatedKey(1, keyOf), plan)
	if err != nil || answers != (Answers{Granted: calls}) {
		t.Fatalf("answers are %+v: %v", answers, err)
	}
	if most := c.most.Load(); most > mostUnderWay {
		t.Errorf("%d calls at once, want at most %d", most, mostUnderWay)
	}
	if least := float64(late.Microseconds()); sample[P99] < least || sample[ClientCPU] <= 0 {
		t.Errorf("measured %v, want a p99 of %v at least", sample, least)
	}
	failing := &crowd{size: 1, full: make(chan struct{}), fail: io.ErrUnexpectedEOF}
	_, _, err = runOpenLoop(t.Context(), failing, repeatedKey(1, keyOf), plan[:10])
	if !errors.Is(err, failing.fail) {
		t.Errorf("error is %v, want that of the contender", err)
	}
}
