package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/redisstore"
)

// scan returns the states that match, in the order of their keys and limits.
func scan(t *testing.T, s *redisstore.Store, match string) (all []redisstore.State) {
	t.Helper()
	for state, err := range s.Scan(t.Context(), match) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, state)
	}
	slices.SortFunc(all, func(a, b redisstore.State) int {
		return strings.Compare(a.Key+"\x00"+a.Limit, b.Key+"\x00"+b.Limit)
	})
	return all
}

// The state of each algorithm is what was charged, under the ID of its limit.
func TestScanStates(t *testing.T) {
	s := newStore(t, newClient(t))
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	want := []redisstore.State{{Key: "k", Used: 2}} // the permits
	for _, c := range []struct {
		limit      string
		used, full int64
	}{
		{"10/10us", 3, 10},
		{"5/h stepped", 3, 5},
		{"7/h fixed-window", 3, 0},
		{"8/h sliding-window", 3, 0},
		{"9/h sliding-log", 3, 0},
		{"api=10/10us burst 20", 3, 20},
		{"api=9/15m sliding-log", 3, 0},
	} {
		l := parse(t, c.limit)
		take(t, s, headgate.Request{Key: "k", Limit: l, Cost: 3, At: at})
		want = append(want, redisstore.State{
			Key: "k", Limit: l.ID(), Algorithm: l.Algorithm(), Used: c.used, Full: c.full,
			Changed: at,
		})
	}
	r := concurrency.Request{Key: "k", Limit: 5, TTL: time.Hour}
	for i, ago := range []time.Duration{0, 0, time.Hour + time.Second} { // the last has expired
		r.ID[0], r.At = byte(i+1), time.Now().Add(-ago)
		if d, err := s.AcquirePermit(t.Context(), r); err != nil || !d.Allowed() {
			t.Fatal(d, err)
		}
	}
	got := scan(t, s, "*")
	for i := range got {
		if got[i].Limit != "" {
			got[i].Changed = got[i].Changed.UTC()
		}
	}
	slices.SortFunc(want, func(a, b redisstore.State) int {
		return strings.Compare(a.Limit, b.Limit)
	})
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A pattern is one of keys, whatever bytes these have, and whatever else the server keeps.
func TestScanMatches(t *testing.T) {
	client := newClient(t)
	var stores []*redisstore.Store
	for _, prefix := range []string{t.Name() + `*[a]\:`, t.Name() + `x[a]\:`} {
		s, err := redisstore.New(client, redisstore.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	s, other := stores[0], stores[1]
	limit := parse(t, "5/h")
	keys := []string{"", "%", "%25", "a}:b", "line\n", "user:1", "user:2", "user:22", "\xff*"}
	for _, key := range keys {
		take(t, s, headgate.Request{Key: key, Limit: limit, Cost: 1})
	}
	take(t, other, headgate.Request{Key: "user:3", Limit: limit, Cost: 1})
	prefix := s.Prefix()
	for name, value := range map[string]string{
		prefix + "{user:4}:": "x", prefix + "user:5": "x", prefix + "{user:6}:5/h": "no state",
		prefix + "{user:7}:@else": "\x03" + strings.Repeat(".", 19), prefix + "{user:8}:5/h": "",
		prefix + "{user:8}:@permits": "\x02",
	} {
		if err := client.Set(t.Context(), name, value, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.HSet(t.Context(), prefix+"{user:9}:5/h", "f", "v").Err(); err != nil {
		t.Fatal(err)
	}
	for match, want := range map[string][]string{
		"*": keys, "user:*": {"user:1", "user:2", "user:22"}, "user:?": {"user:1", "user:2"},
		"user:[12]": {"user:1", "user:2"}, "a}:*": {"a}:b"}, "%": {"%"}, "": {""}, `*\*`: {"\xff*"},
		"user": nil, "line?": {"line\n"},
	} {
		var got []string
		for _, state := range scan(t, s, match) {
			got = append(got, state.Key)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q matches %q; want %q", match, got, want)
		}
	}
}

// All keys of all servers of a Cluster are found, in more than one step.
func TestScanCluster(t *testing.T) {
	s := newStore(t, newCluster(t))
	limit := parse(t, "5/h")
	want := make(map[string]bool)
	for i := range 2000 {
		key := fmt.Sprint(i)
		take(t, s, headgate.Request{Key: key, Limit: limit, Cost: 1})
		want[key] = true
	}
	for _, state := range scan(t, s, "*") {
		delete(want, state.Key)
	}
	if len(want) > 0 {
		t.Errorf("%d keys are missing, such as %v", len(want), want)
	}
}

// A loop over the states may end early, and an error ends it.
func TestScanEnds(t *testing.T) {
	s := newStore(t, newClient(t))
	for i := range 3 {
		take(t, s, headgate.Request{Key: fmt.Sprint(i), Limit: parse(t, "5/h"), Cost: 1})
	}
	for _, err := range s.Scan(t.Context(), "*") {
		if err != nil {
			t.Error(err)
		}
		break
	}
	closed, err := redisstore.Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	n := 0
	for _, err := range closed.Scan(t.Context(), "*") {
		n++
		if err == nil || !strings.HasPrefix(err.Error(), "redisstore: ") {
			t.Errorf("no server: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("no server: %d errors; want 1", n)
	}
}
