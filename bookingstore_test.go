package headgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// bookingStore is the contract of booking ahead in its simplest form: token buckets, counted in
// parts of a token of which n arrive each microsecond.
type bookingStore struct {
	mu      sync.Mutex
	buckets map[string]*bookedBucket
}

// bookedBucket is the state after the last start time.
type bookedBucket struct{ used, at int64 }

func (s *bookingStore) Take(ctx context.Context, r Request) (Decision, error) {
	ds := make([]Decision, 1)
	err := s.TakeAll(ctx, []Request{r}, ds)
	return ds[0], err
}

func (s *bookingStore) TakeAll(_ context.Context, rs []Request, ds []Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, start, maxWait := time.Now().UnixMicro(), time.Now().UnixMicro(), Never
	for i, r := range rs {
		b := s.bucket(r)
		at, used := b.stand(r.Limit, now)
		token, capacity := r.Limit.Period().Microseconds(), r.Limit.Capacity()*r.Limit.Period().Microseconds()
		ds[i] = Decision{Limit: r.Limit, Remaining: (capacity - used) / token}
		switch over := used + max(r.Cost, 0)*token - capacity; {
		case r.Cost > r.Limit.Capacity(),
			r.Cost < 0 && r.Start != nil && b.at > r.Start.UnixMicro():
			ds[i].RetryAfter = Never
		case over > 0:
			at += (over + r.Limit.Refill() - 1) / r.Limit.Refill()
			fallthrough
		default:
			if r.Cost > 0 {
				start, maxWait = max(start, at), min(maxWait, r.MaxWait)
			}
		}
	}
	if wait := time.Duration(start-now) * time.Microsecond; wait > maxWait || refusedAny(ds) {
		for i := range ds {
			ds[i].RetryAfter = max(ds[i].RetryAfter, wait)
		}
		return nil
	}
	for i, r := range rs {
		s.charge(r, now, start)
		if r.Cost > 0 {
			ds[i].RetryAfter = time.Duration(start-now) * time.Microsecond
		}
	}
	return nil
}

func refusedAny(ds []Decision) bool {
	for _, d := range ds {
		if d.RetryAfter == Never {
			return true
		}
	}
	return false
}

// stand is where time stands, and what is used then.
func (b *bookedBucket) stand(l Limit, now int64) (at, used int64) {
	if b.at >= now {
		return b.at, b.used
	}
	return now, max(b.used-min(now-b.at, 1<<40)*l.Refill(), 0)
}

func (s *bookingStore) charge(r Request, now, start int64) {
	b := s.bucket(r)
	token, capacity := r.Limit.Period().Microseconds(), r.Limit.Capacity()*r.Limit.Period().Microseconds()
	switch {
	case r.Cost > 0:
		b.at, b.used = b.stand(r.Limit, start)
		b.used += r.Cost * token
		if r.Start != nil {
			*r.Start = time.UnixMicro(start)
		}
	case r.Cost < 0:
		b.at, b.used = b.stand(r.Limit, now)
		b.used = max(b.used+r.Cost*token, 0)
		if r.Start != nil { // the last start time is the earliest at which what is left fits
			back := (capacity - b.used) / r.Limit.Refill()
			if b.used == 0 { // the bucket was full before that, or just then
				back = (capacity + r.Limit.Refill() - 1) / r.Limit.Refill()
			}
			back = min(back, b.at-now)
			b.at, b.used = b.at-back, min(b.used+back*r.Limit.Refill(), capacity)
		}
	}
}

func (s *bookingStore) bucket(r Request) *bookedBucket {
	id := r.Key + "\x00" + r.Limit.ID()
	if s.buckets[id] == nil {
		if s.buckets == nil {
			s.buckets = map[string]*bookedBucket{}
		}
		s.buckets[id] = &bookedBucket{at: time.Now().UnixMicro()}
	}
	return s.buckets[id]
}

func (s *bookingStore) Reset(_ context.Context, key string, l Limit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets, key+"\x00"+l.ID())
	return nil
}

var errLost = errors.New("the answer was lost")

// networkStore is a store across a network: what it was asked is done though the caller has
// left.
type networkStore struct {
	Store
	there, back time.Duration
	mu          sync.Mutex
	random      *rand.Rand           // if not nil, each way takes up to twice as long, or no time
	lose        func(r Request) bool // the answer to r
}

func (s *networkStore) travel(d time.Duration) {
	if s.random != nil {
		s.mu.Lock()
		d = time.Duration(s.random.Int64N(2*d.Microseconds())) * time.Microsecond
		s.mu.Unlock()
	}
	time.Sleep(d)
}

func (s *networkStore) Take(ctx context.Context, r Request) (Decision, error) {
	s.travel(s.there)
	d, err := s.Store.Take(ctx, r)
	s.travel(s.back)
	if s.lose != nil && s.lose(r) {
		return Decision{}, errLost
	}
	return d, err
}

func (s *networkStore) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	s.travel(s.there)
	err := s.Store.TakeAll(ctx, rs, ds)
	s.travel(s.back)
	if s.lose != nil && s.lose(rs[0]) {
		return errLost
	}
	return err
}
