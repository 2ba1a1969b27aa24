package redisstore_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

// forced makes a request of each key under each algorithm.
func forced(t *testing.T, keys int) []headgate.Request {
	t.Helper()
	var rs []headgate.Request
	for i := range keys {
		for _, text := range everyAlgorithm {
			rs = append(rs,
				headgate.Request{Key: strconv.Itoa(i), Limit: parse(t, text), Cost: 70,
					Force: true})
		}
	}
	rs[1].Cost = 0 // a peek
	return rs
}

// A request with headroom is for the slow path, and the plain scripts know nothing of it.
func TestHeadroomIsNotInThePlainScripts(t *testing.T) {
	s := newStore(t, newClient(t))
	if r := forced(t, 1)[0]; s.NeedsSlowPath(headgate.Request{Limit: r.Limit, Cost: 1}) ||
		!s.NeedsSlowPath(headgate.Request{Limit: r.Limit, Cost: 1, Headroom: 1}) {
		t.Error("the wrong script decides requests with headroom")
	}
	for _, text := range redisstore.PlainScripts() {
		if strings.Contains(text, "headroom") {
			t.Errorf("a plain script has headroom in it:\n%s", text)
		}
	}
}

// Forced requests together take one command, as many single ones in a batch do, and only the plain
// script, also when they do not fit.
func TestForcedRequestsTakeOneTrip(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	rs := forced(t, 20)
	ds := make([]headgate.Decision, len(rs))
	if s.NeedsSlowPath(rs...) || s.NeedsSlowPath(rs[0]) ||
		!s.NeedsSlowPath(append([]headgate.Request{{Key: "a", Cost: 1}, {Key: "b", Cost: 1}},
			rs...)...) {
		t.Error("the wrong script decides forced requests")
	}
	if err := s.TakeAll(t.Context(), rs, ds); err != nil { // the script gets known
		t.Fatal(err)
	}
	counter := new(counter)
	client.AddHook(counter)
	if err := s.TakeAll(t.Context(), rs, ds); err != nil {
		t.Fatal(err)
	}
	if n := counter.sent.Load(); n != 1 {
		t.Errorf("%d forced requests took %d commands", len(rs), n)
	}
	for i, d := range ds {
		if want := map[bool]int64{true: -40, false: 100}[rs[i].Cost > 0]; d.Remaining > want+1 ||
			d.Remaining < want {
			t.Errorf("request %d: %+v; want remaining %d", i, d, want)
		}
	}
}

// In a Cluster, forced requests are sent together: one trip to each server.
func TestForcedRequestsOverServers(t *testing.T) {
	s := newStore(t, newCluster(t))
	rs := forced(t, 40)
	ds := make([]headgate.Decision, len(rs))
	if err := s.TakeAll(t.Context(), rs, ds); err != nil { // the client knows the servers now
		t.Fatal(err)
	}
	servers := map[string]bool{}
	for _, r := range rs {
		servers[s.Server(r.Key)] = true
	}
	before := s.Stats()
	if err := s.TakeAll(t.Context(), rs, ds); err != nil {
		t.Fatal(err)
	}
	after := s.Stats()
	if trips := after.Batches - before.Batches; len(servers) < 2 || trips != int64(len(servers)) {
		t.Errorf("%d trips to %d servers", trips, len(servers))
	}
	if n := after.Requests - before.Requests; n != int64(len(rs)) {
		t.Errorf("%d requests were sent for %d", n, len(rs))
	}
	for i, d := range ds {
		if rs[i].Cost > 0 && d.Remaining > -39 {
			t.Errorf("request %d: %+v", i, d)
		}
	}
}

// A batch that meets a state which was booked ahead is sent again, and charges once.
func TestForcedRequestsAreChargedOnce(t *testing.T) {
	s := newStore(t, newClient(t))
	l := parse(t, "10/h")
	for range 2 {
		take(t, s, headgate.Request{Key: "booked", Limit: l, Cost: 10, MaxWait: 2 * time.Hour})
	}
	rs := []headgate.Request{{Key: "plain", Limit: l, Cost: 11, Force: true},
		{Key: "booked", Limit: l, Cost: 1, Force: true}}
	ds := make([]headgate.Decision, 2)
	if err := s.TakeAll(t.Context(), rs, ds); err != nil {
		t.Fatal(err)
	}
	if ds[0].Remaining != -1 || ds[1].Remaining != -1 || ds[1].RetryAfter < 71*time.Minute {
		t.Errorf("%+v", ds)
	}
}
