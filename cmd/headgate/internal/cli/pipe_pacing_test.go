package cli

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
	"github.com/headgate/headgate/internal/redistest"
)

// slow is an output to which each write takes a while.
type slow struct {
	clocked

	takes time.Duration
}

func (s *slow) Write(b []byte) (int, error) {
	n, err := s.clocked.Write(b)
	time.Sleep(s.takes)
	return n, err
}

// A line counts from when it has been written, of which the beginning is noted here.
func TestPipeToSlowReader(t *testing.T) {
	for limit, want := range map[string][]float64{
		"2/s":                 {0, .3, 1.3, 1.6, 2.6},
		"1/s burst 1":         {0, 1.3, 2.6, 3.9, 5.2},
		"2/s burst 2":         {0, .3, .8, 1.3, 1.8}, // each .5 s, from the end of the second
		"2/s fixed-window":    {0, .3, 1, 1.3, 2},
		"1/s -l 2/4s burst 2": {0, 1.3, 2.6, 4.3, 6.3},
	} {
		synctest.Test(t, func(t *testing.T) {
			out := &slow{clocked{start: time.Now()}, 300 * time.Millisecond}
			limits := strings.Split(limit, " -l ")
			args := limits[:1]
			for _, l := range limits[1:] {
				args = append(args, "-l", l)
			}
			if code, stderr := pipes(t.Context(), strings.NewReader("a\nb\nc\nd\ne\n"), out, args...); code != 0 {
				t.Error(code, stderr)
			}
			if !slices.Equal(out.times, want) {
				t.Errorf("%s: %v; want %v", limit, out.times, want)
			}
		})
	}
}

// seen is an output that is held up at random, and notes when each write began and ended.
type seen struct{ began, ended []time.Time }

func (s *seen) Write(b []byte) (int, error) {
	s.began = append(s.began, time.Now())
	if rand.IntN(3) == 0 {
		time.Sleep(time.Duration(rand.Int64N(int64(8 * time.Millisecond))))
	}
	s.ended = append(s.ended, time.Now())
	return len(b), nil
}

// On a real clock no window is too short, though the machine is busy: between the end of
// one write and the beginning of the n-th after it there is the whole period.
func TestPipeIsExact(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 3 {
		go func() {
			for busy := 0; ctx.Err() == nil; busy++ {
				_ = busy
			}
		}()
	}
	var all sync.WaitGroup
	for _, args := range [][]string{{"5/50ms"}, {"5/50ms", "-l", "100/s burst 100"}, {"9/90ms", "-l", "5/50ms"}} {
		all.Go(func() {
			out := new(seen)
			if code, stderr := pipes(t.Context(), strings.NewReader(strings.Repeat("a\n", 20)), out, args...); code != 0 {
				t.Error(code, stderr)
			}
			for i := 5; i < len(out.began); i++ {
				if gap := out.began[i].Sub(out.ended[i-5]); gap < 50*time.Millisecond {
					t.Errorf("%s: line %d comes %s after line %d", args, i, gap, i-5)
				}
			}
		})
	}
	all.Wait()
}

// Pipes at a Redis share a limit with each other and with programs, which give it by its text.
func TestPipesShareLimit(t *testing.T) {
	t.Parallel()
	s := openRedis(t)
	begun := time.Now()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			code, stderr := pipes(t.Context(), strings.NewReader(strings.Repeat("a\n", 10)), io.Discard, "5/100ms", "--key", "k", "--store", s.Name)
			if code != 0 {
				t.Error(code, stderr)
			}
		})
	}
	all.Wait()
	l, err := headgate.NewLimiter(s, headgate.SlidingLog(5, 100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 400*time.Millisecond {
		t.Errorf("21 passed in %s; want at least 400 ms", took)
	}
}

func openRedis(t *testing.T) *storeurl.Store {
	t.Helper()
	s, err := storeurl.Open("redis://" + redistest.Start(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A store that fails midway: the line that says so tells what is lost.
func TestPipeLosesStore(t *testing.T) {
	for _, limit := range []string{"1000000/s", "1000/s"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			in, w := io.Pipe()
			r, out := io.Pipe()
			go func() {
				defer w.Close()
				_, _ = io.WriteString(w, "a\n")
				_, _ = bufio.NewReader(r).ReadString('\n')
				server.Stop()
				_, _ = io.WriteString(w, "b\nc\nd")
			}()
			code, stderr := pipes(t.Context(), in, out, limit, "--store", "redis://"+server.Addr)
			if code != command.ExitFailed || !strings.HasPrefix(stderr, "headgate: redis://") || !strings.HasSuffix(stderr, "; 3 lines had been read, but not written\n") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d, %q", code, stderr)
			}
		})
	}
}

// stuck is an output that is not read until a moment.
type stuck struct{ until <-chan struct{} }

func (s stuck) Write(b []byte) (int, error) {
	<-s.until
	return len(b), nil
}

// An interrupt ends a pipe whose reader has stalled, even if the error goes there, too.
func TestPipeStalled(t *testing.T) {
	for args, want := range map[string]string{
		"9/h":               "3 lines had been read, but not written",
		"9/h --bytes":       "at most 1 byte had been read, but not written",
		"1000000/s --bytes": "at most 6 bytes had been read, but not written",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			stalled := make(chan struct{})
			time.AfterFunc(time.Minute, interrupt)
			begun := time.Now()
			code, stderr := pipes(ctx, strings.NewReader("a\nb\nc\n"), stuck{stalled}, strings.Fields(args)...)
			if code != command.ExitInterrupted || stderr != "headgate: interrupted; "+want+"\n" {
				t.Errorf("%s: exit %d, %s", args, code, stderr)
			}
			if took := time.Since(begun); took > time.Minute+time.Second {
				t.Errorf("%s: it took %s", args, took)
			}
			code = exec(ctx, []string{"pipe", "-l", "9/h"}, strings.NewReader("a\n"), stuck{stalled}, stuck{stalled})
			if code != command.ExitInterrupted {
				t.Errorf("exit %d", code)
			}
			close(stalled)
		})
	}
}
