package redisstore_test

import (
	"bufio"
	"context"
	"errors"
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
	places     = 5
	shortLease = 2 * time.Second
	childRole  = "HEADGATE_TEST_CHILD_ROLE"
)

// TestFlightProcesses lets 64 goroutines in 4 processes share five places. One of the
// processes is killed while it holds two or more of them. There are never more
// than five in flight, the others go on, and in the end all five can be had again.
func TestFlightProcesses(t *testing.T) {
	if os.Getenv(childAddr) != "" {
		flightChild(t, os.Getenv(childRole) == "victim")
		return
	}
	addr := redistest.Start(t).Addr
	var wg sync.WaitGroup
	killed := make(chan struct{})
	for i := range processes {
		role := "survivor"
		if i == 0 {
			role = "victim"
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlightProcesses$", "-test.timeout=60s") //nolint:gosec // this test binary, by itself
		cmd.Env = append(os.Environ(), childAddr+"="+addr, childRole+"="+role)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			lines := readUntil(out, map[string]string{"victim": "HOLDING", "survivor": "DONE"}[role])
			if role == "victim" {
				_ = cmd.Process.Kill() // SIGKILL
				close(killed)
			}
			if err := cmd.Wait(); (err == nil) != (role == "survivor") || strings.Contains(lines, "OVER") || lines == "" {
				t.Errorf("%s: %v\n%s", role, err, lines)
			}
		})
	}
	<-killed
	start := time.Now()
	s := openAt(t, addr)
	c := shortConcurrency(t, s)
	if d, err := c.Peek(t.Context(), "shared"); err != nil || d.InFlight < 2 {
		t.Errorf("just after a process was killed: %+v, %v; want what it holds", d, err)
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for i := range places {
		f, err := c.Wait(ctx, "shared")
		if err != nil {
			t.Fatalf("place %d after %s: %v", i+1, time.Since(start), err)
		}
		_, stop := f.Keep(ctx)
		defer stop()
	}
	t.Logf("all %d places again %s after the kill", places, time.Since(start))
	if f, d, err := c.Acquire(ctx, "shared"); f != nil || err != nil {
		t.Errorf("one more: %+v, %v", d, err)
	}
}

// readUntil gives the lines up to one, or all if it does not come.
func readUntil(out interface{ Read(b []byte) (int, error) }, last string) string {
	var all strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if lines.Text() == last {
			break
		}
	}
	return all.String()
}

func openAt(t *testing.T, addr string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func shortConcurrency(t *testing.T, s *redisstore.Store) *headgate.Concurrency {
	t.Helper()
	c, err := headgate.NewConcurrency(s, places, shortLease)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// flightChild is one of the processes. The victim goes on until it is killed, and has two
// goroutines that hold a place all the time.
func flightChild(t *testing.T, victim bool) {
	c := shortConcurrency(t, openAt(t, os.Getenv(childAddr)))
	client := redis.NewClient(&redis.Options{Addr: os.Getenv(childAddr)})
	defer client.Close()
	a := audit{client}
	var wg sync.WaitGroup
	var holding atomic.Int64
	for i := range goroutines {
		switch {
		case victim && i < 2:
			wg.Go(func() { a.hold(t, c, &holding) })
		case victim:
			wg.Go(func() {
				for {
					a.fly(t, c)
				}
			})
		default:
			wg.Go(func() {
				for range 20 {
					a.fly(t, c)
				}
			})
		}
	}
	wg.Wait()
	fmt.Println("DONE")
}

// audit is a book of what is held for certain: each flight enters itself after it has begun,
// with the earliest end of its lease, and goes out before it is given back.
type audit struct{ client *redis.Client }

// entered enters a flight, and counts those whose lease cannot have ended yet. The clocks
// of this machine's processes are one.
const entered = `
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
local time = redis.call('TIME')
return redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', time[1] * 1000000 + time[2]), '+inf')`

func (a audit) enter(t *testing.T, f *headgate.Flight) {
	n, err := a.client.Eval(t.Context(), entered, []string{"audit"}, f.Until().UnixMicro(), f.ID().String()).Int()
	if err != nil || n > places {
		fmt.Println("OVER", n, err)
	}
}

func (a audit) fly(t *testing.T, c *headgate.Concurrency) {
	f, err := c.Wait(t.Context(), "shared")
	if err != nil {
		fmt.Println("OVER", err)
		return
	}
	a.enter(t, f)
	a.client.ZRem(t.Context(), "audit", f.ID().String())
	if err := f.Release(t.Context()); err != nil && !errors.Is(err, headgate.ErrLeaseLost) {
		fmt.Println("OVER", err)
	}
}

// hold never ends.
func (a audit) hold(t *testing.T, c *headgate.Concurrency, holding *atomic.Int64) {
	f, err := c.Wait(t.Context(), "shared")
	if err != nil {
		fmt.Println("OVER", err)
		return
	}
	f.Keep(t.Context())
	a.enter(t, f)
	if holding.Add(1) == 2 {
		fmt.Println("HOLDING")
	}
	for range time.Tick(shortLease / 8) {
		a.enter(t, f)
	}
}
