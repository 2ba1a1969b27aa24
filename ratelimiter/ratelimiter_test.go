package ratelimiter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/ratelimiter"
	"github.com/redis/go-redis/v9"
)

// connect makes a client of a server.
func connect(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

var serial atomic.Int64

// bucket makes a limiter in the server that the tests share; no other test uses key.
func bucket(t *testing.T, cfg ratelimiter.TokenBucketConfig) (limiter *ratelimiter.TokenBucket, client *redis.Client, key string) {
	t.Helper()
	client = connect(t, redistest.Shared(t))
	cfg.Client = client
	return ratelimiter.NewTokenBucket(cfg), client, fmt.Sprint(t.Name(), ":", serial.Add(1))
}

func allow(t *testing.T, limiter *ratelimiter.TokenBucket, key string) (allowed bool, remaining float64) {
	t.Helper()
	allowed, remaining, err := limiter.Allow(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return allowed, remaining
}

func takeAt(t *testing.T, limiter *ratelimiter.TokenBucket, key string, at time.Time) ratelimiter.Verdict {
	t.Helper()
	v, err := limiter.TakeAt(t.Context(), key, at)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDefaults is a bucket of which nothing is said but the client: 10 tokens, and one
// more each second.
func TestDefaults(t *testing.T) {
	limiter, _, key := bucket(t, ratelimiter.TokenBucketConfig{})
	at := time.Unix(1_700_000_000, 0)
	for i := range int64(10) {
		if v := takeAt(t, limiter, key, at); !v.Allowed || v.Remaining != 9-i || v.Full != at.Add(time.Duration(i+1)*time.Second) {
			t.Fatalf("take %d: %+v", i+1, v)
		}
	}
	if v := takeAt(t, limiter, key, at); v.Allowed || v.Remaining != 0 || v.Retry != time.Second || v.Full != at.Add(10*time.Second) {
		t.Errorf("an eleventh of ten: %+v", v)
	}
	if v := takeAt(t, limiter, key, at.Add(time.Second)); !v.Allowed || v.Remaining != 0 {
		t.Errorf("a second later: %+v", v)
	}
}

func TestAllow(t *testing.T) {
	limiter, _, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 3, RefillRate: 1, RefillInterval: time.Hour})
	for _, want := range []float64{2, 1, 0} {
		if allowed, remaining := allow(t, limiter, key); !allowed || remaining != want {
			t.Fatalf("%v, %v remaining; want true, %v", allowed, remaining, want)
		}
	}
	if allowed, remaining := allow(t, limiter, key); allowed || remaining != 0 {
		t.Errorf("a fourth of three: %v, %v remaining", allowed, remaining)
	}
	if allowed, remaining := allow(t, limiter, key+":another"); !allowed || remaining != 2 {
		t.Errorf("another key: %v, %v remaining", allowed, remaining)
	}
}

// TestGoroutinesShareABucket lets 20 goroutines ask at one time: 10 are allowed, and each
// gets another number of remaining tokens.
func TestGoroutinesShareABucket(t *testing.T) {
	limiter, _, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 10, RefillRate: 1, RefillInterval: time.Hour})
	var mu sync.Mutex
	var granted []float64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			allowed, remaining, err := limiter.Allow(t.Context(), key)
			if err != nil {
				t.Error(err)
			}
			if allowed {
				mu.Lock()
				granted = append(granted, remaining)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(granted)
	if want := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(granted, want) {
		t.Errorf("granted with %v remaining; want %v", granted, want)
	}
}

// TestFailOpen is a caller who lets requests through while Redis is away.
func TestFailOpen(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: client})
	server.Stop()
	allowed, remaining, err := limiter.Allow(t.Context(), "user:123")
	if allowed || remaining != 0 {
		t.Errorf("without a server: %v, %v", allowed, remaining)
	}
	if err != nil {
		allowed = true
	}
	if !allowed {
		t.Error("no error without a server")
	}
}

// TestContextDeadline asks a server that pauses, by a client that would wait for
// an answer for a minute: the deadline of the call holds.
func TestContextDeadline(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: client})
	allow(t, limiter, "user:123")
	if err := client.Do(t.Context(), "client", "pause", 60_000, "all").Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	allowed, _, err := limiter.Allow(ctx, "user:123")
	if allowed || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, error %v; want the deadline's", allowed, err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("a deadline of 100 ms took %s", took)
	}
}

// TestCancelledContext asks for a caller who has gone already: nothing is charged.
func TestCancelledContext(t *testing.T) {
	limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if allowed, _, err := limiter.Allow(ctx, key); allowed || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, error %v", allowed, err)
	}
	if client.Exists(t.Context(), key).Val() != 0 {
		t.Error("charged")
	}
}

// TestScriptFlush forgets the script of the server in the middle: it is sent again, and
// nothing is charged twice.
func TestScriptFlush(t *testing.T) {
	client := connect(t, redistest.Start(t))
	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: client, RefillInterval: time.Hour})
	for i := range 5 {
		if _, remaining := allow(t, limiter, "k"); remaining != float64(9-i) {
			t.Fatalf("take %d: %v remaining", i+1, remaining)
		}
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChargedOnce loses the answer of every call on its way back. The client has its
// usual retries; the caller gets an error; the server has charged each once.
func TestChargedOnce(t *testing.T) {
	server := redistest.Start(t)
	direct := connect(t, server)
	lossy := redis.NewClient(&redis.Options{Addr: redistest.LoseAnswers(t, server.Addr, "evalsha"), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = lossy.Close() })
	cfg := ratelimiter.TokenBucketConfig{Client: direct, Capacity: 1000, RefillInterval: time.Hour}
	straight := ratelimiter.NewTokenBucket(cfg)
	allow(t, straight, "k")
	cfg.Client = lossy
	limiter := ratelimiter.NewTokenBucket(cfg)
	for range 20 {
		if _, _, err := limiter.Allow(t.Context(), "k"); err == nil {
			t.Fatal("a lost answer gave no error")
		}
	}
	if _, remaining := allow(t, straight, "k"); remaining != 1000-1-20-1 {
		t.Errorf("20 calls whose answers were lost, and 2 others, left %v of 1000; want 978", remaining)
	}
}

// TestCluster spreads keys over the servers of a Cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs})
	t.Cleanup(func() { _ = client.Close() })
	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: client, Capacity: 2, RefillInterval: time.Hour})
	for i := range 30 {
		key := fmt.Sprint("user:", i)
		for _, want := range []bool{true, true, false} {
			if allowed, _ := allow(t, limiter, key); allowed != want {
				t.Fatalf("%s: %v; want %v", key, allowed, want)
			}
		}
	}
	for _, server := range cluster.Servers {
		if size, err := server.Do(t.Context(), "DBSIZE"); err != nil || size == "0" {
			t.Errorf("%s holds %s keys, error %v", server.Addr, size, err)
		}
	}
}

// TestNoTime uses a server that keeps TIME from scripts: the caller's clock takes its
// place.
func TestNoTime(t *testing.T) {
	server := redistest.Start(t)
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-time"); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "app", Password: "pw"})
	t.Cleanup(func() { _ = client.Close() })
	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: client, Capacity: 3, RefillInterval: time.Hour})
	for _, want := range []bool{true, true, true, false} {
		if allowed, _ := allow(t, limiter, "k"); allowed != want {
			t.Fatalf("%v; want %v", allowed, want)
		}
	}
	last, err := client.HGet(t.Context(), "k", "last_refill").Float64()
	if now := float64(time.Now().Unix()); err != nil || last < now-60 || last > now+60 {
		t.Errorf("last_refill %v, error %v; want about %v", last, err, now)
	}
}
