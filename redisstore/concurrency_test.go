package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

func TestConcurrency(t *testing.T) {
	client := newClient(t)
	limittest.RunConcurrency(t, func(t *testing.T) headgate.ConcurrencyStore { return newStore(t, client) })
}

func TestConcurrencyInCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs})
	t.Cleanup(func() { _ = client.Close() })
	limittest.RunConcurrency(t, func(t *testing.T) headgate.ConcurrencyStore { return newStore(t, client) })
}

func newConcurrency(t *testing.T, s headgate.ConcurrencyStore, n int64) *headgate.Concurrency {
	t.Helper()
	c, err := headgate.NewConcurrency(s, n, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func begin(t *testing.T, c *headgate.Concurrency) *headgate.Flight {
	t.Helper()
	f, d, err := c.Acquire(t.Context(), "k")
	if err != nil || f == nil {
		t.Fatalf("not granted: %+v, %v", d, err)
	}
	return f
}

func inFlight(t *testing.T, c *headgate.Concurrency) int64 {
	t.Helper()
	d, err := c.Peek(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return d.InFlight
}

// until asks again until it is so: what is done behind a caller has no end that can be
// waited for.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !so() {
		if ctx.Err() != nil {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestFlightExpiry: the key lives as long as the last lease, and is deleted with it.
func TestFlightExpiry(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	key := t.Name() + ":{k}:@flights"
	c := newConcurrency(t, s, 2)
	a, b := begin(t, c), begin(t, c)
	wantLives := func(when string) {
		t.Helper()
		if left := client.PTTL(t.Context(), key).Val(); left < time.Hour-20*time.Second || left > time.Hour+2*time.Second {
			t.Errorf("%s: lives for %s; want an hour", when, left)
		}
	}
	wantLives("acquired")
	short := headgate.FlightRequest{Key: "k", ID: headgate.FlightID{1}, N: 3, Lease: time.Minute}
	if d, err := s.AcquireFlight(t.Context(), short); !d.Allowed() || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	wantLives("acquired for a minute, beside those of an hour")
	if held, err := s.ReleaseFlight(t.Context(), short); !held || err != nil {
		t.Errorf("released: %t, %v", held, err)
	}
	client.PExpire(t.Context(), key, 100*time.Hour)
	if f, _, err := c.Acquire(t.Context(), "k"); f != nil || err != nil {
		t.Errorf("a third of two: %v", err)
	}
	if left := client.PTTL(t.Context(), key).Val(); left < 99*time.Hour {
		t.Errorf("a denial changed the expiry to %s", left)
	}
	client.Persist(t.Context(), key)
	if err := a.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	wantLives("renewed, after the expiry was lost")
	client.Persist(t.Context(), key)
	if err := a.Release(t.Context()); err != nil {
		t.Error(err)
	}
	wantLives("one of two released, after the expiry was lost")
	if err := b.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if client.Exists(t.Context(), key).Val() != 0 {
		t.Error("a key with nothing in flight was not deleted")
	}
}

// TestFlightRoundTrips: one command for each operation, and the server may forget the script.
func TestFlightRoundTrips(t *testing.T) {
	client := newClient(t)
	c := newConcurrency(t, newStore(t, client), 3)
	begin(t, c)
	counter := new(counter)
	client.AddHook(counter)
	f := begin(t, c)
	if err := errors.Join(f.Renew(t.Context()), f.Release(t.Context())); err != nil || counter.sent.Load() != 3 {
		t.Errorf("acquire, renew and release took %d commands, error %v; want 3", counter.sent.Load(), err)
	}
	f = begin(t, c)
	for range 2 {
		client.ScriptFlush(t.Context())
		if err := f.Renew(t.Context()); err != nil {
			t.Error(err)
		}
	}
	client.ScriptFlush(t.Context())
	if err := f.Release(t.Context()); err != nil || inFlight(t, c) != 1 {
		t.Errorf("%d in flight, error %v", inFlight(t, c), err)
	}
}

// TestForeignFlights finds somebody else's value, says so, and leaves it alone.
func TestForeignFlights(t *testing.T) {
	client := newClient(t)
	c := newConcurrency(t, newStore(t, client), 3)
	key := t.Name() + ":{k}:@flights"
	for _, foreign := range []string{"", "x", "0", "\x00", "\x01", "somebody else's", "2" + strings.Repeat("x", 23)} {
		client.Set(t.Context(), key, foreign, 0)
		if _, _, err := c.Acquire(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%q: error %v; want one that names %q", foreign, err, key)
		}
		if got := client.Get(t.Context(), key).Val(); got != foreign {
			t.Errorf("%q became %q", foreign, got)
		}
	}
	client.Del(t.Context(), key)
	client.LPush(t.Context(), key, "x")
	if _, _, err := c.Acquire(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a foreign list: %v", err)
	}
}

// TestFlightAnswersLost loses the answers to each operation in turn: nothing begins or is
// given back twice, and what nobody knows that he holds is given back.
func TestFlightAnswersLost(t *testing.T) {
	server := redistest.Start(t)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = direct.Close() })
	lossy := func(word string) *headgate.Concurrency {
		client := redis.NewClient(&redis.Options{Addr: redistest.LoseAnswers(t, server.Addr, word), Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { _ = client.Close() })
		return newConcurrency(t, newStore(t, client), 3)
	}
	c := newConcurrency(t, newStore(t, direct), 3)
	other := begin(t, c)

	losesAcquire := lossy("acquire")
	for range 3 {
		if f, _, err := losesAcquire.Acquire(t.Context(), "k"); f != nil || err == nil {
			t.Errorf("a lost answer gave %v, %v", f, err)
		}
	}
	until(t, "what was acquired in vain is given back", func() bool { return inFlight(t, c) == 1 })

	f := begin(t, lossy("renew"))
	if err := f.Renew(t.Context()); err == nil || errors.Is(err, headgate.ErrLeaseLost) {
		t.Errorf("a lost answer to a renewal gave %v", err)
	}
	if err := f.Release(t.Context()); err != nil {
		t.Error(err)
	}

	f = begin(t, lossy("release"))
	for range 3 {
		if err := f.Release(t.Context()); err == nil || errors.Is(err, headgate.ErrReleased) {
			t.Errorf("a lost answer to a release gave %v", err)
		}
		if n := inFlight(t, c); n != 1 {
			t.Errorf("%d in flight after a release whose answer was lost; want 1", n)
		}
	}
	if err := other.Release(t.Context()); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// TestFlightAnswerLostOnce: what is asked once more is the same, and the answer certain.
func TestFlightAnswerLostOnce(t *testing.T) {
	client := newClient(t)
	loses := new(losesNext)
	client.AddHook(loses)
	c := newConcurrency(t, newStore(t, client), 2)
	begin(t, c)
	loses.next = true
	f := begin(t, c)
	for _, step := range []struct {
		name     string
		do       func(context.Context) error
		inFlight int64
	}{{"renew", f.Renew, 2}, {"release", f.Release, 1}} {
		loses.next = true
		if err := step.do(t.Context()); err != nil || loses.next || inFlight(t, c) != step.inFlight {
			t.Errorf("%s: %v, and %d in flight; want %d", step.name, err, inFlight(t, c), step.inFlight)
		}
	}
}

// losesNext loses the answer to the next command.
type losesNext struct {
	counter
	next bool
}

func (l *losesNext) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if l.next && err == nil {
			l.next = false
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return err
	}
}

// TestFlightWithoutTime: a server that keeps its time from scripts, and its channels from
// the user. Waiters of one process are woken all the same.
func TestFlightWithoutTime(t *testing.T) {
	server := redistest.Start(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = admin.Close() })
	if err := admin.Do(t.Context(), "acl", "setuser", "app", "on", ">pw", "~*", "resetchannels", "+@all", "-time").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "app", Password: "pw"})
	t.Cleanup(func() { _ = client.Close() })
	c := newConcurrency(t, newStore(t, client), 1)
	f := begin(t, c)
	if _, d, err := c.Acquire(t.Context(), "k"); err != nil || d.Allowed() || d.RetryAfter < time.Hour-20*time.Second {
		t.Errorf("a second of one: %+v, %v", d, err)
	}
	woken := make(chan error)
	go func() {
		_, err := c.Wait(t.Context(), "k")
		woken <- err
	}()
	until(t, "somebody waits", func() bool { return c.Waiting("k") == 1 })
	if err := f.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-woken; err != nil {
		t.Error(err)
	}
}

