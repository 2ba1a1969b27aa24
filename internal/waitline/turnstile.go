package waitline

import (
	"context"
	"sync"
)

// Turnstile lines callers up so that the first of them acts and the others wait to become
// the first. The zero Turnstile has an empty line. It must not be copied after its first use.
type Turnstile struct {
	mu   sync.Mutex
	line List[place, *place]
}

type place struct {
	Links[place]
	first chan struct{} // closed when this place becomes the first
}

// Enter waits until the caller is the first of the line, in the order in which callers came.
// It returns the error of ctx if that ends before; the caller is then out of the line.
func (t *Turnstile) Enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &place{first: make(chan struct{})}
	t.mu.Lock()
	t.line.Push(p)
	first := t.line.Head == p
	t.mu.Unlock()
	if first {
		return nil
	}
	select {
	case <-p.first:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		t.leave(p)
		return ctx.Err()
	}
}

// Leave makes the next of the line the first. The first calls it once, when it has acted.
func (t *Turnstile) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(t.line.Head)
}

// leave also serves a caller that became the first while its context ended.
func (t *Turnstile) leave(p *place) {
	wasFirst := t.line.Head == p
	t.line.Remove(p)
	if next := t.line.Head; wasFirst && next != nil {
		close(next.first)
	}
}
