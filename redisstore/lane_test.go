package redisstore_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// A caller whose context ends leaves at once: not charged if the request has not been sent,
// and charged if it has. Both are told and counted.
func TestLeaving(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	r := headgate.Request{Key: "k", Limit: parse(t, "5/h"), Cost: 1}
	h := holdUp(client)
	ctx, cancel := context.WithCancel(t.Context())
	underWay := ask(ctx, s, r)
	<-h.arrived
	waiting := ask(ctx, s, r)
	cancel()
	if a := <-underWay; !errors.Is(a.err, context.Canceled) || errors.Is(a.err, redisstore.ErrNotSent) || a.err.Error() != "redisstore: context canceled" {
		t.Errorf("under way: %v", a.err)
	}
	if a := <-waiting; !errors.Is(a.err, context.Canceled) || !errors.Is(a.err, redisstore.ErrNotSent) || a.err.Error() != "redisstore: context canceled; the request was not sent" {
		t.Errorf("waiting: %v", a.err)
	}
	close(h.free)
	if d := take(t, s, r); d.Remaining != 3 {
		t.Errorf("%d are left of 5 after one that was sent, one that was not and one more", d.Remaining)
	}
	if got := s.Stats(); got.NotSent != 1 || got.Unanswered != 1 || got.Waiting != 0 || got.Callers != 3 || got.Requests != 2 {
		t.Errorf("stats %+v", got)
	}
}

// Those who leave take no room in the queue.
func TestLeaversTakeNoRoom(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{Queue: 2})
	r := headgate.Request{Key: "k", Limit: parse(t, "50000/h"), Cost: 1}
	h := holdUp(client)
	first := ask(t.Context(), s, r)
	<-h.arrived
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		a := ask(ctx, s, r)
		cancel()
		if err := (<-a).err; !errors.Is(err, redisstore.ErrNotSent) {
			t.Fatal(err)
		}
	}
	if n := s.Queued("k"); n > 1000 {
		t.Errorf("the queue is %d long, of those who have left", n)
	}
	last := ask(t.Context(), s, r)
	close(h.free)
	if a, b := <-first, <-last; a.err != nil || b.err != nil || b.ds[0].Remaining != 49998 {
		t.Errorf("%+v, %+v", a, b)
	}
}

// A full queue turns callers away at once, and takes them again once there is room.
func TestFullQueue(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{Queue: 3})
	r := headgate.Request{Key: "k", Limit: parse(t, "50/h"), Cost: 1}
	h := holdUp(client)
	answers := []<-chan answer{ask(t.Context(), s, r)}
	<-h.arrived
	for range 3 {
		answers = append(answers, ask(t.Context(), s, r))
	}
	if _, err := s.Take(t.Context(), r); !errors.Is(err, redisstore.ErrBusy) {
		t.Errorf("one more than the queue holds: %v", err)
	}
	close(h.free)
	for i := range answers {
		if a := <-answers[i]; a.err != nil {
			t.Error(a.err)
		}
	}
	if d := take(t, s, r); d.Remaining != 45 {
		t.Errorf("%d are left of 50 after five", d.Remaining)
	}
	if got := s.Stats(); got.Busy != 1 || got.Callers != 5 {
		t.Errorf("stats %+v", got)
	}
}

// A batch that is not answered is left to itself: those who wait are sent without it, also if
// nobody else comes, and so on up to a bound.
func TestLostBatches(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	s.SetPatience(10 * time.Millisecond)
	r := headgate.Request{Key: "k", Limit: parse(t, "50/h"), Cost: 1}
	h := holdUp(client)
	var lost []<-chan answer
	for range 5 { // the first, and four that do not wait for it
		lost = append(lost, ask(t.Context(), s, r))
		<-h.arrived
	}
	waiting := ask(t.Context(), s, r)
	until(t, "the fifth is late, too", func() bool { return s.Late("k") })
	if n := s.Queued("k"); n != 1 || len(h.arrived) > 0 {
		t.Errorf("%d wait behind five batches; want 1", n)
	}
	close(h.free)
	for i := range lost {
		if a := <-lost[i]; a.err != nil {
			t.Error(a.err)
		}
	}
	if a := <-waiting; a.err != nil {
		t.Errorf("%+v", a)
	}
	until(t, "no sender is left", func() bool { return s.Idle("k") })
	if d := take(t, s, r); d.Remaining != 43 {
		t.Errorf("%d are left of 50 after seven", d.Remaining)
	}
}

