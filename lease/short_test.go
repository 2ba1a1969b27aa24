package lease

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shortness is what a fleet of leases costs a limit.
type shortness struct {
	text      string
	processes int
	inStep    bool // all processes ask at the same moments
}

// load lets each process ask for a token every gap, for a time.
func (f *fleet) load(all []*process, gap, length time.Duration, inStep bool) *sync.WaitGroup {
	var wg sync.WaitGroup
	end := time.Now().Add(length)
	for i, p := range all {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for time.Now().Before(end) {
				wg.Go(func() { p.ask(1) })
				if inStep {
					time.Sleep(gap)
				} else {
					time.Sleep(time.Duration(random.ExpFloat64() * float64(gap)))
				}
			}
		})
	}
	return &wg
}

// burst returns how much smaller a burst a hot key finds at worst than without leases, in percent
// of the capacity.
func (s shortness) burst(t *testing.T) (worst int64) {
	synctest.Test(t, func(*testing.T) {
		f := newFleet(s.text)
		var all []*process
		for range s.processes {
			all = append(all, f.process(Options{}, steady))
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		wg := f.load(all, 4*time.Millisecond, time.Second, s.inStep)
		for range 90 {
			time.Sleep(10 * time.Millisecond)
			worst = max(worst, (f.short()*100+f.limit.Capacity()-1)/f.limit.Capacity())
		}
		wg.Wait()
		for _, p := range all {
			p.end()
		}
	})
	return worst
}

// Each process grants 250 requests a second.
func TestABurstOnAHotKeyFindsMostOfTheCapacity(t *testing.T) {
	t.Log("short by, with 1, 4, 16, 32 processes out of step, and 1, 4, 16, 32 in step")
	for _, text := range []string{
		"10000/s", "10000/s burst 40000", "100/10ms burst 10000 stepped", "10000/s fixed-window",
		"10000/d",
	} {
		var line strings.Builder
		line.WriteString(text)
		for _, inStep := range []bool{false, true} {
			for _, n := range []int{1, 4, 16, 32} {
				short := shortness{text, n, inStep}.burst(t)
				if fmt.Fprintf(&line, " | %d%%", short); short > 20 {
					t.Errorf("%s, %d processes, in step %v: short by %d%%", text, n, inStep, short)
				}
			}
		}
		t.Log(line.String())
	}
}

// A process asks for a token each 100 microseconds.
func TestAHotKeyTakesFewCalls(t *testing.T) {
	for _, text := range []string{
		"50000/s burst 100000", "50000/s", "50000/s fixed-window", "100/2ms burst 50000 stepped",
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(text)
			p := f.process(Options{}, steady)
			const asked = 8000
			f.load([]*process{p}, 100*time.Microsecond, asked*100*time.Microsecond, true).Wait()
			calls, prefetches := p.calls.Load(), p.prefetches.Load()
			t.Logf("%s: %d calls for %d requests, of which %d waited",
				text, calls, asked, calls-prefetches)
			if calls > asked/30 || f.granted() != asked {
				t.Errorf("%s: %d calls, %d granted of %d", text, calls, f.granted(), asked)
			}
			p.end()
		})
	}
}
