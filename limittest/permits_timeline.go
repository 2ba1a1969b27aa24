package limittest

import (
	"testing"
	"time"

	"github.com/headgate/headgate/concurrency"
)

// timeline makes calls for the permits of one key, with a TTL of a minute, at times since epoch.
type timeline struct {
	*testing.T

	store concurrency.Store
	limit int64
}

func (t *timeline) request(id byte, at time.Duration) concurrency.Request {
	return concurrency.Request{
		Key: "k", ID: concurrency.PermitID{id}, Limit: t.limit, TTL: time.Minute, At: epoch.Add(at),
	}
}

func (t *timeline) acquire(id byte, at, retry time.Duration, inUse int64) {
	t.Helper()
	want := concurrency.Decision{Limit: t.limit, InUse: inUse, RetryAfter: retry}
	if d, err := t.store.AcquirePermit(t.Context(), t.request(id, at)); d != want || err != nil {
		t.Errorf("acquire %d at %s: %+v, %v; want %+v", id, at, d, err, want)
	}
}

func (t *timeline) renew(id byte, at time.Duration, want bool) {
	t.Helper()
	held, err := t.store.RenewPermit(t.Context(), t.request(id, at))
	if held != want || err != nil {
		t.Errorf("renew %d at %s: %t, %v; want %t", id, at, held, err, want)
	}
}

func (t *timeline) release(id byte, at, after time.Duration, want bool) {
	t.Helper()
	r := t.request(id, at)
	r.After = after
	if held, err := t.store.ReleasePermit(t.Context(), r); held != want || err != nil {
		t.Errorf("release %d at %s: %t, %v; want %t", id, at, held, err, want)
	}
}

// lost checks that a permit is not in use any more.
func (t *timeline) lost(id byte, at time.Duration) {
	t.Helper()
	t.renew(id, at, false)
	t.release(id, at, 0, false)
}

func permitsExpire(test *testing.T, s concurrency.Store) {
	t := timeline{test, s, 2}
	t.acquire(1, 0, 0, 1)
	t.acquire(2, 10*time.Second, 0, 2)
	t.acquire(2, 11*time.Second, 0, 2) // the same permit: the answer was lost
	t.renew(1, 20*time.Second, true)
	t.acquire(3, 20*time.Second, 51*time.Second, 2)
	t.acquire(3, 71*time.Second-time.Microsecond, time.Microsecond, 2)
	t.acquire(3, 71*time.Second, 0, 2)
	t.lost(2, 71*time.Second) // its place is taken
	t.lost(1, 80*time.Second) // its place is free, and it is lost nevertheless
	t.acquire(4, 80*time.Second, 0, 2)
	t.acquire(5, 80*time.Second, 51*time.Second, 2)
}

// permitsReleasedLater stay in use for the time that their release names, and no call changes that
// any more.
func permitsReleasedLater(test *testing.T, s concurrency.Store) {
	t := timeline{test, s, 2}
	t.acquire(1, 0, 0, 1)
	t.acquire(2, 0, 0, 2)
	t.release(1, 10*time.Second, 5*time.Second, true) // sooner than its TTL
	t.release(2, 11*time.Second, time.Hour, true)     // later than its TTL
	t.acquire(3, 11*time.Second, 4*time.Second, 2)
	t.release(1, 11*time.Second, 0, false)
	t.release(2, 11*time.Second, 0, false)
	t.renew(1, 11*time.Second, false)
	t.acquire(0, 11*time.Second, 4*time.Second, 2) // a look
	t.acquire(3, 15*time.Second-time.Microsecond, time.Microsecond, 2)
	t.acquire(3, 15*time.Second, 0, 2)
	t.acquire(1, 16*time.Second, 59*time.Second, 2)
	t.acquire(1, 75*time.Second, 0, 2)
	t.acquire(4, 76*time.Second, 59*time.Second, 2)
	t.release(1, 77*time.Second, 0, true)
	t.acquire(4, 77*time.Second, 0, 2)
	t.acquire(5, 140*time.Second, 0, 2)
	t.acquire(6, 140*time.Second, time.Minute, 2)
	t.acquire(6, time.Hour+11*time.Second, 0, 1)
}

// permitsWithClockBack steps back in time: an expired permit stays expired, and none is granted.
func permitsWithClockBack(test *testing.T, s concurrency.Store) {
	t := timeline{test, s, 1}
	t.acquire(1, 0, 0, 1)
	t.acquire(2, time.Minute, 0, 1)
	t.acquire(3, 0, 2*time.Minute, 1)
	t.renew(1, 0, false)
}