// A function that is told of batches and panics does so in the callers, and hurts nobody else.
func TestPanickingOnBatch(t *testing.T) {
	var calls int
	s := patient(t, newClient(t), redisstore.Options{OnBatch: func(redisstore.Batch) {
		if calls++; calls <= 6 {
			panic("told")
		}
	}})
	r := headgate.Request{Key: "k", Limit: parse(t, "50/h"), Cost: 1}
	for i := range 8 {
		ctx := context.Background()
		if i%2 == 0 {
			ctx = t.Context()
		}
		if a := <-ask(ctx, s, r); (a.panicked == "told") != (i < 6) || a.err != nil {
			t.Errorf("call %d: %+v", i, a)
		}
		until(t, "the lane is idle", func() bool { return s.Idle("k") })
	}
}

// What is given back is let in by a full queue, so that what a group took does not stay taken.
func TestGivingBackIsLetIn(t *testing.T) {
	s := patient(t, newClient(t), redisstore.Options{Queue: 1})
	if busy := s.Busy(false); !busy {
		t.Error("one more is let into a full queue")
	}
	if busy := s.Busy(true); busy {
		t.Error("what settles is not let into a full queue")
	}
}

// A group that was refused by its second key gives the first back, though the queue of that is full by then.
func TestGivingBackToAFullQueue(t *testing.T) {
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = client.Close() })
	s := patient(t, client, redisstore.Options{Queue: 1})
	limit := parse(t, "5/h")
	rs := []headgate.Request{{Key: "{1}", Limit: limit, Cost: 1}, {Key: "{2}", Limit: limit, Cost: 5}}
	for i := 3; s.SameLanes(rs[0].Key, rs[1].Key); i++ {
		rs[1].Key = "{" + strconv.Itoa(i) + "}"
	}
	take(t, s, headgate.Request{Key: rs[0].Key, Limit: limit}) // both servers know the script now
	take(t, s, rs[1])
	g := &gated{keys: map[string]chan struct{}{}, held: make(chan string, 100)}
	for _, r := range rs {
		g.keys[s.Name(r.Key, limit)] = make(chan struct{})
	}
	client.AddHook(g)
	first, second := g.keys[s.Name(rs[0].Key, limit)], g.keys[s.Name(rs[1].Key, limit)]
	group := ask(t.Context(), s, rs...)
	<-g.held
	first <- struct{}{}
	<-g.held // the second is asked for
	full := []<-chan answer{ask(t.Context(), s, rs[0])}
	<-g.held
	full = append(full, ask(t.Context(), s, rs[0]))
	close(second)
	until(t, "it is given back", func() bool { return s.Stats().Waiting == 2 || len(group) > 0 })
	close(first)
	if a := <-group; a.err != nil || a.ds[1].Allowed() {
		t.Errorf("the group: %+v", a)
	}
	for i := range full {
		if a := <-full[i]; a.err != nil {
			t.Error(a.err)
		}
	}
	if d := take(t, s, rs[0]); d.Remaining != 2 {
		t.Errorf("%d are left of 5 after three", d.Remaining)
	}
}

// A TakeAll over several servers of which nothing was sent says so, too.
func TestGroupNotSent(t *testing.T) {
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	limit := parse(t, "5/h")
	err := s.TakeAll(ctx, []headgate.Request{{Key: "a", Limit: limit, Cost: 1}, {Key: "b", Limit: limit, Cost: 1}}, make([]headgate.Decision, 2))
	if !errors.Is(err, redisstore.ErrNotSent) {
		t.Errorf("error %v", err)
	}
	if got := s.Stats(); got.NotSent != 1 {
		t.Errorf("stats %+v; want one that was not sent", got)
	}
}

