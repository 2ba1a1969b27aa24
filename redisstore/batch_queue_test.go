package redisstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// A call returns when its context ends: not charged if the request has not been sent, and charged
// if it has. The error says which, and Stats counts both.
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
	if a := <-underWay; !errors.Is(a.err, context.Canceled) ||
		errors.Is(a.err, redisstore.ErrNotSent) || a.err.Error() != "redisstore: context canceled" {
		t.Errorf("under way: %v", a.err)
	}
	if a := <-waiting; !errors.Is(a.err, context.Canceled) ||
		!errors.Is(a.err, redisstore.ErrNotSent) ||
		a.err.Error() != "redisstore: context canceled; the request was not sent" {
		t.Errorf("waiting: %v", a.err)
	}
	close(h.free)
	if d := take(t, s, r); d.Remaining != 3 {
		t.Errorf("%d are left of 5 after one that was sent, one that was not and one more",
			d.Remaining)
	}
	if got := s.Stats(); got.NotSent != 1 || got.Unanswered != 1 || got.Waiting != 0 ||
		got.Callers != 3 || got.Requests != 2 {
		t.Errorf("stats %+v", got)
	}
}

// Calls that have left take no room in the queue.
func TestLeaversTakeNoRoom(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{Queue: 2})
	r := headgate.Request{Key: "k", Limit: parse(t, "1/10h burst 50000"), Cost: 1}
	h := holdUp(client)
	first := ask(t.Context(), s, r)
	<-h.arrived
	for range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		a := ask(ctx, s, r)
		cancel()
		if err := (<-a).err; !errors.Is(err, redisstore.ErrNotSent) {
			t.Fatal(err)
		}
	}
	if n := s.Stats().Waiting; n > 0 {
		t.Errorf("%d wait, and all have left", n)
	}
	last := ask(t.Context(), s, r)
	close(h.free)
	if a, b := <-first, <-last; a.err != nil || b.err != nil || b.ds[0].Remaining != 49998 {
		t.Errorf("%+v, %+v", a, b)
	}
}

// A full queue rejects calls at once, and accepts them again when there is room.
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

// A trip that is not answered in time delays others no longer: the next caller sends all that wait.
// That happens to a few trips at once, and the calls after them wait.
func TestLateBatches(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	s.SetPatience(0)
	r := headgate.Request{Key: "k", Limit: parse(t, "50/h"), Cost: 1}
	h := holdUp(client)
	var late []<-chan answer
	for range 5 {
		late = append(late, ask(t.Context(), s, r))
		<-h.arrived
	}
	s.SetPatience(time.Hour)
	late = append(late, ask(t.Context(), s, r), ask(t.Context(), s, r))
	if n := s.Stats().Waiting; n != 2 || len(h.arrived) > 0 {
		t.Errorf("%d wait behind five batches; want 2", n)
	}
	s.SetPatience(0)
	late = append(late, ask(t.Context(), s, r)) // four are late already
	if n := s.Stats().Waiting; n != 3 || len(h.arrived) > 0 {
		t.Errorf("%d wait behind five batches; want 3", n)
	}
	close(h.free)
	for i := range late {
		if a := <-late[i]; a.err != nil {
			t.Error(a.err)
		}
	}
	until(t, "no sender is left", func() bool { return s.Idle("k") })
	if d := take(t, s, r); d.Remaining != 41 {
		t.Errorf("%d are left of 50 after nine", d.Remaining)
	}
}

// While so many ask for one key that a trip is full of it, another key has its turn.
func TestAHotKeyLeavesRoom(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	limit, keys := parse(t, "1/10h burst 50000"), redisstore.KeysApart(2)
	hot := headgate.Request{Key: keys[0], Limit: limit, Cost: 1}
	cold := headgate.Request{Key: keys[1], Limit: limit, Cost: 1}
	take(t, s, hot)
	until(t, "the queue is idle", func() bool { return s.Idle(hot.Key) })
	h := holdUp(client)
	answers := []<-chan answer{ask(t.Context(), s, hot)}
	<-h.arrived
	for range 600 {
		answers = append(answers, ask(t.Context(), s, hot))
	}
	s.SetPace(hot.Key, time.Microsecond) // one trip at a time
	cold1 := ask(t.Context(), s, cold)
	for range 2 { // the trip under way, and one of 256 for the hot key at most
		h.free <- struct{}{}
		<-h.arrived
	}
	h.free <- struct{}{}
	if a := <-cold1; a.err != nil {
		t.Error(a.err)
	}
	close(h.free)
	for i := range answers {
		if a := <-answers[i]; a.err != nil || a.ds[0].Remaining != 49998-int64(i) {
			t.Errorf("call %d: %+v", i, a)
		}
	}
}

