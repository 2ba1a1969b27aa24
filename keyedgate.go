package headgate

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"runtime"
	"sync"
	"time"
)

// KeyedGate is a [Gate] for each key: a user, a host, a tenant. Keys do not wait for each
// other. Make one with [NewKeyedGate].
//
// A gate is made when its key first comes, and dropped when nobody has passed it for a
// period: as long as there are gates, a timer looks through them once a period (not
// more often than every 10 ms), so an idle key is gone after two at most. Each
// look at a gate that stays is paid for by a pass. Without keys there is neither
// memory nor timer nor, at any time, a goroutine.
type KeyedGate struct {
	limit  int64
	period int64 // leeway included
	seed   maphash.Seed
	shards [keyedShards]keyedShard
}

const (
	keyedShards = 16
	sweepLeast  = 10 * time.Millisecond
	sweepMost   = 256 // gates that are looked at while their keys are kept waiting
)

// keyedShard is the gates of some keys.
type keyedShard struct {
	mu     sync.Mutex
	gates  map[string]*Gate // nil while there are none
	timer  *time.Timer      // pending while there are some
	closed bool
}

// NewKeyedGate makes a gate for each key, through which at most n pass in any window
// of length period. It returns the errors of [NewGate].
func NewKeyedGate(n int64, period time.Duration) (*KeyedGate, error) {
	g, err := NewGate(n, period)
	if err != nil {
		return nil, err
	}
	return &KeyedGate{limit: g.limit, period: g.period, seed: maphash.MakeSeed()}, nil
}

// Wait is [Gate.Wait] at the gate of key.
func (k *KeyedGate) Wait(ctx context.Context, key string) error { return k.WaitN(ctx, key, 1) }

// WaitN is [Gate.WaitN] at the gate of key.
func (k *KeyedGate) WaitN(ctx context.Context, key string, n int64) error {
	if n < 1 || n > k.limit { // no gate is made for that
		return fault(n, k.limit, "KeyedGate")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return k.at(key, func(g *Gate) error { return g.WaitN(ctx, n) })
}

// TryWait is [Gate.TryWait] at the gate of key.
func (k *KeyedGate) TryWait(key string, timeout time.Duration) bool {
	return k.at(key, func(g *Gate) error { return g.tryWait(timeout) }) == nil
}

// Peek is [Gate.Peek] at the gate of key. It makes no gate.
func (k *KeyedGate) Peek(key string) (open bool, in time.Duration) {
	s := k.shard(key)
	s.mu.Lock() // no gate is dropped meanwhile
	defer s.mu.Unlock()
	if s.closed || k.limit < 1 {
		return false, Never
	}
	if g := s.gates[key]; g != nil {
		return g.Peek()
	}
	return true, 0
}

// Close closes the gates of all keys, those to come included; see [Gate.Close].
func (k *KeyedGate) Close() {
	for i := range k.shards {
		for _, g := range k.shards[i].close() {
			g.Close()
		}
	}
}

// at waits at the gate of key. A gate may be dropped between being found and being
// asked, or while who has passed it is held up before he knows: then it is closed, and
// another one takes its place.
func (k *KeyedGate) at(key string, wait func(*Gate) error) error {
	for {
		g, err := k.gate(key)
		if err != nil {
			return err
		}
		if err := wait(g); !errors.Is(err, ErrClosed) {
			return err
		}
	}
}

func (k *KeyedGate) shard(key string) *keyedShard {
	return &k.shards[maphash.String(k.seed, key)%keyedShards]
}

// gate finds the gate of key, or makes one.
func (k *KeyedGate) gate(key string) (*Gate, error) {
	if k.limit < 1 {
		return nil, fault(1, k.limit, "KeyedGate")
	}
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	g := s.gates[key]
	if g == nil {
		if s.gates == nil {
			s.gates = make(map[string]*Gate)
			s.timer = time.AfterFunc(k.interval(), func() { s.sweep(k.interval()) })
		}
		g = &Gate{limit: k.limit, period: k.period}
		s.gates[key] = g
	}
	return g, nil
}

func (k *KeyedGate) interval() time.Duration { return max(time.Duration(k.period), sweepLeast) }

// sweep drops the gates that are idle, with a pause after every few of them. A map never gets
// smaller by itself, so it is made anew when most of it has gone.
func (s *keyedShard) sweep(interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, seen := len(s.gates), 0
	for key, g := range s.gates {
		if g.idle() {
			delete(s.gates, key)
		}
		if seen++; seen%sweepMost == 0 {
			s.mu.Unlock()
			runtime.Gosched() // else those who wait for the lock hardly ever get it
			s.mu.Lock()
			if s.closed {
				return
			}
		}
	}
	switch left := len(s.gates); {
	case left == 0 || s.closed:
		s.gates, s.timer = nil, nil
		return
	case left < before/4:
		gates := make(map[string]*Gate, left)
		maps.Copy(gates, s.gates)
		s.gates = gates
	}
	s.timer.Reset(interval)
}

// close forgets all gates and returns them.
func (s *keyedShard) close() map[string]*Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	gates := s.gates
	if s.timer != nil {
		s.timer.Stop()
	}
	s.gates, s.timer, s.closed = nil, nil, true
	return gates
}
