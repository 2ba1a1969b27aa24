package gate

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// KeyedGate is a [Gate] for each key: a user, a host, a tenant.
// Keys do not wait for each other. Make one with [NewKeyed].
//
// Gates without passes in the last period are removed when the number of gates has doubled since
// the last search for them. So there are at most about twice as many as were ever in use together.
type KeyedGate struct {
	limit  int64
	period int64 // leeway included
	seed   maphash.Seed
	shards [keyedShards]keyedShard
}

const (
	keyedShards = 16
	firstSweep  = 16
)

type keyedShard struct {
	mu      sync.Mutex
	gates   map[string]*keyGate
	sweepAt int // the number of gates at which idle ones are removed
	closed  bool
}

// keyGate is the gate of a key, and the number of callers that use it.
type keyGate struct {
	Gate

	callers int
}

// NewKeyed returns a gate for each key. At most n tokens pass through each in any window of length
// period. It returns the errors of [New].
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
	s, g := k.enter(key)
	defer s.leave(g)
	return g.WaitN(ctx, n)
}

// TryWait is [Gate.TryWait] at the gate of key.
func (k *KeyedGate) TryWait(
	ctx context.Context, key string, timeout time.Duration,
) (passed bool, err error) {
	if k.limit < 1 {
		return false, invalidTokens(1, k.limit)
	}
	s, g := k.enter(key)
	defer s.leave(g)
	return g.TryWait(ctx, timeout)
}

// Peek is [Gate.Peek] at the gate of key.
func (k *KeyedGate) Peek(key string) (open bool, in time.Duration) {
	if k.limit < 1 {
		return false, headgate.Never
	}
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	g, _ := k.gate(s, key)
	return g.Peek()
}

// Close makes all current and later waits at all keys return [ErrClosed]. It returns nil.
func (k *KeyedGate) Close() error {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		for _, g := range s.gates {
			_ = g.Close()
		}
		s.gates, s.closed = nil, true
		s.mu.Unlock()
	}
	return nil
}

func (k *KeyedGate) shard(key string) *keyedShard {
	return &k.shards[maphash.String(k.seed, key)%keyedShards]
}

// gate returns the gate of key, or a new one, which s does not hold yet.
func (k *KeyedGate) gate(s *keyedShard, key string) (g *keyGate, held bool) {
	if g = s.gates[key]; g != nil {
		return g, true
	}
	return &keyGate{Gate: Gate{limit: k.limit, period: k.period, closed: s.closed}}, false
}

// enter returns the gate of key, which s holds from now on unless it is closed. The caller calls
// leave when it has passed, so that no gate in use is removed.
func (k *KeyedGate) enter(key string) (*keyedShard, *keyGate) {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	g, held := k.gate(s, key)
	if !held && !s.closed {
		if len(s.gates) >= s.sweepAt {
			s.sweep()
		}
		s.gates[key] = g
	}
	g.callers++
	return s, g
}

func (s *keyedShard) leave(g *keyGate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.callers--
}

// sweep removes the gates that are not in use. A map does not shrink, so it is replaced.
func (s *keyedShard) sweep() {
	used := make(map[string]*keyGate)
	for key, g := range s.gates {
		if g.callers > 0 || !g.idle() {
			used[key] = g
		}
	}
	s.gates, s.sweepAt = used, max(2*len(used), firstSweep)
}
