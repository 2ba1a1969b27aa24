package concurrency

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/await"
)

// ErrReleased is returned by [Permit.Release] and [Permit.Renew] after the permit was released. It
// is then the cause of the context that [Permit.Keep] returned.
var ErrReleased = errors.New("concurrency: permit already released")

// ErrExpired is returned by [Permit.Release] and [Permit.Renew] after the permit expired. It is
// then the cause of the context that [Permit.Keep] returned. Another caller may have taken the
// place.
var ErrExpired = errors.New("concurrency: permit expired")

// Permit is one of the limited permits of a key. It is in use until it is released or expires.
// [Limiter.Acquire] and [Limiter.Wait] return it. It is safe for use by many goroutines.
type Permit struct {
	store   Store
	request Request

	mu      sync.Mutex
	expires time.Time     // the store does not expire the permit before
	err     error         // ErrReleased or ErrExpired, once Release is called or the permit expired
	unsure  bool          // the last release failed; it may have been carried out
	ended   chan struct{} // closed when err is set
}

func newPermit(store Store, r Request, expires time.Time) *Permit {
	return &Permit{store: store, request: r, expires: expires, ended: make(chan struct{})}
}

// Key returns the key of the permit.
func (p *Permit) Key() string { return p.request.Key }

// ID identifies the permit among those of its key.
func (p *Permit) ID() PermitID { return p.request.ID }

// ExpiresAt returns the earliest time at which the permit can expire. By the clock of this process,
// that is one TTL after the last successful call to the store began. This is true if the clock of
// the store runs at the same speed.
func (p *Permit) ExpiresAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.expires
}

// Release releases the permit and returns nil. Every later call returns [ErrReleased]. If the
// permit expired before, Release returns [ErrExpired] and changes nothing.
//
// Any other error is the store's: the permit may have been released, and expires if not. Release
// may then be called again, and returns nil once the permit is not in use any more.
//
// It works even if ctx has ended, and takes at most 5 seconds.
func (p *Permit) Release(ctx context.Context) error { return p.ReleaseAfter(ctx, 0) }

// ReleaseAfter keeps the permit in use for a period from now, whatever its TTL, and then releases
// it. The period is from 0 to 8760h.
//
// It is for calls of an API that counts requests as they arrive. If each call has one of n permits,
// and ReleaseAfter is called when the response has arrived, at most n requests arrive in any window
// of one period, however long they take. A request without a response may still arrive: let its
// permit expire. The TTL must be at least the sum of the period and the longest time from the
// acquisition until a request arrives.
func (p *Permit) ReleaseAfter(ctx context.Context, period time.Duration) error {
	r := p.request
	r.After = period
	if err := r.Validate(); err != nil {
		return err
	}
	repeated, err := p.beginRelease()
	if err != nil {
		return err
	}
	_, memory := p.store.(*Memory)
	ctx, stop := await.Settling(ctx, !memory)
	defer stop()
	held, err := p.store.ReleasePermit(ctx, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.unsure = true
		return err
	case !held && !repeated:
		p.err = ErrExpired
		return ErrExpired
	default:
		return nil
	}
}

// beginRelease returns an error if there is nothing to release, or another call releases it.
func (p *Permit) beginRelease() (repeated bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	repeated, p.unsure = p.unsure, false
	if p.err != nil && !repeated {
		return false, p.err
	}
	p.end(ErrReleased)
	return repeated, nil
}

// Renew makes the permit expire no sooner than its TTL from now. It returns [ErrExpired] if the
// permit expired before, and [ErrReleased] if Release was called. Any other error is the store's:
// the permit is valid until [Permit.ExpiresAt] at least, and Renew may be called again.
func (p *Permit) Renew(ctx context.Context) error {
	if err := p.why(); err != nil {
		return err
	}
	expires := time.Now().Add(p.request.TTL)
	held, err := p.store.RenewPermit(ctx, p.request)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !held {
		p.end(ErrExpired)
	} else if expires.After(p.expires) {
		p.expires = expires
	}
	return p.err
}

// Keep renews the permit whenever a third of its TTL has passed, until it is released or cancel is
// called. It starts a goroutine for that. Run the work under the context that Keep returns. That
// context ends when ctx ends, when Release is called ([context.Cause] is then ErrReleased), and
// when the permit expires, or may expire because the store does not answer (ErrExpired).
//
// Calling cancel does not release the permit.
func (p *Permit) Keep(ctx context.Context) (kept context.Context, cancel context.CancelFunc) {
	kept, end := context.WithCancelCause(ctx)
	go func() { end(p.keep(kept)) }()
	return kept, func() { end(nil) }
}

// keep renews the permit until it ends, and returns why.
func (p *Permit) keep(ctx context.Context) error {
	ttl := p.request.TTL
	var err error
	for {
		left := time.Until(p.ExpiresAt())
		if left <= 0 {
			return ErrExpired
		}
		pause := left - 2*ttl/3
		if err != nil {
			pause = min(ttl/20, left) // the store may answer again
		}
		select {
		case <-time.After(pause):
		case <-p.ended:
			return p.why()
		case <-ctx.Done():
			return nil
		}
		inTime, cancel := context.WithDeadline(ctx, p.ExpiresAt())
		err = p.Renew(inTime)
		cancel()
	}
}

// end notes why the permit is not in use any more. The first reason counts.
func (p *Permit) end(why error) {
	if p.err == nil {
		p.err = why
		close(p.ended)
	}
}

// why returns ErrReleased or ErrExpired, or nil while the permit is in use.
func (p *Permit) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