// Calls wait for the trip under way that has others of their key, so that the requests of a key are
// decided in the order of their calls. Next door, other keys wait as well, until so many calls are
// ready that a second trip is worthwhile.
func TestTripsNextDoor(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	request := func(key string) headgate.Request {
		return headgate.Request{Key: key, Limit: parse(t, "1/10h burst 500"), Cost: 1}
	}
	keys := redisstore.KeysApart(3)
	warm, key, other := keys[0], keys[1], keys[2]
	take(t, s, request(warm)) // the server knows the script now
	until(t, "the queue is idle", func() bool { return s.Idle(warm) })
	s.SetPace(warm, time.Microsecond)
	h := holdUp(client)
	answers := []<-chan answer{ask(t.Context(), s, request(key))}
	<-h.arrived
	for range 60 {
		answers = append(answers, ask(t.Context(), s, request(key)))
	}
	var others []<-chan answer
	for range 47 {
		others = append(others, ask(t.Context(), s, request(other)))
	}
	if len(h.arrived) > 0 {
		t.Error("a second trip left for 47 calls that are ready, and 60 that are not")
	}
	others = append(others, ask(t.Context(), s, request(other)))
	<-h.arrived
	close(h.free)
	for key, answers := range map[string][]<-chan answer{key: answers, other: others} {
		for i := range answers {
			if a := <-answers[i]; a.err != nil || a.ds[0].Remaining != 499-int64(i) {
				t.Errorf("call %d of %s: %+v", i, key, a)
			}
		}
	}
}

// Over a network, calls of other keys leave at once, until so many trips are under way that the
// next one leaves some time later.
func TestTripsOverANetwork(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	keys := redisstore.KeysApart(9)
	request := func(i int) headgate.Request {
		return headgate.Request{Key: keys[i], Limit: parse(t, "1/10h burst 500"), Cost: 1}
	}
	take(t, s, request(0)) // the server knows the script now
	until(t, "the queue is idle", func() bool { return s.Idle(keys[0]) })
	s.SetPace(keys[0], time.Hour)
	h := holdUp(client)
	var answers []<-chan answer
	for i := range 8 {
		answers = append(answers, ask(t.Context(), s, request(i)))
		<-h.arrived
	}
	answers = append(answers, ask(t.Context(), s, request(0)), ask(t.Context(), s, request(8)))
	if n := s.Stats().Waiting; n != 2 || len(h.arrived) > 0 {
		t.Errorf("%d wait; want one of a key that is under way, and one while eight trips are", n)
	}
	close(h.free)
	for i := range answers {
		if a := <-answers[i]; a.err != nil {
			t.Error(a.err)
		}
	}
}

// Over a slow network, on which many trips are under way, the requests of each key are decided in
// the order of their calls.
func TestOrderOverANetwork(t *testing.T) {
	proxy := redistest.StartProxy(t, sharedServer(t).Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { _ = client.Close() })
	s := patient(t, client, redisstore.Options{})
	limit := parse(t, "1/10h burst 50000")
	take(t, s, headgate.Request{Key: "warm", Limit: limit})
	proxy.Delay(3 * time.Millisecond)
	trips := new(together)
	client.AddHook(trips)
	random := rand.New(rand.NewPCG(1, 2))
	byKey := make(map[string][]<-chan answer)
	for range 4000 {
		key := strconv.Itoa(int(random.ExpFloat64() * 20))
		byKey[key] = append(byKey[key],
			ask(t.Context(), s, headgate.Request{Key: key, Limit: limit, Cost: 1}))
	}
	for key, answers := range byKey {
		for i := range answers {
			if a := <-answers[i]; a.err != nil || a.ds[0].Remaining != 49999-int64(i) {
				t.Fatalf("call %d of %s: %+v", i, key, a)
			}
		}
	}
	if n := trips.most.Load(); n < 3 {
		t.Errorf("%d trips were under way at once; want some", n)
	}
}

