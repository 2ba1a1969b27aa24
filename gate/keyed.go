package gate

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// KeyedGate is a [Gate] for each key: a user, a host, a tenant.
// Keys do not wait for each other. Make one with [NewKeyed].
//
// A gate exists from the first use of its key until its last pass is a period old. While there
// are gates, a timer looks for idle ones once a period, but not more often than every 10 ms.
type KeyedGate struct {
	limit  int64
	period int64 // leeway included
	seed   maphash.Seed
	shards [keyedShards]keyedShard
}

const (
	keyedShards = 16
	minSweep    = 10 * time.Millisecond
	sweepBatch  = 256 // gates that are looked at while the shard is locked
)

// keyedShard holds the gates of some keys.
type keyedShard struct {
	mu     sync.Mutex
	gates  map[string]*Gate // nil while there are none
	timer  *time.Timer      // pending while there are some
	closed bool
}

// NewKeyed returns a gate for each key, through which at most n tokens pass in any window of
// length period. It returns the errors of [New].
func NewKeyed(n int64, period time.Duration) (*KeyedGate, error) {
	g, err := New(n, period)
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
		return invalidTokens(n, k.limit)
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

// Peek is [Gate.Peek] at the gate of key.
func (k *KeyedGate) Peek(key string) (open bool, in time.Duration) {
	s := k.shard(key)
	s.mu.Lock() // no gate is dropped meanwhile
	defer s.mu.Unlock()
	if s.closed || k.limit < 1 {
		return false, headgate.Never
	}
	if g := s.gates[key]; g != nil {
		return g.Peek()
	}
	return true, 0
}

// Close makes all current and later waits at all keys return [ErrClosed].
func (k *KeyedGate) Close() {
	for i := range k.shards {
		for _, g := range k.shards[i].close() {
			g.Close()
		}
	}
}

// at waits at the gate of key. A gate may be dropped between being found and being used, or while
// a caller that has passed is held up before it returns: then another takes its place.
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

// gate returns the gate of key, which it makes if there is none.
func (k *KeyedGate) gate(key string) (*Gate, error) {
	if k.limit < 1 {
		return nil, invalidTokens(1, k.limit)
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

func (k *KeyedGate) interval() time.Duration { return max(time.Duration(k.period), minSweep) }

// sweep drops idle gates, with a pause after each batch. A map does not shrink, so it is replaced
// when most of it is gone.
func (s *keyedShard) sweep(interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, seen := len(s.gates), 0
	for key, g := range s.gates {
		if g.drop() {
			delete(s.gates, key)
		}
		if seen++; seen%sweepBatch == 0 {
			s.mu.Unlock()
			runtime.Gosched() // otherwise callers that wait for the lock hardly ever get it
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

// close removes all gates and returns them.
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
