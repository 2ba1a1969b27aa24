package simulation

import (
	"context"
	"time"

	"github.com/headgate/headgate"
)

// process is one of a region.
type process struct {
	*regions

	region int
	store  headgate.Store
}

// ask asks for a token of key, which is of kind k.
func (p *process) ask(ctx context.Context, k *kind, key *regionKey) {
	var a asking
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, askingKey{}, &a), patience)
	defer cancel()
	phase, began, could := p.phase(), time.Now(), key.could(ctx)
	d, err := p.store.Take(ctx, headgate.Request{Key: key.key, Limit: key.local, Cost: 1})
	undecided := err != nil || d.Unchecked() && !d.Allowed()
	without := err != nil || d.Degraded()
	if !undecided && (without || !a.decided) { // the store noted its decisions when it made them
		key.decided(d.Allowed())
	}
	if without && p.phase() == 2 {
		p.healed.Store(int64(time.Since(p.start) - p.cutAt - p.cutFor))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	answer := &k.phases[phase]
	answer.asked++
	if could {
		answer.could++
	}
	switch {
	case undecided:
		answer.undecided++
	case d.Allowed():
		answer.granted++
	default:
		answer.denied++
	}
	if p.region == 0 || phase == 1 {
		return
	}
	k.waits = append(k.waits, time.Since(began))
	if !a.decided || !p.home {
		k.near++
	}
}

// could asks the ideal.
func (k *regionKey) could(ctx context.Context) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.askIdeal(ctx, 1)
}

// decided takes note of a decision, at the moment at which it counts.
func (k *regionKey) decided(granted bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settle(1, granted)
	k.bound.settle(1, granted)
}

// link is the way of a process to a store, which may be in another region.
type link struct {
	*regions

	from, to int
}

// travel takes the time of a message, or that of its caller if the message is lost.
func (l link) travel(ctx context.Context) error {
	d := way()
	if l.from != l.to {
		d += between
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.from != l.to && l.cut.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

// send makes a call of the store.
func (l link) send(ctx context.Context, call func() error) error {
	if l.from != l.to {
		l.crossed.Add(1)
	}
	if err := l.travel(ctx); err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	return l.travel(ctx)
}

// Take implements headgate.Store.
func (l link) Take(ctx context.Context, r headgate.Request) (d headgate.Decision, err error) {
	err = l.send(ctx, func() (err error) {
		d, err = l.stores[l.to].Take(ctx, r)
		if a, ok := ctx.Value(askingKey{}).(*asking); ok && err == nil {
			a.decided = true
			l.keys[r.Key].decided(d.Allowed())
		}
		return err
	})
	return d, err
}

// TakeAll implements headgate.Store, for the prefetches of a lease.
func (l link) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	return l.send(ctx, func() error { return l.stores[l.to].TakeAll(ctx, rs, ds) })
}

// Reset implements headgate.Store. Nobody resets anything.
func (l link) Reset(ctx context.Context, key string, limit headgate.Limit) error {
	return l.stores[l.to].Reset(ctx, key, limit)
}
