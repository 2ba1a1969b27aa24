package redisstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

const (
	processes  = 4
	goroutines = 16
)

// TestProcesses lets 64 goroutines in 4 processes take from one key at one instant:
// they are granted exactly what the limit says.
func TestProcesses(t *testing.T) {
	if os.Getenv(childAddr) != "" {
		child(t, func(s headgate.Store, r headgate.Request, granted *atomic.Int64) {
			r.At = time.Unix(1<<32, 0)
			for range 50 {
				count(t, s, r, granted)
			}
		})
		return
	}
	for _, text := range []string{"1000/h", "1000/h stepped", "1000/h fixed-window", "1000/h sliding-window", "1000/h sliding-log"} {
		t.Run(text, func(t *testing.T) {
			if granted, _ := children(t, redistest.Start(t).Addr, text); granted != 1000 {
				t.Errorf("%d of 3200 granted; want 1000", granted)
			}
		})
	}
}

// TestProcessesLive lets them take for a second. By the server's clock they never
// get more than the bound, and they come near what a second is worth.
func TestProcessesLive(t *testing.T) {
	if os.Getenv(childAddr) != "" {
		child(t, func(s headgate.Store, r headgate.Request, granted *atomic.Int64) {
			for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
				count(t, s, r, granted)
			}
		})
		return
	}
	for _, c := range []struct {
		limit string
		least func(seconds float64) int64
		most  func(seconds float64) int64
	}{
		{"400/s burst 100", func(s float64) int64 { return 100 + int64(400*s) }, func(s float64) int64 { return 100 + int64(400*s) + 1 }},
		{"100/250ms stepped", func(s float64) int64 { return 100 * int64(s*4) }, func(s float64) int64 { return 100 * (int64(s*4) + 1) }},
		{"100/250ms fixed-window", func(s float64) int64 { return 100 * int64(s*4) }, func(s float64) int64 { return 100 * (int64(s*4) + 2) }},
		{"100/250ms sliding-window", func(s float64) int64 { return 60 * int64(s*4) }, func(s float64) int64 { return 100 * (int64(s*4) + 2) }},
		{"100/250ms sliding-log", func(s float64) int64 { return 100 * int64(s*4) }, func(s float64) int64 { return 100 * (int64(s*4) + 1) }},
	} {
		t.Run(c.limit, func(t *testing.T) {
			server := redistest.Start(t)
			client := redis.NewClient(&redis.Options{Addr: server.Addr})
			defer client.Close()
			start := client.Time(t.Context()).Val()
			granted, last := children(t, server.Addr, c.limit)
			seconds := last.Sub(start).Seconds()
			t.Logf("%d granted in %.3f s by the server's clock", granted, seconds)
			if most := c.most(seconds); granted > most {
				t.Errorf("%d granted in %.3f s; want at most %d", granted, seconds, most)
			}
			if least := c.least(0.75); granted < least {
				t.Errorf("%d granted in more than a second; want at least %d", granted, least)
			}
		})
	}
}

const (
	childAddr  = "HEADGATE_TEST_CHILD_ADDR"
	childLimit = "HEADGATE_TEST_CHILD_LIMIT"
)

// children runs the current test in other processes, and gives what they were
// granted in all and the server's time after the last of it.
func children(t *testing.T, addr, limit string) (granted int64, last time.Time) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	var wg sync.WaitGroup
	var all atomic.Int64
	for range processes {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$") //nolint:gosec // this test binary, by itself
			cmd.Env = append(os.Environ(), childAddr+"="+addr, childLimit+"="+limit)
			out, err := cmd.CombinedOutput()
			var n int64
			if _, scanErr := fmt.Sscanf(string(out), "GRANTED %d", &n); err != nil || scanErr != nil {
				t.Errorf("process: %v\n%s", err, out)
			}
			all.Add(n)
		})
	}
	wg.Wait()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	return all.Load(), client.Time(t.Context()).Val()
}

// child is one of the processes: its goroutines all do work, on one key.
func child(t *testing.T, work func(s headgate.Store, r headgate.Request, granted *atomic.Int64)) {
	s, err := redisstore.Open("redis://" + os.Getenv(childAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := headgate.Request{Key: "shared", Limit: parse(t, os.Getenv(childLimit)), Cost: 1}
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() { work(s, r, &granted) })
	}
	wg.Wait()
	fmt.Printf("GRANTED %d\n", granted.Load())
}

func count(t *testing.T, s headgate.Store, r headgate.Request, granted *atomic.Int64) {
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Error(err)
	}
	if d.Allowed() {
		granted.Add(1)
	}
}