// TestFlightContextEnds: who leaves while he is asking holds nothing, and who releases with
// a context that has ended gives back.
func TestFlightContextEnds(t *testing.T) {
	client := newClient(t)
	c := newConcurrency(t, newStore(t, client), 1)
	hooked := redis.NewClient(&redis.Options{Addr: client.Options().Addr})
	t.Cleanup(func() { _ = hooked.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	asking := &hold{cancel: cancel, ended: make(chan struct{})}
	hooked.AddHook(asking)
	if f, _, err := newConcurrency(t, newStore(t, hooked), 1).Acquire(ctx, "k"); f != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("left: %v, %v", f, err)
	}
	if n := inFlight(t, c); n != 1 {
		t.Errorf("%d in flight; want the one that nobody knows of", n)
	}
	close(asking.ended)
	until(t, "given back behind the caller", func() bool { return inFlight(t, c) == 0 })

	f := begin(t, c)
	if err := f.Release(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("released with a context that has ended: %v", err)
	}
	until(t, "given back for a context that has ended", func() bool { return inFlight(t, c) == 0 })
}

// hold cancels a context when the first script has run, and keeps its answer until ended.
type hold struct {
	counter
	cancel context.CancelFunc
	ended  chan struct{}
}

func (h *hold) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") {
			h.cancel()
			<-h.ended
		}
		return err
	}
}

