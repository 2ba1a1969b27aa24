package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
)

// Name is the key in Redis for the state of key under l.
func (s *Store) Name(key string, l headgate.Limit) string { return s.key(key, l.ID()) }

// QueueLimit is how many calls may wait in a queue.
func (s *Store) QueueLimit() int { return s.queueLimit }

// SetPatience sets after which time a batch is waited for no longer.
func (s *Store) SetPatience(d time.Duration) { s.patience = d }

// ProbeNext makes it time for a probe, as a minute after the last one.
func (s *Store) ProbeNext() { s.probe.next.Store(1) }

// SkipProbe leaves the server unprobed, for tests that count commands, or hold them up.
func (s *Store) SkipProbe() { s.probe.client = nil }

// Idle reports whether nothing is sent, and no batch is late, in the queue of name.
func (s *Store) Idle(name string) bool {
	q := s.queue(name)
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.underWay) == 0 && !q.starting && q.late == 0
}

// NeedsSlowPath reports whether rs, sent together, are decided by more than the plain script.
func (s *Store) NeedsSlowPath(rs ...headgate.Request) bool {
	b := newBatch()
	b.add(s.newCall(rs, charge))
	return b.set&slowPath != 0
}

// PlainScripts returns the scripts of all algorithms for a lone request and for a batch.
func PlainScripts() []string {
	all := algorithms(1<<len(parts) - 2)
	texts := []string{source(all)}
	for a := range len(parts) - 1 {
		texts = append(texts, source(lone|2<<a))
	}
	return texts
}

// SameQueue reports whether two keys are sent to one server, as far as is known.
func (s *Store) SameQueue(a, b string) bool {
	return s.queue(s.prefix+"{"+escape(a)+"}") == s.queue(s.prefix+"{"+escape(b)+"}")
}

// KeysApart returns n keys of different shards, so that none waits for a trip of another. Which
// those are differs by process.
func KeysApart(n int) []string {
	var keys []string
	taken := make(map[uint16]bool)
	for i := 0; len(keys) < n; i++ {
		key := strconv.Itoa(i)
		if shard := shardOf(key); !taken[shard] {
			taken[shard] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// Server is the address of the server that a key is sent to.
func (s *Store) Server(key string) string { return s.address(s.prefix + "{" + escape(key) + "}") }

// SetPace sets how long the trips of the queue of name take, as far as it knows. The time between
// the last trips and the next one does not count.
func (s *Store) SetPace(name string, trip time.Duration) {
	q := s.queue(name)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pace = pace{network: trip, next: trip, since: time.Now(), recent: trip}
}

// VirtualTime lets the scripts take the list "time" in Redis, of seconds and microseconds, for the
// server's clock.
func VirtualTime(t *testing.T) {
	t.Helper()
	for a := headgate.AlgorithmTokenBucket; int(a) < len(parts); a++ {
		for _, set := range []algorithms{1 << a, 1<<a | slowPath, 1<<a | lone} {
			text := strings.Replace(source(set), "redis.pcall('TIME')",
				"redis.pcall('LRANGE', 'time', '0', '-1')", 1)
			scripts.Store(set, redisscript.New(text))
		}
	}
	t.Cleanup(scripts.Clear)
}

// Pass lets d pass since the last heartbeat of f.
func (f *Fleet) Pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = f.until.Add(-d)
}

// Age lets f have joined earlier.
func (f *Fleet) Age(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.joined = f.joined.Add(-d)
}

// Script returns the script that decides calls in one trip, on the slow path or if possible without
// it, with its keys and arguments.
func (s *Store) Script(slow bool, calls ...[]headgate.Request) (text string, keys, args []string) {
	b := &batch{}
	for _, rs := range calls {
		b.add(s.newCall(rs, charge))
	}
	if slow {
		b.set |= slowPath
	}
	if r := b.lone(); r != nil {
		force := int64(0)
		if r.Forced() {
			force = 1
		}
		arg := number(number(appendLimit(nil, r.Limit, time.Now().UnixMicro()), within(r), 7),
			force, 1)
		return source(b.set | lone), b.names.all, []string{string(arg)}
	}
	var limits []byte
	for _, l := range b.limits.all {
		limits = appendLimit(append(limits, byte(l.Algorithm())), l, time.Now().UnixMicro())
	}
	return source(b.set), b.names.all, []string{string(limits), string(b.requests)}
}

// PermitScript is the script of permits.
func PermitScript() string { return file("permits") }

// PermitName is the key in Redis for the permits of key.
func (s *Store) PermitName(key string) string { return s.key(key, permitsID) }
