package redisstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

func TestSingle(t *testing.T) {
	client := newClient(t)
	limittest.Run(t, func(t *testing.T) headgate.Store { return newStore(t, client) })
}

// The script is that of TestSingle. What differs is the way to the servers: TestBatchesAgree,
// TestGroupsOverServers and the tests of cluster_servers_test.go compare that.
func TestCluster(t *testing.T) {
	limittest.Vectors(t, newStore(t, newCluster(t)))
}

// Groups of keys on several servers are decided as Memory decides them, if they come one after
// another.
func TestGroupsOverServers(t *testing.T) {
	s := newStore(t, newCluster(t))
	memory := headgate.NewMemory()
	random := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	granted := 0
	for i := range 1000 {
		at = at.Add(time.Duration(random.IntN(200)) * time.Millisecond)
		var rs []headgate.Request
		for _, k := range random.Perm(6)[:1+random.IntN(4)] {
			limit := parse(t, []string{"7/3s", "6/s fixed-window", "9/2s sliding-log"}[k%3])
			rs = append(rs,
				headgate.Request{Key: strconv.Itoa(k), Limit: limit, Cost: random.Int64N(4),
					Headroom: max(random.Int64N(8)-4, 0), At: at})
		}
		got, want := make([]headgate.Decision, len(rs)), make([]headgate.Decision, len(rs))
		if err := errors.Join(s.TakeAll(t.Context(), rs, got),
			memory.TakeAll(t.Context(), rs, want)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("group %d, %+v:\n got %+v\nwant %+v", i, rs, got, want)
		}
		if headgate.Granted(rs, got) {
			granted++
		}
	}
	if granted < 100 || granted > 900 {
		t.Errorf("%d of 1000 groups are granted, which tests little", granted)
	}
}

// A group over several servers that is refused because of a cancel leaves the other keys as they
// were. If another start of it was cancelled already, that is charged again, whether or not it
// fits.
func TestRefusedCancelOverServers(t *testing.T) {
	s := newStore(t, newCluster(t))
	l := parse(t, "10/h")
	book := func(key string, cost int64) headgate.Request {
		r := headgate.Request{Key: key, Limit: l, Cost: cost, MaxWait: 10 * time.Hour,
			Start: new(time.Time)}
		take(t, s, r)
		r.Cost, r.MaxWait = -cost, 0
		return r
	}
	passed := book("passed", 1)
	// so that the start is not the last
	take(t, s, headgate.Request{Key: "passed", Limit: l, Cost: 1})
	take(t, s, headgate.Request{Key: "refund", Limit: l, Cost: 2})
	take(t, s, headgate.Request{Key: "all", Limit: l, Cost: 10})
	late := book("all", 1) // starts in six minutes
	refund := headgate.Request{Key: "refund", Limit: l, Cost: -5}
	for _, rs := range [][]headgate.Request{{refund, passed}, {passed, refund}, {late, passed}} {
		ds := make([]headgate.Decision, len(rs))
		if err := s.TakeAll(t.Context(), rs, ds); err != nil || headgate.Granted(rs, ds) {
			t.Fatalf("%+v: %+v, %v", rs, ds, err)
		}
	}
	if d := take(t, s, headgate.Request{Key: "refund", Limit: l}); d.Remaining != 8 {
		t.Errorf("what was to be refunded: %+v; want 8", d)
	}
	if d := take(t, s, headgate.Request{Key: "all", Limit: l,
		Cost: 1}); d.RetryAfter < 11*time.Minute {
		t.Errorf("a start time that its caller keeps is free again: %+v", d)
	}
}

// cluster is shared by the tests of this package. It takes seconds to start, and ends with them.
var cluster = sync.OnceValues(func() (*redistest.Cluster, error) {
	return redistest.RunCluster(context.Background())
})

// sharedCluster returns it, without keys.
func sharedCluster(t *testing.T) *redistest.Cluster {
	t.Helper()
	c, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range c.Servers {
		if _, err := server.Do(t.Context(), "FLUSHALL"); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// newCluster connects to the shared Cluster.
func newCluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: sharedCluster(t).Addrs})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// sharedServer returns the server that the tests of this package share, without keys.
func sharedServer(tb testing.TB) *redistest.Server {
	tb.Helper()
	server := redistest.Shared(tb)
	if _, err := server.Do(tb.Context(), "FLUSHALL"); err != nil {
		tb.Fatal(err)
	}
	return server
}

// newClient connects to the shared server.
func newClient(t *testing.T) *redis.Client {
	t.Helper()
	return connect(t, sharedServer(t))
}

func connect(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// newStore makes a store that shares nothing with those of other tests.
func newStore(t *testing.T, client redis.UniversalClient) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(client, redisstore.Options{Prefix: t.Name() + ":"})
	if err != nil {
		t.Fatal(err)
	}
	s.SkipProbe()
	return s
}

