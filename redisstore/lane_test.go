package redisstore_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
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

// A batch that is not answered is left to itself: others are answered without it.
func TestLostBatches(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	s.SetPatience(0)
	r := headgate.Request{Key: "k", Limit: parse(t, "50/h"), Cost: 1}
	h := holdUp(client)
	var lost []<-chan answer
	for range 5 { // the first, and four who do not wait for those before
		lost = append(lost, ask(t.Context(), s, r))
		<-h.arrived
	}
	waiting := ask(t.Context(), s, r)
	if n := s.Queued("k"); n != 1 {
		t.Errorf("%d wait behind five batches that are under way; want 1", n)
	}
	h.free <- struct{}{}
	until(t, "one more batch is sent, by the last of the five or for the next caller", func() bool {
		select {
		case h.free <- struct{}{}:
		case <-h.arrived:
			return true
		default:
		}
		return false
	})
	close(h.free)
	for i := range lost {
		if a := <-lost[i]; a.err != nil {
			t.Error(a.err)
		}
	}
	if a := <-waiting; a.err != nil || a.ds[0].Remaining < 44 {
		t.Errorf("%+v", a)
	}
	until(t, "no sender is left", func() bool { return s.Idle("k") })
	s.SetPatience(math.MaxInt64)
	if d := take(t, s, r); d.Remaining != 43 {
		t.Errorf("%d are left of 50 after seven", d.Remaining)
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