// twoServers returns a store of two servers, whose queues have room for one, and two requests at
// 5/h, each of a key on another server. The calls for both are held up from now on.
func twoServers(
	t *testing.T, rs ...headgate.Request,
) (*redisstore.Store, *gated, []headgate.Request) {
	t.Helper()
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{
		"a": sharedServer(t).Addr, "b": redistest.Start(t).Addr,
	}})
	t.Cleanup(func() { _ = client.Close() })
	s := patient(t, client, redisstore.Options{Queue: 1})
	g := &gated{keys: map[string]chan struct{}{}, held: make(chan string, 100)}
	rs[0].Key = "{0}"
	for i := 1; rs[1].Key == "" || s.SameQueue(rs[0].Key, rs[1].Key); i++ {
		rs[1].Key = "{" + strconv.Itoa(i) + "}"
	}
	for i := range rs {
		rs[i].Limit = parse(t, "5/h")
		name := s.Name(rs[i].Key, rs[i].Limit)
		g.keys[name] = make(chan struct{})
		take(t, s, headgate.Request{Key: rs[i].Key, Limit: rs[i].Limit}) // it knows the script now
		until(t, "the queue is idle", func() bool { return s.Idle(name) })
	}
	client.AddHook(g)
	return s, g, rs
}

// gate lets the calls of r go.
func (g *gated) gate(s *redisstore.Store, r headgate.Request) chan struct{} {
	return g.keys[s.Name(r.Key, r.Limit)]
}

// A group that its second key denies refunds the first, though the queue of that is full by then.
func TestGivingBackToAFullQueue(t *testing.T) {
	s, g, rs := twoServers(t, headgate.Request{Cost: 1}, headgate.Request{Cost: 1})
	rs[1].Cost = 6 // more than there is
	first, second := g.gate(s, rs[0]), g.gate(s, rs[1])
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

// Forced requests over several servers are all sent, or none, and the error says which: if the
// first queue is full, none is charged; if the second server hangs, the first is charged.
func TestForcedOverServersThatFail(t *testing.T) {
	r := headgate.Request{Cost: 1, Force: true}
	s, g, rs := twoServers(t, r, r)
	first, second := g.gate(s, rs[0]), g.gate(s, rs[1])
	full := []<-chan answer{ask(t.Context(), s, rs[0])}
	<-g.held
	full = append(full, ask(t.Context(), s, rs[0]))
	if err := s.TakeAll(t.Context(), rs, make([]headgate.Decision, 2)); !errors.Is(err,
		redisstore.ErrBusy) {
		t.Errorf("the first queue is full: %v", err)
	}
	close(first)
	for i := range full {
		if a := <-full[i]; a.err != nil {
			t.Error(a.err)
		}
	}
	hung := ask(t.Context(), s, rs[1])
	name := s.Name(rs[1].Key, rs[1].Limit)
	until(t, "the second is asked", func() bool { return <-g.held == name })
	ctx, cancel := context.WithCancel(t.Context())
	both := ask(ctx, s, rs...)
	until(t, "the first is charged", func() bool {
		if s.Stats().Waiting != 1 {
			return false
		}
		// While the first waits, it fills its queue, and the peek is refused.
		d, err := s.Take(t.Context(), headgate.Request{Key: rs[0].Key, Limit: rs[0].Limit})
		return err == nil && d.Remaining == 2
	})
	cancel()
	if a := <-both; !errors.Is(a.err, context.Canceled) || errors.Is(a.err, redisstore.ErrNotSent) {
		t.Errorf("the second server hangs: %v", a.err)
	}
	close(second)
	if a := <-hung; a.err != nil || a.ds[0].Remaining != 4 {
		t.Errorf("%+v; want one charge", a)
	}
}

// A TakeAll over several servers of which nothing was sent says so, too.
func TestGroupNotSent(t *testing.T) {
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": sharedServer(t).Addr}})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	limit := parse(t, "5/h")
	err := s.TakeAll(ctx, []headgate.Request{{Key: "a", Limit: limit, Cost: 1},
		{Key: "b", Limit: limit, Cost: 1}}, make([]headgate.Decision, 2))
	if !errors.Is(err, redisstore.ErrNotSent) {
		t.Errorf("error %v", err)
	}
	if got := s.Stats(); got.NotSent != 1 {
		t.Errorf("stats %+v; want one that was not sent", got)
	}
}

// A server that does not answer delays no call to another.
func TestSilentShard(t *testing.T) {
	silent, _ := silent(t)
	client := redis.NewRing(&redis.RingOptions{
		Addrs:       map[string]string{"silent": silent, "alive": sharedServer(t).Addr},
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
