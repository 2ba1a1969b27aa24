//go:build unix

package redisstore_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// faultLimits are what the processes take from, one key each.
var faultLimits = []string{
	"400/s burst 100", "40/100ms burst 80 stepped",
	"80/200ms fixed-window", "80/200ms sliding-window", "80/200ms sliding-log",
}

// 64 goroutines in 4 processes take 1 to 3 tokens at a time from one key of each algorithm, while
// connections are killed, scripts flushed, and the server is stopped and restarted. No interval
// holds more than the limit, or one more capacity for each restart in it, because a restart loses
// the state. While nothing is broken, the limit is reached.
//
// HEADGATE_SOAK=2m repeats the faults for as long.
func TestNoIntervalIsOverTheLimitThroughFaults(t *testing.T) {
	if os.Getenv(childAddr) != "" {
		faultChild(t)
		return
	}
	server := redistest.Start(t)
	_, port, _ := strings.Cut(server.Addr, ":")
	running := startFaultChildren(t, server.Addr)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })

	var restarts, calm []span
	const rest, calmFor = 200 * time.Millisecond, 800 * time.Millisecond
	soak, _ := time.ParseDuration(os.Getenv("HEADGATE_SOAK"))
	for until := time.Now().Add(soak); ; {
		calm = append(calm, during(func() { time.Sleep(calmFor) }))
		client.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
		time.Sleep(rest)
		client.ScriptFlush(t.Context())
		time.Sleep(rest)
		stopFor(t, server.Pid, rest+rest/2)
		time.Sleep(rest)
		restarts = append(restarts, during(func() {
			server.Stop()
			server = redistest.Start(t, "--port", port)
		}))
		time.Sleep(rest + rest)
		if time.Now().After(until) {
			break
		}
	}
	calm = append(calm, during(func() { time.Sleep(calmFor) }))
	for i, grants := range running.end(t) {
		limit := parse(t, faultLimits[i])
		t.Logf("%s: %d grants, %d restarts", faultLimits[i], len(grants), len(restarts))
		checkIntervals(t, limit, grants, restarts)
		if !slices.ContainsFunc(calm, func(c span) bool { return isReached(limit, grants, c) }) {
			t.Errorf("%s: in no time without faults, half of the limit was granted", limit)
		}
	}
}

// span is a time by the clock of this machine, which is the server's, in microseconds.
type span struct{ from, to int64 }

func during(f func()) (s span) {
	s.from = time.Now().UnixMicro()
	f()
	s.to = time.Now().UnixMicro() + 1
	return s
}

// stopFor stops a process with SIGSTOP, and continues it.
func stopFor(t *testing.T, pid int, d time.Duration) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(d)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// grant was decided at some time of its span: after it was sent and before it was answered.
type grant struct {
	cost int64
	span
}

// checkIntervals checks each interval, by the grants that were certainly decided in it.
func checkIntervals(t *testing.T, l headgate.Limit, grants []grant, restarts []span) {
	t.Helper()
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.to, b.to) })
	for _, first := range grants {
		total := int64(0)
		for _, g := range grants {
			if g.from < first.from {
				continue
			}
			total += g.cost
			if most := bound(l, span{first.from, g.to}, restarts); total > most {
				t.Errorf("%s: %d granted in %d us; want at most %d", l, total, g.to-first.from, most)
				return
			}
		}
	}
	if l.Algorithm() == headgate.AlgorithmSlidingWindow {
		checkSlidingWindow(t, l, grants, restarts)
	}
}

// bound is the most that a limit grants in an interval.
func bound(l headgate.Limit, s span, restarts []span) int64 {
	capacity, period, took := l.Capacity(), l.Period().Microseconds(), s.to-s.from
	extra := capacity * in(s, restarts)
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		return extra + capacity + l.Refill()*took/period
	case headgate.AlgorithmSteppedTokenBucket:
		return extra + capacity + l.Refill()*(took/period+1)
	case headgate.AlgorithmSlidingLog:
		return extra + capacity*(took/period+1)
	default: // windows that the interval touches
		return extra + capacity*(s.to/period-s.from/period+1)
	}
}

// in counts the restarts that s touches.
func in(s span, restarts []span) (n int64) {
	for _, r := range restarts {
		if r.from < s.to && s.from < r.to {
			n++
		}
	}
	return n
}

