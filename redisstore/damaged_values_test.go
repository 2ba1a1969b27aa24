package redisstore_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// A value that looks like a state, with numbers that no state has, does not make a group half
// charged: all its requests are charged, or none.
func TestGarbageChargesNoSibling(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	sibling := parse(t, "sibling=1000000/h fixed-window")
	refused, granted := 0, 0
	for _, texts := range [][2]string{
		{"a=7/3s", "a=9/2s"}, {"a=5/2s stepped", "a=8/s stepped"},
		{"a=6/s fixed-window", "a=9/s fixed-window"},
		{"a=8/2s sliding-window", "a=5/2s sliding-window"},
		{"a=9/s sliding-log", "a=6/s sliding-log"},
	} {
		limits := [2]headgate.Limit{parse(t, texts[0]), parse(t, texts[1])}
		name := s.Name("k", limits[0])
		used := take(t, s, headgate.Request{Key: "k", Limit: sibling}).Remaining
		for round := range 225 {
			random := rand.New(rand.NewPCG(uint64(round), 6))
			value := garbage(t, random, client, name, func(r headgate.Request) {
				r.Key, r.Limit = "k", limits[random.IntN(2)]
				take(t, s, r)
			})
			if round%3 == 0 {
				forceGarbage(t, s, random, limits[0])
				continue
			}
			rs := []headgate.Request{{Key: "k", Limit: sibling, Cost: 1},
				request(random, limits[random.IntN(2)])}
			ds := make([]headgate.Decision, 2)
			err := s.TakeAll(t.Context(), rs, ds)
			if err != nil && !strings.HasPrefix(err.Error(), "redisstore: BADSTATE ") {
				t.Fatalf("%s, round %d: %x, %+v: %v", texts[0], round, value, rs[1], err)
			}
			for i, d := range ds {
				if err == nil &&
					(d.Remaining < 0 || d.Remaining > rs[i].Limit.Capacity() || d.RetryAfter < 0 ||
						d.ResetAfter < 0) {
					t.Fatalf("%s, round %d: %x, %+v: %+v", texts[0], round, value, rs[i], d)
				}
			}
			if err == nil && headgate.Granted(rs, ds) {
				used--
				granted++
			} else {
				refused++
			}
			if d := take(t, s, headgate.Request{Key: "k", Limit: sibling}); d.Remaining != used {
				t.Fatalf("%s, round %d: %x, %+v: error %v, answers %+v: what goes with it has %d "+
					"left; want %d", texts[0], round, value, rs[1], err, ds, d.Remaining, used)
			}
		}
	}
	if refused < 75 || granted < 75 {
		t.Errorf("%d refused and %d granted tell nothing", refused, granted)
	}
}

// forceGarbage charges a value that may be no state of l: that is an error, or a decision.
func forceGarbage(t *testing.T, s *redisstore.Store, random *rand.Rand, l headgate.Limit) {
	t.Helper()
	r := headgate.Request{Key: "k", Limit: l, Force: true,
		Cost: []int64{1, 3, 10, 1 << 40, math.MaxInt64}[random.IntN(5)]}
	for range 2 {
		d, err := s.Take(t.Context(), r)
		if err != nil && !strings.HasPrefix(err.Error(), "redisstore: BADSTATE ") ||
			d.Remaining < -1<<53 || d.Remaining > l.Capacity() || d.RetryAfter < 0 ||
			d.ResetAfter < 0 {
			t.Fatalf("%+v: %+v, error %v", r, d, err)
		}
	}
}

// garbage puts a value at name that take left, with some of its bytes changed.
func garbage(
	t *testing.T, random *rand.Rand, client *redis.Client, name string, take func(headgate.Request),
) []byte {
	t.Helper()
	client.Del(t.Context(), name)
	for range 1 + random.IntN(3) {
		take(headgate.Request{Cost: 1 + random.Int64N(4),
			MaxWait: time.Duration(random.IntN(2)) * time.Minute})
	}
	value := slices.Clone([]byte(client.Get(t.Context(), name).Val()))
	for range random.IntN(4) {
		if len(value) == 0 {
			break
		}
		from := random.IntN(len(value))
		fill := []byte{0, 1, 0x7f, 0xff, byte(random.Uint32())}[random.IntN(5)]
		for i := range value[from:min(from+1+random.IntN(9), len(value))] {
			value[from+i] = fill
		}
	}
	client.Set(t.Context(), name, value, 0)
	return value
}

func request(random *rand.Rand, l headgate.Limit) headgate.Request {
	return headgate.Request{
		Key: "k", Limit: l, Cost: []int64{1, 1, 1, 3, 0, -1}[random.IntN(6)],
		MaxWait: time.Duration(random.IntN(2)) * time.Minute,
	}
}

// A log that counts more than it holds grants nothing that it does not charge, and is in its
// initial state once the window of what it holds is over.
func TestLogThatCountsMoreThanItHolds(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	l := parse(t, "a=9/s sliding-log")
	start := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	name := s.Name("k", l)
	for _, c := range []struct {
		cost  int64
		after time.Duration
		retry time.Duration
		left  int64
	}{
		{1, 300 * time.Millisecond, 700 * time.Millisecond, 0},
		{1, time.Second, 0, 8},
		{0, time.Second, 0, 9},
		{-1, 300 * time.Millisecond, 0, 0}, // 99 are counted
	} {
		at := uint64(start.UnixMicro())
		value := little(little(little(little(nil, 5, 1), at, 7), 100, 3), at/1e6+100, 5)
		client.Set(t.Context(), name, little(little(value, at, 7), 1, 2), 0)
		d := take(t, s, headgate.Request{Key: "k", Limit: l, Cost: c.cost, At: start.Add(c.after)})
		if d.RetryAfter != c.retry || d.Remaining != c.left {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

func little(b []byte, n uint64, size int) []byte {
	for range size {
		b, n = append(b, byte(n)), n>>8
	}
	return b
}
