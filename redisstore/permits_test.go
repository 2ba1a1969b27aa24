package redisstore_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

func TestPermits(t *testing.T) {
	server := redistest.Shared(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	limittest.RunPermits(t, func(t *testing.T) concurrency.Store { return newStore(t, client) })
	t.Run("a release wakes a caller in another process", func(t *testing.T) {
		wakesOtherClient(t, client, redis.NewClient(&redis.Options{Addr: server.Addr}))
	})
}

func TestPermitsInCluster(t *testing.T) {
	addrs := sharedCluster(t).Addrs
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })
	limittest.RunPermits(t, func(t *testing.T) concurrency.Store { return newStore(t, client) })
	t.Run("a release wakes a caller in another process", func(t *testing.T) {
		wakesOtherClient(t, client, redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs}))
	})
}

// wakesOtherClient has a client release what another one waits for. To a server, clients are
// processes.
func wakesOtherClient(t *testing.T, holder, waiter redis.UniversalClient) {
	t.Cleanup(func() { _ = waiter.Close() })
	held, waiting := newPermits(t, newStore(t, holder), 1), newPermits(t, newStore(t, waiter), 1)
	for range 10 {
		p := acquirePermit(t, held)
		woken := make(chan error, 1)
		go func() {
			p, err := waiting.Wait(t.Context(), "k")
			if err == nil {
				err = p.Release(t.Context())
			}
			woken <- err
		}()
		until(t, "a caller waits", func() bool { return waiting.Waiting("k") == 1 })
		if err := p.Release(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case err := <-woken:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("not woken, and the TTL is an hour")
		}
	}
}

