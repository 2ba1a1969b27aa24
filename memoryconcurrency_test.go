package headgate

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestFlightMemory: what is not in flight takes no memory, whether it was given back or
// its holder died.
func TestFlightMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemoryConcurrency()
		c := must(NewConcurrency(m, 1, time.Minute))
		flights := make([]*Flight, 20_000)
		for i := range flights {
			flights[i] = begin(t, c, "a"+strconv.Itoa(i))
		}
		for _, f := range flights {
			if err := f.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := m.Keys(); n != 0 {
			t.Errorf("%d keys after all was given back", n)
		}
		for i := range m.shards {
			if m.shards[i].peak > firstSweep {
				t.Fatalf("shard %d keeps a map that was large", i)
			}
		}
		for range 10 { // each time 2,000 holders die
			for i := range 2000 {
				begin(t, c, "b"+strconv.Itoa(i)+time.Now().String())
			}
			if n := m.Keys(); n > 2*2*2000 {
				t.Errorf("%d keys of which 2000 are in flight", n)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestFlightRoom: a key that had many in flight gives their room back.
func TestFlightRoom(t *testing.T) {
	m := NewMemoryConcurrency()
	c := must(NewConcurrency(m, 10_000, time.Hour))
	flights := make([]*Flight, 10_000)
	for i := range flights {
		flights[i] = begin(t, c, "k")
	}
	for _, f := range flights[1:] {
		if err := f.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if room := cap(m.shard("k").keys["k"]); room > 64 {
		t.Errorf("room for %d; want what one needs", room)
	}
}

// TestBytesOfFlights measures what a lease takes in memory.
func TestBytesOfFlights(t *testing.T) {
	for _, shape := range []struct{ keys, each int }{{200_000, 1}, {2000, 100}} {
		m := NewMemoryConcurrency()
		names := make([]string, shape.keys)
		for i := range names {
			names[i] = fmt.Sprintf("user:%08d", i)
		}
		before := heap()
		for i, key := range names {
			for j := range shape.each {
				id := FlightID{1, byte(i), byte(i >> 8), byte(i >> 16), byte(j)}
				must(m.AcquireFlight(t.Context(), FlightRequest{Key: key, ID: id, N: 100, Lease: time.Hour}))
			}
		}
		bytes := float64(heap()-before) / float64(shape.keys*shape.each)
		runtime.KeepAlive(m)
		t.Logf("%d keys, %d in flight each: %.0f bytes a lease, without the key", shape.keys, shape.each, bytes)
		if most := 40 + 130/float64(shape.each); bytes > most {
			t.Errorf("%.0f bytes a lease; want at most %.0f", bytes, most)
		}
	}
}

// heap is what is in use, once what other tests have left is gone: that may take two
// collections.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkFlight acquires and releases, with others in flight.
func BenchmarkFlight(b *testing.B) {
	for _, others := range []int{0, 10, 100, 1000} {
		b.Run(strconv.Itoa(others)+" others", func(b *testing.B) {
			c := must(NewConcurrency(NewMemoryConcurrency(), 10_000, time.Hour))
			for range others {
				must(c.Wait(b.Context(), "k"))
			}
			b.ReportAllocs()
			for b.Loop() {
				f, _, err := c.Acquire(b.Context(), "k")
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Release(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