// A server that does not answer holds up nobody who asks another.
func TestSilentShard(t *testing.T) {
	silent, _ := silent(t)
	client := redis.NewRing(&redis.RingOptions{
		Addrs:       map[string]string{"silent": silent, "alive": redistest.Start(t).Addr},
		ReadTimeout: time.Hour, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = client.Close() })
	s := patient(t, client, redisstore.Options{})
	limit := parse(t, "5/h")
	answered := 0
	for i := range 40 {
		r := headgate.Request{Key: strconv.Itoa(i), Limit: limit, Cost: 1}
		shard, err := client.GetShardClientForKey(s.Name(r.Key, limit))
		if err != nil {
			t.Fatal(err)
		}
		if a := ask(t.Context(), s, r); shard.Options().Addr != silent {
			answered++
			if a := <-a; a.err != nil {
				t.Error(a.err)
			}
		}
	}
	if answered == 0 || answered == 40 {
		t.Errorf("%d of 40 keys are on the server that answers", answered)
	}
}

// A hook of the client that panics does so in each caller.
func TestPanickingHook(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	r := headgate.Request{Key: "k", Limit: parse(t, "50/h"), Cost: 1}
	h := holdUp(client)
	answers := []<-chan answer{ask(t.Context(), s, r)}
	<-h.arrived
	for range 3 {
		answers = append(answers, ask(t.Context(), s, r))
	}
	h.panics.Store(true)
	close(h.free)
	for i := range answers {
		if a := <-answers[i]; a.panicked != "hook" {
			t.Errorf("caller %d: %+v", i, a)
		}
	}
	until(t, "the lane is idle", func() bool { return s.Idle("k") })
}

// A function that is told of batches and ends its goroutine has the callers answered all the same, but
// for the one in whose goroutine it was called; the lane goes on.
func TestExitingOnBatch(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{OnBatch: func(redisstore.Batch) { runtime.Goexit() }})
	r := headgate.Request{Key: "k", Limit: parse(t, "50/h"), Cost: 1}
	for round := range int64(2) {
		h := holdUp(client)
		ctx := t.Context()
		if round == 1 {
			ctx = context.Background()
		}
		answers := []<-chan answer{ask(ctx, s, r)}
		<-h.arrived
		for range 3 {
			answers = append(answers, ask(ctx, s, r))
		}
		close(h.free)
		for i := range answers {
			own := round == 1 && i == 0
			if a := <-answers[i]; a.err != nil || a.exited != own || !own && a.ds[0].Remaining != 49-4*round-int64(i) {
				t.Errorf("round %d, caller %d: %+v", round, i, a)
			}
		}
		until(t, "the lane is idle", func() bool { return s.Idle("k") })
	}
}

// A hook of the client that ends its goroutine has the callers told so, and is no answer.
func TestExitingHook(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"single": newClient(t),
		"ring":   redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { _ = client.Close() })
			s := patient(t, client, redisstore.Options{})
			limit := parse(t, "50/h")
			h := holdUp(client)
			h.exits.Store(true)
			close(h.free)
			both := []headgate.Request{{Key: "a", Limit: limit, Cost: 1}, {Key: "b", Limit: limit, Cost: 1}}
			for _, rs := range [][]headgate.Request{both[:1], both} {
				if a := <-ask(t.Context(), s, rs...); a.err == nil || !strings.Contains(a.err.Error(), "Goexit") || a.exited || a.ds[0] != (headgate.Decision{}) {
					t.Errorf("%d requests: %+v", len(rs), a)
				}
				if a := <-ask(context.Background(), s, rs...); !a.exited {
					t.Errorf("%d requests, in the caller's goroutine: %+v", len(rs), a)
				}
				until(t, "the lanes are idle", func() bool { return s.Idle("a") && s.Idle("b") })
			}
		})
	}
}