func newPermits(t *testing.T, s concurrency.Store, limit int64) *concurrency.Limiter {
	t.Helper()
	l, err := concurrency.New(s, limit, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func acquirePermit(t *testing.T, c *concurrency.Limiter) *concurrency.Permit {
	t.Helper()
	f, d, err := c.Acquire(t.Context(), "k")
	if err != nil || f == nil {
		t.Fatalf("not granted: %+v, %v", d, err)
	}
	return f
}

func permitsInUse(t *testing.T, c *concurrency.Limiter) int64 {
	t.Helper()
	d, err := c.Peek(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return d.InUse
}

// until repeats done until it returns true. What happens in the background reports no end.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestKeyOfPermitsExpiresAfterTheLastOne(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	key := t.Name() + ":{k}:@permits"
	l := newPermits(t, s, 2)
	a, b := acquirePermit(t, l), acquirePermit(t, l)
	wantHour := func(when string) {
		t.Helper()
		left := client.PTTL(t.Context(), key).Val()
		if left < time.Hour-20*time.Second || left > time.Hour+2*time.Second {
			t.Errorf("%s: expires in %s; want an hour", when, left)
		}
	}
	wantHour("acquired")
	short := concurrency.Request{Key: "k", ID: concurrency.PermitID{1}, Limit: 3, TTL: time.Minute}
	if d, err := s.AcquirePermit(t.Context(), short); !d.Allowed() || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	wantHour("acquired one for a minute besides those for an hour")
	if held, err := s.ReleasePermit(t.Context(), short); !held || err != nil {
		t.Errorf("released: %t, %v", held, err)
	}
	client.PExpire(t.Context(), key, 100*time.Hour)
	if p, _, err := l.Acquire(t.Context(), "k"); p != nil || err != nil {
		t.Errorf("a third of two: %v", err)
	}
	if left := client.PTTL(t.Context(), key).Val(); left < 99*time.Hour {
		t.Errorf("a denial changed the expiry to %s", left)
	}
	client.Persist(t.Context(), key)
	if err := a.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	wantHour("renewed, after the expiry was lost")
	client.Persist(t.Context(), key)
	if err := a.Release(t.Context()); err != nil {
		t.Error(err)
	}
	wantHour("one of two released, after the expiry was lost")
	if err := b.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if client.Exists(t.Context(), key).Val() != 0 {
		t.Error("a key without permits was not deleted")
	}
}

func TestReleaseIsPublishedOnceForADeniedCallerThatWaits(t *testing.T) {
	client := newClient(t)
	client.ConfigResetStat(t.Context())
	s := newStore(t, client)
	l := newPermits(t, s, 3)
	permits := []*concurrency.Permit{acquirePermit(t, l), acquirePermit(t, l), acquirePermit(t, l)}
	waits := concurrency.Request{Key: "k", ID: concurrency.PermitID{1}, Limit: 1, TTL: time.Hour,
		Notify: true}
	for i, published := range []bool{false, true, true} {
		if i == 1 {
			if d, err := s.AcquirePermit(t.Context(), waits); d.Allowed() || err != nil {
				t.Fatal(d, err)
			}
		}
		if err := permits[i].Release(t.Context()); err != nil {
			t.Error(err)
		}
		stats := client.Info(t.Context(), "commandstats").Val()
		if got := strings.Contains(stats, "cmdstat_publish:calls=1,"); got != published {
			t.Errorf("after release %d: published once: %t, want %t", i+1, got, published)
		}
	}
}

func TestForeignValueAtTheKeyOfPermitsStays(t *testing.T) {
	client := newClient(t)
	l := newPermits(t, newStore(t, client), 3)
	key := t.Name() + ":{k}:@permits"
	for _, foreign := range []string{"", "x", "0", "\x00", "\x01", "another value",
		"2" + strings.Repeat("x", 23)} {
		client.Set(t.Context(), key, foreign, 0)
		if _, _, err := l.Acquire(t.Context(), "k"); err == nil ||
			!strings.Contains(err.Error(), key) {
			t.Errorf("%q: error %v; want one that names %q", foreign, err, key)
		}
		if got := client.Get(t.Context(), key).Val(); got != foreign {
			t.Errorf("%q became %q", foreign, got)
		}
	}
	client.Del(t.Context(), key)
	client.LPush(t.Context(), key, "x")
	if _, _, err := l.Acquire(t.Context(), "k"); err == nil ||
		!strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a list: %v", err)
	}
}

func TestLostAnswerToARelease(t *testing.T) {
	client := newClient(t)
	loses := new(losesNext)
	client.AddHook(loses)
	l := newPermits(t, newStore(t, client), 2)
	p := acquirePermit(t, l)
	loses.next = true
	if err := p.Release(t.Context()); !errors.Is(err, io.EOF) || loses.next {
		t.Errorf("release: %v; want the client's error", err)
	}
	if err := p.Release(t.Context()); err != nil || permitsInUse(t, l) != 0 {
		t.Errorf("released again: %v, and %d in use; want 0", err, permitsInUse(t, l))
	}
	p = acquirePermit(t, l)
	loses.next = true
	if err := p.ReleaseAfter(t.Context(), time.Hour); !errors.Is(err, io.EOF) || loses.next {
		t.Errorf("release later: %v; want the client's error", err)
	}
	if err := p.Release(t.Context()); err != nil || permitsInUse(t, l) != 1 {
		t.Errorf("released after that: %v, and %d in use; want 1 for an hour", err,
			permitsInUse(t, l))
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

// The server allows neither TIME in scripts nor channels. Permits work, but no release is reported.
func TestPermitsWithoutTimeAndChannels(t *testing.T) {
	server := redistest.Start(t)
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "resetchannels",
		"+@all", "-time"); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "app", Password: "pw"})
	t.Cleanup(func() { _ = client.Close() })
	l := newPermits(t, newStore(t, client), 1)
	p := acquirePermit(t, l)
	if _, d, err := l.Acquire(t.Context(), "k"); err != nil || d.Allowed() ||
		d.RetryAfter < time.Hour-20*time.Second {
		t.Errorf("a second of one: %+v, %v", d, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Wait(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a second of one: %v", err)
	}
	if err := p.Release(t.Context()); err != nil { // which the script tries to publish
		t.Error(err)
	}
	acquirePermit(t, l)
}

func TestPermitIsReleasedWhenItsContextHasEnded(t *testing.T) {
	client := newClient(t)
	l := newPermits(t, newStore(t, client), 1)
	hooked := redis.NewClient(&redis.Options{Addr: client.Options().Addr})
	t.Cleanup(func() { _ = hooked.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	acquiring := &hold{cancel: cancel, ended: make(chan struct{})}
	hooked.AddHook(acquiring)
	p, _, err := newPermits(t, newStore(t, hooked), 1).Acquire(ctx, "k")
	if p != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("the context ended during Acquire: %v, %v", p, err)
	}
	if n := permitsInUse(t, l); n != 1 {
		t.Errorf("%d in use before the answer; want 1", n)
	}
	close(acquiring.ended)
	until(t, "released after Acquire", func() bool { return permitsInUse(t, l) == 0 })

	p = acquirePermit(t, l)
	if err := p.Release(ctx); err != nil || permitsInUse(t, l) != 0 {
		t.Errorf("released with a context that has ended: %v", err)
	}
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

func TestCloseEndsTheWaitForAPermit(t *testing.T) {
	s, err := redisstore.Open("redis://" + sharedServer(t).Addr + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	c := newPermits(t, s, 1)
	acquirePermit(t, c)
	woken := make(chan error)
	for range 3 {
		go func() {
			_, err := c.Wait(t.Context(), "k")
			woken <- err
		}()
	}
	until(t, "three callers wait", func() bool { return c.Waiting("k") == 3 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 3 {
		if err := <-woken; err == nil {
			t.Error("no error")
		}
	}
}
