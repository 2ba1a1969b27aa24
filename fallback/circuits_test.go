package fallback_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
)

// sharded has a server for each first letter of a key.
type sharded struct{ servers map[string]*breakable }

func (s sharded) Servers() func(key string) string {
	return func(key string) string { return key[:1] }
}

func (s sharded) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	return s.servers[r.Key[:1]].Take(ctx, r)
}

func (s sharded) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) (err error) {
	for i := 0; i < len(rs) && err == nil; i++ {
		ds[i], err = s.Take(ctx, rs[i])
	}
	return err
}

func (s sharded) Reset(ctx context.Context, key string, l headgate.Limit) error {
	return s.servers[key[:1]].Reset(ctx, key, l)
}

// While a server fails, a request for its key and for keys of others is limited by the others, in
// every mode, and it is charged to none of them if one denies.
func TestARequestForKeysOfSeveralServers(t *testing.T) {
	for _, c := range []struct {
		options fallback.Options
		granted int
	}{
		{fallback.Options{Mode: fallback.Open}, 2},
		{fallback.Options{Mode: fallback.Local, Instances: of(1)}, 2},
		{fallback.Options{Mode: fallback.Closed}, 0},
	} {
		store := sharded{map[string]*breakable{"a": newBreakable(), "b": newBreakable(), "c": newBreakable()}}
		c.options.Failures, c.options.OpenTimeout = 1, time.Hour
		s := newStore(t, store, c.options)
		all := func(limit string) []headgate.Request {
			rs := []headgate.Request{request(limit), request("5/h"), request("2/h")}
			for i := range rs {
				rs[i].Key = string(rune('a'+i)) + limit
			}
			return rs
		}
		store.servers["a"].how.Store(fails)
		takeAll(t, s, all("9/h")...) // opens the circuit of the first
		rs := all("7/h")
		granted := 0
		for range 4 {
			if headgate.Granted(rs, takeAll(t, s, rs...)) {
				granted++
			}
		}
		if granted != c.granted {
			t.Errorf("%+v: granted %d of 4; want %d", c.options.Mode, granted, c.granted)
		}
		for i, want := range map[bool][]int64{true: {7, 5, 2}, false: {5, 3, 0}}[c.options.Mode == fallback.Closed] {
			rs[i].Cost = 0
			if d := take(t, s, rs[i]); d.Remaining != want && (i > 0 || c.options.Mode == fallback.Local) ||
				d.Degraded() != (i == 0) {
				t.Errorf("%+v: %s: %+v; want %d left", c.options.Mode, rs[i].Key, d, want)
			}
		}
	}
}

// In a large Cluster, one server that fails is the only one that does not decide, whatever servers
// the keys of a request are on, and it is not called much more often.
func TestManyServersOfWhichOneFails(t *testing.T) {
	const servers = 30
	store := sharded{make(map[string]*breakable)}
	for i := range servers {
		store.servers[string(rune('A'+i))] = newBreakable()
	}
	store.servers["A"].how.Store(fails)
	s := newStore(t, store, fallback.Options{Mode: fallback.Open, OpenTimeout: time.Hour})
	wrong := 0
	for i := range servers {
		for j := range i {
			for k := range j {
				rs := []headgate.Request{request("9/h"), request("9/h"), request("9/h")}
				for at, server := range []int{k, j, i} {
					rs[at].Key, rs[at].Cost = string(rune('A'+server)), 0
				}
				for at, d := range takeAll(t, s, rs...) {
					if d.Degraded() != (rs[at].Key == "A") {
						wrong++
					}
				}
			}
		}
	}
	// The first call, for keys of three servers, does not say which one failed.
	if n := store.servers["A"].calls.Load(); wrong > 2 || n > 10 {
		t.Errorf("%d decisions by the wrong one; %d calls of the server that fails", wrong, n)
	}
}

// An empty group is granted, also by a Cluster.
func TestAnEmptyGroup(t *testing.T) {
	takeAll(t, newStore(t, sharded{}, fallback.Options{Mode: fallback.Open}))
}
