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

	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

const (
	permits   = 5
	shortTTL  = 3 * time.Second
	childRole = "HEADGATE_TEST_CHILD_ROLE"
)

// 64 goroutines in 4 processes share five permits. One process is killed while it holds at least
// two. Never more than five are in use, the others go on, and in the end all five are free again.
func TestPermitsOfAKilledProcessExpire(t *testing.T) {
	if os.Getenv(childAddr) != "" {
		permitChild(t, os.Getenv(childRole) == "victim")
		return
	}
	addr := sharedServer(t).Addr
	s := openAt(t, addr)
	l := shortPermits(t, s)
	var wg sync.WaitGroup
	killed := make(chan struct{})
	for i := range processes {
		role := "survivor"
		if i == 0 {
			role = "victim"
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s") //nolint:gosec // this test binary, by itself
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
	if d, err := l.Peek(t.Context(), "shared"); err != nil || d.InUse < 2 {
		t.Errorf("just after a process was killed: %+v, %v; want at least its two", d, err)
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := concurrency.New(s, permits, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for i := range permits {
		if _, err := l.Wait(ctx, "shared"); err != nil {
			t.Fatalf("permit %d after %s: %v", i+1, time.Since(start), err)
		}
	}
	t.Logf("all %d permits were free %s after the kill", permits, time.Since(start))
	if p, d, err := l.Acquire(ctx, "shared"); p != nil || err != nil {
		t.Errorf("one more: %+v, %v", d, err)
	}
}

// readUntil returns the lines up to last, or all lines without it.
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
	s, err := redisstore.Open("redis://" + addr + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func shortPermits(t *testing.T, s *redisstore.Store) *concurrency.Limiter {
	t.Helper()
	c, err := concurrency.New(s, permits, shortTTL)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// permitChild is one of the processes. The victim runs until it is killed, and two of its
// goroutines keep their permits.
func permitChild(t *testing.T, victim bool) {
	l := shortPermits(t, openAt(t, os.Getenv(childAddr)))
	client := redis.NewClient(&redis.Options{Addr: os.Getenv(childAddr)})
	defer client.Close()
	a := audit{client}
	var wg sync.WaitGroup
	var holding atomic.Int64
	for i := range goroutines {
		switch {
		case victim && i < 2:
			wg.Go(func() { a.hold(t, l, &holding) })
		case victim:
			wg.Go(func() {
				for {
					a.use(t, l)
				}
			})
		default:
			wg.Go(func() {
				for range 20 {
					a.use(t, l)
				}
			})
		}
	}
	wg.Wait()
	fmt.Println("DONE")
}

// audit records the permits in use with their earliest expiry. A permit is entered after it was
// acquired and removed before it is released.
type audit struct{ client *redis.Client }

// entered records a permit, and counts those that cannot have expired. The server and the
// processes have one clock.
const entered = `
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
local time = redis.call('TIME')
return redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', time[1] * 1000000 + time[2]), '+inf')`

func (a audit) enter(t *testing.T, p *concurrency.Permit) {
	n, err := a.client.Eval(t.Context(), entered, []string{"audit"}, p.ExpiresAt().UnixMicro(), p.ID().String()).Int()
	if err != nil || n > permits {
		fmt.Println("OVER", n, err)
	}
}

func (a audit) use(t *testing.T, l *concurrency.Limiter) {
	p, err := l.Wait(t.Context(), "shared")
	if err != nil {
		fmt.Println("OVER", err)
		return
	}
	a.enter(t, p)
	a.client.ZRem(t.Context(), "audit", p.ID().String())
	if err := p.Release(t.Context()); err != nil && !errors.Is(err, concurrency.ErrExpired) {
		fmt.Println("OVER", err)
	}
}

// hold never ends.
func (a audit) hold(t *testing.T, l *concurrency.Limiter, holding *atomic.Int64) {
	p, err := l.Wait(t.Context(), "shared")
	if err != nil {
		fmt.Println("OVER", err)
		return
	}
	p.Keep(t.Context())
	a.enter(t, p)
	if holding.Add(1) == 2 {
		fmt.Println("HOLDING")
	}
	for range time.Tick(shortTTL / 8) {
		a.enter(t, p)
	}
}
