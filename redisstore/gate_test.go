package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

const (
	gatePasses = 20
	gatePeriod = 200 * time.Millisecond
	gateSlack  = 40 * time.Millisecond
	gateLives  = 3 * time.Second
)

// TestSharedGateProcesses lets 16 waiters in each of 4 processes through one gate, and kills
// one process in the middle. By the clock of this machine, which is the server's,
// no window sees more than the gate lets pass; the others share what is left.
func TestSharedGateProcesses(t *testing.T) {
	if addr := os.Getenv(childAddr); addr != "" {
		passThrough(t, addr)
		return
	}
	addr := redistest.Start(t).Addr
	var mu sync.Mutex
	var all []time.Time
	counts := make([]int, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			seen := passesOf(t, addr, i == 0)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, seen...)
			counts[i] = len(seen)
		})
	}
	wg.Wait()
	slices.SortFunc(all, time.Time.Compare)
	most, first := 0, 0
	for i, at := range all {
		for at.Sub(all[first]) >= gatePeriod {
			first++
		}
		most = max(most, i-first+1)
	}
	if most > gatePasses {
		t.Errorf("%d passes within %s; want at most %d", most, gatePeriod, gatePasses)
	}
	span := all[len(all)-1].Sub(all[0])
	allowed := float64(span) / float64(gatePeriod+gateSlack) * gatePasses
	t.Logf("%d passes in %s, %.2f of what period and slack allow; by process %v", len(all), span, float64(len(all))/allowed, counts)
	if float64(len(all)) < allowed/2 {
		t.Errorf("%d passes in %s; want about %.0f", len(all), span, allowed)
	}
	for _, n := range counts[1:] {
		if n < len(all)/processes/2 {
			t.Errorf("by process %v: unfair", counts)
		}
	}
}

// passThrough is one of the processes: it tells when its waiters passed.
func passThrough(t *testing.T, addr string) {
	s, err := redisstore.Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g, err := headgate.NewSharedGate(s, "crawl", gatePasses, gatePeriod, gateSlack)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), gateLives)
	defer cancel()
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for g.Wait(ctx) == nil {
				fmt.Printf("PASS %d\n", time.Now().UnixMicro())
			}
		})
	}
	wg.Wait()
}

// passesOf runs a process, which is killed half way if killed is set, and reads when its waiters
// passed.
func passesOf(t *testing.T, addr string, killed bool) (seen []time.Time) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this test binary, by itself
	cmd.Env = append(os.Environ(), childAddr+"="+addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	if killed {
		time.AfterFunc(gateLives/2, func() { _ = cmd.Process.Kill() })
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var micros int64
		if text, ok := strings.CutPrefix(lines.Text(), "PASS "); ok {
			if _, err := fmt.Sscan(text, &micros); err == nil {
				seen = append(seen, time.UnixMicro(micros))
			}
		}
	}
	if err := cmd.Wait(); err != nil != killed {
		t.Errorf("process, killed %v: %v", killed, err)
	}
	return seen
}
