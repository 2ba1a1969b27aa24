package redisstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/gate"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// histories are grants around a fault, in virtual time. The clock of the server may differ from
// that of the callers.
type histories struct {
	*testing.T
	client *redis.Client
	store  *redisstore.Store
	limit  headgate.Limit
	now    time.Time     // by the clock of the callers
	ahead  time.Duration // by which the clock of the server is ahead
	starts []time.Time   // by the clock of the callers
}

func newHistories(t *testing.T, limit string) *histories {
	t.Helper()
	client := newClient(t)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return &histories{T: t, client: client, store: newStore(t, client), limit: parse(t, limit),
		now: now}
}

// book takes n tokens one by one, each as soon as it is granted, and counts those that start later.
func (h *histories) book(s *redisstore.Store, n int) (later int64) {
	server := h.now.Add(h.ahead)
	h.client.Del(h.Context(), "time")
	h.client.RPush(h.Context(), "time", server.Unix(), server.Nanosecond()/1000)
	for range n {
		start := new(time.Time)
		take(h.T, s, headgate.Request{Key: "k", Limit: h.limit, Cost: 1, MaxWait: time.Hour,
			Start: start})
		if start.After(server) {
			later++
		}
		h.starts = append(h.starts, start.Add(-h.ahead))
	}
	return later
}

// grants is the most that one history grants within t, whose windows begin at any time.
func grants(l headgate.Limit, t time.Duration) int64 {
	n, windows := l.Capacity(), int64(t/l.Period())
	switch l.Algorithm() {
	case headgate.AlgorithmFixedWindow:
		if t > 0 {
			windows++ // which begins within t
		}
		return n + n*windows
	case headgate.AlgorithmSlidingLog:
		return n + n*windows
	case headgate.AlgorithmSlidingWindow:
		return n + n*int64(t)/int64(l.Period())
	default:
		return n + l.Refill()*int64(t)/int64(l.Period())
	}
}

// excess is by how much the grants of some interval exceed those of one history.
func (h *histories) excess() (most int64) {
	slices.SortFunc(h.starts, time.Time.Compare)
	for i, from := range h.starts {
		for j, until := range h.starts[i:] {
			most = max(most, int64(j+1)-grants(h.limit, until.Sub(from)))
		}
	}
	return most
}

// reaches wants a bound to hold, and to be reached within a tenth.
func reaches(t *testing.T, what string, got, bound int64) {
	t.Helper()
	if got > bound || got < bound-bound/10 {
		t.Errorf("%s: %d; want the bound, %d, and a tenth less at least", what, got, bound)
	}
}

// A loss of data adds at most what the limit grants at once, and what was booked ahead: those that
// hold a start time use it beside the start times that are booked anew.
func TestLossOfData(t *testing.T) {
	redisstore.VirtualTime(t)
	for _, c := range []struct {
		limit string
		n     int
	}{
		{"10/s burst 1", 30}, {"200/s burst 10", 240}, {"10/s", 10}, {"10/s", 100},
		{"10/s sliding-window", 10},
		{"20/s sliding-window", 500}, {"10/s sliding-log", 10}, {"10/s sliding-log", 100},
	} {
		for lost, lose := range map[string]func(h *histories){
			"all data": func(h *histories) { h.client.FlushAll(t.Context()) },
			"the key": func(h *histories) {
				h.client.Del(t.Context(), h.store.Name("k", h.limit))
			},
		} {
			h := newHistories(t, c.limit)
			booked := h.book(h.store, c.n)
			lose(h)
			h.now = h.now.Add(time.Millisecond)
			h.book(h.store, c.n)
			reaches(t, c.limit+" loses "+lost, h.excess(), h.limit.Capacity()+booked)
		}
	}
}

// A fixed window adds a window for each loss, and two if the clock of the new server differs, so
// that its windows begin at other times.
func TestLossOfDataInFixedWindows(t *testing.T) {
	redisstore.VirtualTime(t)
	for ahead, windows := range map[time.Duration]int64{0: 1, 998 * time.Millisecond: 2} {
		h := newHistories(t, "10/s fixed-window")
		for _, passed := range []int{999, 1, 1, 1} { // two windows of each history
			h.now = h.now.Add(time.Duration(passed) * time.Millisecond)
			if len(h.starts) == 20 {
				h.client.FlushAll(t.Context())
				h.ahead = ahead
			}
			h.book(h.store, 10)
		}
		reaches(t, "a clock that is ahead by "+ahead.String(), h.excess(), 10*windows)
	}
}

// A new primary whose clock is ahead grants as if the time had passed: at most one history more.
// One whose clock is behind by d denies the keys in use for d longer.
func TestClockOfANewPrimary(t *testing.T) {
	redisstore.VirtualTime(t)
	const differs = 5 * time.Second
	for _, limit := range []string{"10/s", "100/s burst 7", "10/s sliding-window",
		"10/s sliding-log"} {
		h := newHistories(t, limit)
		n := int(h.limit.Capacity())
		h.book(h.store, n)
		h.ahead = differs
		h.book(h.store, n)
		reaches(t, limit+", a clock that is ahead", h.excess(), h.limit.Capacity())

		h = newHistories(t, limit)
		h.book(h.store, n)
		before := take(t, h.store, headgate.Request{Key: "k", Limit: h.limit, Cost: 1})
		h.ahead = -differs
		h.book(h.store, 0)
		after := take(t, h.store, headgate.Request{Key: "k", Limit: h.limit, Cost: 1})
		reaches(t, limit+", a clock that is behind", int64(after.RetryAfter-before.RetryAfter),
			int64(differs))
	}
}

// A primary that is cut off grants beside the one that was promoted: twice the rate meanwhile, and
// one more history.
func TestTwoPrimaries(t *testing.T) {
	redisstore.VirtualTime(t)
	h := newHistories(t, "10/s burst 5")
	promoted, err := redisstore.New(h.client, redisstore.Options{Prefix: "promoted:"})
	if err != nil {
		t.Fatal(err)
	}
	const seconds = 20
	for range 10 * seconds {
		h.book(h.store, 1)
		h.book(promoted, 1)
		h.now = h.now.Add(100 * time.Millisecond)
	}
	reaches(t, "two primaries", int64(len(h.starts)), 2*(h.limit.Capacity()+10*seconds))
	reaches(t, "two primaries", h.excess(), h.limit.Capacity()+10*seconds)
}

// Each loss of data lets n more permits be in use, once, and n more callers pass a shared gate.
func TestLossOfPermits(t *testing.T) {
	const n, losses = 20, 3
	client := newClient(t)
	s := newStore(t, client)
	permits, err := concurrency.New(s, n, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := gate.NewShared(s, "gate", n, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	inUse, passed := int64(0), int64(0)
	for range 1 + losses {
		for range n + 1 {
			if _, d, err := permits.Acquire(t.Context(), "k"); err != nil {
				t.Fatal(err)
			} else if d.Allowed() {
				inUse++
			}
			if ok, err := shared.TryWait(t.Context(), 0); err != nil {
				t.Fatal(err)
			} else if ok {
				passed++
			}
		}
		client.FlushAll(t.Context())
	}
	reaches(t, "permits in use", inUse, n+losses*n)
	reaches(t, "callers passed", passed, n+losses*n)
}
