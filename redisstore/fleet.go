package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/redisscript"
)

// fleet is a script of its own.
var fleet = sync.OnceValue(func() redisscript.Script { return redisscript.New(file("fleet")) })

const fleetCommands = "EVALSHA, EVAL, ZADD, ZREM, ZREMRANGEBYSCORE, ZRANGE, ZCARD, PEXPIRE, PTTL " +
	"and DEL"

const (
	// ttlIntervals is for how many intervals an instance counts after its last heartbeat. A count
	// is kept for as many intervals if smaller counts follow.
	ttlIntervals = 3

	defaultInterval = 5 * time.Second
	minInterval     = time.Millisecond
	maxInterval     = 24 * time.Hour
	closeTimeout    = time.Second
)

// FleetOptions are the settings of a [Fleet].
type FleetOptions struct {
	// Interval is the time between two heartbeats, the same for all instances: 1 ms to 24 h.
	// Default: 5 s.
	Interval time.Duration

	// MinInstances is what [Fleet.Instances] returns before the first heartbeat, and while fewer
	// instances are registered. Set it to the number of instances that are started together. While
	// more than MinInstances are registered, and one of them has not yet counted this instance,
	// Instances returns 0. An instance that crashed stays registered until its registration
	// expires. Default: 0, the number is unknown until the others count this instance.
	MinInstances int
}

// Fleet counts the instances that share a store, for example for fallback.Options.
//
// In each interval, each instance sends a heartbeat to Redis (one round trip), and receives the
// number of instances. A new instance does not know the number at first: see [Fleet.Instances],
// [FleetOptions.MinInstances] and docs/redis-fails.md. A dead instance is counted for three
// intervals by the server, and for up to three more by the other instances.
//
// A heartbeat needs the commands ZADD, ZREM, ZREMRANGEBYSCORE, ZRANGE, ZCARD, PEXPIRE, PTTL and DEL
// besides those of a Store, on the key prefix + "fleet".
type Fleet struct {
	store     *Store
	options   FleetOptions
	id        string
	stop      context.CancelFunc
	done      chan struct{}
	instances atomic.Int64

	mu      sync.Mutex
	err     error
	until   time.Time // when a smaller count takes effect
	joined  time.Time // when it knew that it is registered
	expiry  int64     // of its registration then
	counted bool      // by all others
}

type heartbeat struct {
	count       int64 // of the instances
	forgotten   bool  // the server did not know this one
	expiry      int64 // of this one's registration
	firstExpiry int64 // of all registrations
}

var errNoHeartbeat = errors.New("redisstore: no heartbeat yet")

// NewFleet joins the instances that share the server and the prefix of s.
//
// It sends heartbeats in a goroutine until [Fleet.Close]. It does not wait for the first one; call
// [Fleet.Heartbeat] for that. It returns a headgate.InvalidError if s is nil or a number is out of
// range.
func NewFleet(s *Store, o FleetOptions) (*Fleet, error) {
	if err := o.validate(s); err != nil {
		return nil, err
	}
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	ctx, stop := context.WithCancel(context.Background())
	f := &Fleet{
		store: s, options: o, id: rand.Text(),
		stop: stop, done: make(chan struct{}), err: errNoHeartbeat,
	}
	f.instances.Store(int64(o.MinInstances))
	go f.run(ctx)
	return f, nil
}

func (o *FleetOptions) validate(s *Store) error {
	switch {
	case s == nil:
		return invalid("store", "nil", "one made by New or Open")
	case o.Interval != 0 && (o.Interval < minInterval || o.Interval > maxInterval):
		return invalid("Interval", o.Interval.String(), "1ms to 24h, or 0 for 5s")
	case o.MinInstances < 0:
		return invalid("MinInstances", strconv.Itoa(o.MinInstances),
			"at least 1, or 0 if it is unknown")
	}
	return nil
}

// timeout bounds a heartbeat, so that the goroutine begins one in each interval.
func (o *FleetOptions) timeout() time.Duration { return o.Interval / 2 }

// Instances returns how many instances there are, this one included: 0 while the number is unknown,
// and otherwise at least MinInstances. Without MinInstances, the number is known when Redis has
// answered and then each other instance has sent a heartbeat. That takes two intervals, or up to
// four if another instance has crashed.
//
// If the number falls, Instances returns the larger one for three more intervals, because a server
// that lost its data needs an interval to count all instances again. While Redis is unreachable, or
// keeps losing the registration of this instance, it returns the last known number.
func (f *Fleet) Instances() int { return int(f.instances.Load()) }

// Err returns the error of the last heartbeat. Before the first one, it returns an error, too.
func (f *Fleet) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Heartbeat sends a heartbeat now and updates the number of instances.
//
// The goroutine sends one in each interval; call Heartbeat to know the number at once. A call after
// Close joins the fleet again, until the registration expires.
func (f *Fleet) Heartbeat(ctx context.Context) error {
	ttl := ttlIntervals * f.options.Interval
	sent := time.Now()
	h, err := f.register(ctx, ttl)
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err != nil {
		return err
	}
	known := f.instances.Load()
	if h.forgotten { // and so may be others, whose next heartbeat is to come
		h.count = max(h.count, known)
	}
	// The answer that reports this instance as new may be lost, or arrive after the next one. An
	// earlier expiry belongs to a new key.
	if h.forgotten || f.joined.IsZero() || h.expiry < f.expiry {
		f.joined, f.expiry = now, h.expiry
	}
	// Those that are registered have sent a heartbeat since. So have those that the server forgot:
	// each begins one in an Interval, which is answered within the timeout.
	wait := f.options.Interval + f.options.timeout()
	f.counted = f.counted || h.firstExpiry > f.expiry && sent.Sub(f.joined) >= wait
	least := int64(f.options.MinInstances)
	count := max(h.count, least)
	if !f.counted && count > least {
		count, known = 0, 0
	}
	if count >= known || !now.Before(f.until) {
		f.instances.Store(count)
		f.until = now.Add(ttl)
	}
	return nil
}

// Close leaves the fleet and ends the goroutine. If the server does not confirm that within a
// second, Close returns an error, and others count this instance until its registration expires.
func (f *Fleet) Close() error {
	f.stop()
	<-f.done
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, err := f.register(ctx, 0)
	return err
}

func (f *Fleet) run(ctx context.Context) {
	defer close(f.done)
	ticker := time.NewTicker(f.options.Interval)
	defer ticker.Stop()
	for {
		within, cancel := context.WithTimeout(ctx, f.options.timeout())
		_ = f.Heartbeat(within) // see Err
		cancel()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// register sets for how long this instance counts from now; 0 removes it.
func (f *Fleet) register(ctx context.Context, ttl time.Duration) (heartbeat, error) {
	s := f.store
	millis := (ttl + time.Millisecond - 1).Milliseconds()
	n, err := fleet().Run(ctx, s.client, []string{s.prefix + "fleet"}, []any{f.id, millis})
	if err != nil || len(n) != 4 {
		return heartbeat{}, redisscript.Explain("redisstore", err,
			advices(s.client, s.prefix, fleetCommands))
	}
	return heartbeat{n[0], n[1] == 1, n[2], n[3]}, nil
}