// checkSlidingWindow checks the definition after each grant of each aligned window.
func checkSlidingWindow(t *testing.T, l headgate.Limit, grants []grant, restarts []span) {
	t.Helper()
	n, w := l.Capacity(), l.Period().Microseconds()
	totals := make(map[int64]int64) // by the end of the window
	for _, g := range grants {
		end := g.from - g.from%w + w
		if g.to >= end {
			continue
		}
		totals[end] += g.cost
		most := n * (1 + in(span{end - 2*w, g.to}, restarts))
		if totals[end-w]*(end-g.to)+totals[end]*w > most*w {
			t.Errorf("%s: %d granted in the last window and %d in this one, %d us before it ends; want at most %d in sum",
				l, totals[end-w], totals[end], end-g.to, most)
			return
		}
	}
}

// isReached reports whether half of the limit was granted in the whole periods of a time without
// faults. A busy machine takes less than all.
func isReached(l headgate.Limit, grants []grant, calm span) bool {
	total, period := int64(0), l.Period().Microseconds()
	for _, g := range grants {
		if g.from >= calm.from && g.to <= calm.to {
			total += g.cost
		}
	}
	whole := calm.to - calm.from - period
	if l.Algorithm() == headgate.AlgorithmTokenBucket {
		whole += period
	}
	return total >= l.Refill()*whole/period/2
}

// faultChildren are the processes, which take until their input ends.
type faultChildren struct {
	inputs  []io.Closer
	outputs []*bufio.Reader
	cmds    []*exec.Cmd
}

func startFaultChildren(t *testing.T, addr string) (all faultChildren) {
	t.Helper()
	for range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this test binary, by itself
		cmd.Env = append(os.Environ(), childAddr+"="+addr)
		cmd.Stderr = os.Stderr
		in, inErr := cmd.StdinPipe()
		out, outErr := cmd.StdoutPipe()
		if inErr != nil || outErr != nil {
			t.Fatal(inErr, outErr)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all.inputs, all.outputs, all.cmds = append(all.inputs, in), append(all.outputs, bufio.NewReader(out)), append(all.cmds, cmd)
	}
	for _, out := range all.outputs {
		if line, err := out.ReadString('\n'); line != "READY\n" {
			t.Fatalf("a process says %q: %v", line, err)
		}
	}
	return all
}

// end ends the processes and returns their grants by limit.
func (all faultChildren) end(t *testing.T) [][]grant {
	t.Helper()
	grants := make([][]grant, len(faultLimits))
	for i, in := range all.inputs {
		_ = in.Close()
		for ended := false; !ended; {
			line, err := all.outputs[i].ReadString('\n')
			var limit int
			var g grant
			if n, _ := fmt.Sscan(line, &limit, &g.cost, &g.from, &g.to); n == 4 {
				grants[limit] = append(grants[limit], g)
			}
			ended = err != nil
		}
		if err := all.cmds[i].Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	return grants
}

// faultChild is one of the processes.
func faultChild(t *testing.T) {
	s, err := redisstore.Open("redis://" + os.Getenv(childAddr) + "?dial_timeout=100ms&read_timeout=1s")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	grants := make([][]grant, len(faultLimits)*goroutines)
	var wg sync.WaitGroup
	for i := range grants {
		limit := parse(t, faultLimits[i/goroutines])
		wg.Go(func() {
			grants[i] = takeUntilDone(ctx, s, limit, rand.New(rand.NewPCG(uint64(i), uint64(os.Getpid()))))
		})
	}
	fmt.Println("READY")
	wg.Wait()
	out := bufio.NewWriter(os.Stdout)
	for i := range grants {
		for _, g := range grants[i] {
			fmt.Fprintln(out, i/goroutines, g.cost, g.from, g.to)
		}
	}
	_ = out.Flush()
}

// takeUntilDone takes from one key, and pauses up to 20 ms after a denial or an error.
func takeUntilDone(ctx context.Context, s *redisstore.Store, l headgate.Limit, random *rand.Rand) (grants []grant) {
	for ctx.Err() == nil {
		r := headgate.Request{Key: "shared", Limit: l, Cost: 1 + random.Int64N(3)}
		var d headgate.Decision
		var err error
		took := during(func() { d, err = s.Take(ctx, r) })
		if err == nil && d.Allowed() {
			grants = append(grants, grant{r.Cost, took})
			continue
		}
		select {
		case <-time.After(time.Duration(random.Int64N(int64(20 * time.Millisecond)))):
		case <-ctx.Done():
		}
	}
	return grants
}