// TestClosedWhileWaiting: Close wakes those who wait, with an error.
func TestClosedWhileWaiting(t *testing.T) {
	s, err := redisstore.Open("redis://" + redistest.Start(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	c := newConcurrency(t, s, 1)
	begin(t, c)
	woken := make(chan error)
	for range 3 {
		go func() {
			_, err := c.Wait(t.Context(), "k")
			woken <- err
		}()
	}
	until(t, "three wait", func() bool { return c.Waiting("k") == 3 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 3 {
		if err := <-woken; err == nil {
			t.Error("no error")
		}
	}
}

// TestBytesPerLease measures what a lease takes in Redis, expiry included.
func TestBytesPerLease(t *testing.T) {
	client := newClient(t)
	c := newConcurrency(t, newStore(t, client), 1000)
	for n := 1; n <= 1000; n++ {
		begin(t, c)
		if n == 1 || n == 10 || n == 100 || n == 1000 {
			bytes := client.MemoryUsage(t.Context(), t.Name()+":{k}:@flights").Val()
			t.Logf("%4d in flight: %5d bytes by MEMORY USAGE, %.0f a lease", n, bytes, float64(bytes)/float64(n))
			if most := int64(120 + 32*n); bytes > most {
				t.Errorf("%d in flight take %d bytes; want at most %d", n, bytes, most)
			}
		}
	}
}

// BenchmarkFlight acquires and releases, with others in flight.
func BenchmarkFlight(b *testing.B) {
	server := redistest.Start(b)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	b.Cleanup(func() { _ = client.Close() })
	for _, others := range []int{0, 10, 100, 1000} {
		b.Run(strconv.Itoa(others)+" others", func(b *testing.B) {
			s, err := redisstore.New(client, redisstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			c, err := headgate.NewConcurrency(s, 10_000, time.Hour)
			if err != nil {
				b.Fatal(err)
			}
			key := strconv.Itoa(others) + " others"
			for d, err := c.Peek(b.Context(), key); d.InFlight < int64(others); d, err = c.Peek(b.Context(), key) {
				if _, werr := c.Wait(b.Context(), key); err != nil || werr != nil {
					b.Fatal(err, werr)
				}
			}
			client.ConfigResetStat(b.Context())
			for b.Loop() {
				f, _, err := c.Acquire(b.Context(), key)
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Release(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			_, stats, _ := strings.Cut(client.Info(b.Context(), "commandstats").Val(), "cmdstat_evalsha:")
			_, stats, _ = strings.Cut(stats, "usec_per_call=")
			var micros float64
			if _, err := fmt.Sscanf(stats, "%f", &micros); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(2*micros, "server-us/op")
		})
	}
}
