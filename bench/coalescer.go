package main

import (
	"slices"
	"sync"
)

// A coalescer lets callers share questions. Who comes while as many batches as there
// are lanes are in flight waits and goes with a later one. There is no goroutine and no
// timer: the first caller of a batch sends it, and when it is answered lets the first
// of those who wait send the next.
type coalescer struct {
	way

	lanes int // batches in flight
	most  int // keys in a batch

	mu      sync.Mutex
	flying  int
	waiting []*sharedCall // empty while there is a free lane
	calls   sync.Pool     // of *sharedCall
}

// A sharedCall is a caller of a coalescer.
type sharedCall struct {
	key     string
	turn    chan []*sharedCall // the batch to send, itself first; nil once it was answered
	granted bool
	err     error
}

func newCoalescer(w way, lanes, most int) *coalescer {
	return &coalescer{way: w, lanes: lanes, most: most}
}

func (c *coalescer) Take(key string) (bool, error) {
	own, _ := c.calls.Get().(*sharedCall)
	if own == nil {
		own = &sharedCall{turn: make(chan []*sharedCall, 1)}
	}
	defer c.calls.Put(own)
	own.key = key
	batch := c.join(own)
	if batch == nil {
		batch = <-own.turn
	}
	if batch != nil {
		c.lead(batch)
	}
	return own.granted, own.err
}

// join takes a free lane, or lets own wait.
func (c *coalescer) join(own *sharedCall) []*sharedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flying < c.lanes {
		c.flying++
		return []*sharedCall{own}
	}
	c.waiting = append(c.waiting, own)
	return nil
}

// lead asks for a batch, whose first caller it runs in, and tells the others.
func (c *coalescer) lead(batch []*sharedCall) {
	keys := make([]string, len(batch))
	for i, each := range batch {
		keys[i] = each.key
	}
	granted, err := c.decide(keys)
	c.passOn()
	for i, each := range batch {
		each.granted, each.err = err == nil && granted[i], err
		if i > 0 {
			each.turn <- nil
		}
	}
}

// passOn gives the lane to those who have come meanwhile.
func (c *coalescer) passOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(c.most, len(c.waiting))
	if n == 0 {
		c.flying--
		return
	}
	batch := slices.Clone(c.waiting[:n])
	c.waiting = slices.Delete(c.waiting, 0, n)
	batch[0].turn <- batch
}