func parse(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(t *testing.T, s headgate.Store, r headgate.Request) headgate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNew(t *testing.T) {
	for _, client := range []redis.UniversalClient{nil, (*redis.Client)(nil),
		(*redis.ClusterClient)(nil)} {
		if _, err := redisstore.New(client, redisstore.Options{}); err == nil {
			t.Errorf("New(%T nil) gave no error", client)
		}
	}
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	_, err := redisstore.New(client, redisstore.Options{Prefix: "a{b"})
	if _, ok := errors.AsType[*headgate.InvalidError](err); !ok ||
		!strings.Contains(err.Error(), `"a{b"`) {
		t.Errorf("prefix with a brace: %v", err)
	}
}

// A decision takes one command, and so do all limits of a request.
func TestRoundTrips(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	a, b := parse(t, "a=10/s"), parse(t, "b=100/h sliding-log")
	rs := []headgate.Request{{Key: "k", Limit: a, Cost: 1}, {Key: "k", Limit: b, Cost: 1}}
	take(t, s, rs[0]) // the scripts get known
	if err := s.TakeAll(t.Context(), rs, make([]headgate.Decision, 2)); err != nil {
		t.Fatal(err)
	}
	counter := new(counter)
	client.AddHook(counter)
	take(t, s, headgate.Request{Key: "k", Limit: a, Cost: 1})
	if counter.sent.Load() != 1 {
		t.Errorf("one decision took %d commands", counter.sent.Load())
	}
	if err := s.TakeAll(t.Context(), rs, make([]headgate.Decision, 2)); err != nil {
		t.Fatal(err)
	}
	if counter.sent.Load() != 2 {
		t.Errorf("two limits together took %d commands", counter.sent.Load()-1)
	}
	timed := headgate.Request{Key: "k", Limit: a, Cost: 1, At: time.Now()}
	take(t, s, timed) // the script gets known
	before := counter.sent.Load()
	if take(t, s, timed); counter.sent.Load() != before+1 {
		t.Errorf("a request with a time took %d commands", counter.sent.Load()-before)
	}
}

// After SCRIPT FLUSH the next call sends the text again, and nothing is lost or charged twice.
func TestScriptFlush(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	r := headgate.Request{Key: "k", Limit: parse(t, "10/h fixed-window"), Cost: 1}
	for i := range int64(5) {
		if d := take(t, s, r); d.Remaining != 9-i {
			t.Fatalf("take %d: remaining %d", i, d.Remaining)
		}
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A caller that leaves while a later key denies leaves no charge on the earlier ones.
func TestCallerThatLeavesIsRefunded(t *testing.T) {
	client := newCluster(t)
	s := newStore(t, client)
	l := parse(t, "10/h")
	ctx, cancel := context.WithCancel(t.Context())
	client.AddHook(&canceller{cancel: cancel})
	rs := []headgate.Request{{Key: "first", Limit: l, Cost: 3}, {Key: "second", Limit: l, Cost: 3}}
	if err := s.TakeAll(ctx, rs, make([]headgate.Decision, 2)); err == nil {
		t.Fatal("a cancelled call gave no error")
	}
	// The refund is made in the background.
	patience, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	for d := take(t, s, headgate.Request{Key: "first", Limit: l}); d.Remaining != 10; {
		if err := patience.Err(); err != nil {
			t.Fatalf("the first key has %d of 10: %v", d.Remaining, err)
		}
		d = take(t, s, headgate.Request{Key: "first", Limit: l})
	}
}

// A Wait takes a command for each time that it asks, at most two if nobody else comes, and none
// while it waits. A reservation takes one, and its cancel one more.
func TestWaiting(t *testing.T) {
	client := newClient(t)
	l, err := headgate.NewLimiter(newStore(t, client), parse(t, "50/s burst 1"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Wait(t.Context(), "warm"); err != nil { // the script gets known
			t.Fatal(err)
		}
	}
	counter := new(counter)
	client.AddHook(counter)
	start := time.Now()
	for range 6 {
		if err := l.Wait(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
	asked := counter.sent.Load()
	if took := time.Since(start); asked > 12 || took < 100*time.Millisecond {
		t.Errorf("6 passes took %d commands and %s", asked, took)
	}
	r, err := l.Reserve(t.Context(), "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context()); err != nil || counter.sent.Load() != asked+2 {
		t.Errorf("a cancelled reservation: %d commands, error %v", counter.sent.Load()-asked, err)
	}
}

// A group over several servers that its first key denies charges no limit of the later ones.
func TestDeniedGroupChargesNoLaterKey(t *testing.T) {
	s := newStore(t, newCluster(t))
	l, sibling := parse(t, "5/h"), parse(t, "b=5/h")
	take(t, s, headgate.Request{Key: "first", Limit: l, Cost: 5})
	rs := []headgate.Request{
		{Key: "first", Limit: l, Cost: 1}, {Key: "later", Limit: l, Cost: 1},
		{Key: "later", Limit: sibling, Cost: 1},
	}
	ds := make([]headgate.Decision, len(rs))
	if err := s.TakeAll(t.Context(), rs, ds); err != nil || headgate.Granted(rs, ds) {
		t.Fatalf("%+v, %v", ds, err)
	}
	for _, l := range []headgate.Limit{l, sibling} {
		if d := take(t, s, headgate.Request{Key: "later", Limit: l}); d.Remaining != 5 {
			t.Errorf("%s: %+v", l, d)
		}
	}
}
