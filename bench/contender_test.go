package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/internal/redistest"
)

// Every adapter grants exactly N takes of a limit of N: to one caller, to many at once, and to
// each key alone.
func TestContendersGrantExactlyN(t *testing.T) {
	const n = 25
	names := []string{"alone:1", "alone:2", "at once"}
	for _, e := range memoryField() {
		if !e.NoLimit {
			t.Run("memory/"+e.Name, func(t *testing.T) { grantsExactly(t, e, "", names, n) })
		}
	}
	clients := []string{"10.0.0.1:1", "[2001:db8::1]:1", "10.0.0.2:1"}
	for _, e := range httpField() {
		t.Run("http/"+e.Name, func(t *testing.T) { grantsExactly(t, e, "", clients, n) })
	}
	server := redistest.Start(t)
	for i, e := range slices.Concat(
		redisField(), denyField()[:1], leaseField()[:1], []Entry{fleetOf(3, redisField()[0])},
	) {
		own := fmt.Sprint(i)
		keys := []string{own + "alone:1", own + "alone:2", own + "at once"}
		t.Run("redis/"+e.Name, func(t *testing.T) { grantsExactly(t, e, server.Addr, keys, n) })
	}
}

// grantsExactly fails unless e grants n takes of each key. The last key has many callers.
func grantsExactly(t *testing.T, e Entry, addr string, keys []string, n int) {
	t.Helper()
	c, err := e.Open(Setup{Terms: Terms{Burst: int64(n), Every: refill}, Keys: 10, Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeContender(c); err != nil {
			t.Error(err)
		}
	}()
	last := len(keys) - 1
	if e.OneKey {
		keys, last = keys[last:], 0
	}
	for i, key := range keys {
		callers := 1
		if i == last {
			callers = 8
		}
		if got := granted(t, c, key, callers, 5*n/callers); got != int64(n) {
			t.Errorf("%s: %d takes by %d callers granted, want %d", key, got, callers, n)
		}
	}
}

func granted(t *testing.T, c Contender, key string, callers, each int) int64 {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				ok, err := c.Take(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					n.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return n.Load()
}

// deepest is a hook that keeps the length of the longest pipeline.
type deepest struct{ n atomic.Int64 }

func (d *deepest) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (d *deepest) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (d *deepest) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		d.n.Store(max(d.n.Load(), int64(len(cmds))))
		return next(ctx, cmds)
	}
}

// The row of AutoPipeline is about pipelines, and that of redis_rate alone is not, apart from the
// two commands that open a connection.
func TestAutoPipelineMakesPipelines(t *testing.T) {
	server := redistest.Start(t)
	for name, open := range map[string]func(Setup) (Contender, error){
		redisRateName: openRedisRate, autoPipelineName: openRedisRateAutoPipeline,
	} {
		c, err := open(Setup{Terms: Terms{Burst: 10_000, Every: refill}, Addr: server.Addr})
		if err != nil {
			t.Fatal(err)
		}
		var d deepest
		c.(redisRate).client.AddHook(&d)
		granted(t, c, name, 64, 20)
		if n := d.n.Load(); (n > 2) != (name == autoPipelineName) {
			t.Errorf("%s: the longest pipeline has %d commands", name, n)
		}
		if err := closeContender(c); err != nil {
			t.Error(err)
		}
	}
}

// liar answers by the number of the take.
type liar struct {
	takes  atomic.Int64
	answer func(take int) bool
}

func (l *liar) Take(context.Context, string) (bool, error) {
	return l.answer(int(l.takes.Add(1))), nil
}

func lying(answer func(take int) bool) Entry {
	return Entry{Name: "liar", Open: func(Setup) (Contender, error) {
		return &liar{answer: answer}, nil
	}}
}

// A contender that answers wrongly ends the run.
func TestRunsFindLiars(t *testing.T) {
	always := func(int) bool { return true }
	for _, tt := range []struct {
		name, want string
		answer     func(take int) bool
	}{
		{"grants everything", "takes were granted", always},
		{"denies everything", "takes were denied", func(int) bool { return false }},
		{"denies one", "takes were denied", func(take int) bool { return take != 150 }},
	} {
		err := inProcess{out: new(Results)}.measure(lying(tt.answer), uniform(100, keyOf))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want one with %q", tt.name, err, tt.want)
		}
	}
	err := withRedis(t.Context(), func(s redisServer) error {
		run := redisRun{server: s, span: time.Millisecond, out: new(Results)}
		for _, tt := range []struct {
			w      Workload
			want   string
			answer func(take int) bool
		}{
			{uniform(100, keyOf), "there are 0 keys in Redis; want 100", always},
			{uniform(100, keyOf), "takes were denied", func(take int) bool { return take <= 100 }},
			{denial(), "takes were granted", always},
		} {
			err := run.measure(t.Context(), lying(tt.answer), tt.w, 2)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Redis: error is %v, want one with %q", err, tt.want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestVerifyCountsKeys(t *testing.T) {
	for _, w := range []Workload{denial(), hotKey(1, addressOf), uniform(20_000, addressOf)} {
		if err := w.verify(); err != nil {
			t.Error(err)
		}
		if w.Keys++; w.verify() == nil {
			t.Errorf("%s: verified with %d keys", w.Name, w.Keys)
		}
	}
}
