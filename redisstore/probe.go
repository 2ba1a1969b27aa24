package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

// A script gets the keys of many callers. What looks like one server may be a proxy that sends a
// script to the server of its first key, where the states of its other keys are not: each limit
// would be granted once by each server, without an error. So a store writes some keys, each by
// itself, and has one script delete those that it sees.

const (
	// Two servers of equal shares have this many keys: all are on one of them in 1 of 2^19 probes.
	probeKeys = 20

	probeExpiry = "10000" // milliseconds

	// Another process may load the scripts on a server that is new behind a proxy, so that this one
	// does not notice. So it probes again at intervals.
	probeInterval = time.Minute

	// After an answer that says nothing about the keys, the next probe comes after this time.
	probePause = time.Second
)

// probe is what a store knows about the server of its client.
type probe struct {
	client *redis.Client // nil: it sends each key to the right server by itself
	next   atomic.Int64  // when to probe again, in microseconds since the Unix epoch
}

var probeScript = sync.OnceValue(func() redisscript.Script {
	return redisscript.New(file("probe"))
})

// usable returns an error if the server cannot be used, or cannot be reached. Any other error of
// the server is left to the request that follows.
func (s *Store) usable() error {
	p, now := &s.probe, time.Now()
	next := p.next.Load()
	if p.client == nil || now.UnixMicro() < next {
		return nil
	}
	if next != 0 && !p.next.CompareAndSwap(next, now.Add(probeInterval).UnixMicro()) {
		return nil // another trip probes
	}
	seen, err := s.seenTogether()
	_, answered := errors.AsType[redis.Error](err)
	switch {
	case err == nil && seen == probeKeys:
		p.next.Store(now.Add(probeInterval).UnixMicro())
		return nil
	case err == nil && s.proxy:
		err = &unusableError{errors.New("the proxy sends keys with the same hash tag to " +
			"several servers: make it route by hash tag (Envoy: enable_hashtagging: true)")}
	case err == nil:
		err = &unusableError{errors.New("keys are on several servers behind a proxy: use " +
			scheme(p.client) + "+proxy:// (Options.Proxy), or the address of one server")}
	case redis.HasErrorPrefix(err, "CROSSSLOT"), redis.HasErrorPrefix(err, "MOVED"),
		redis.HasErrorPrefix(err, "unknown command"):
		err = &unusableError{err}
	case answered && !redis.HasErrorPrefix(err, "BITS"):
		p.next.Store(now.Add(probePause).UnixMicro())
		return nil
	}
	p.next.Store(0)
	return err
}

// seenTogether writes the keys of a probe, and returns how many of them one script sees.
func (s *Store) seenTogether() (int64, error) {
	id, names := rand.Text(), make([]string, probeKeys)
	for i := range names {
		key, name := id+strconv.Itoa(i), ":@probe"
		if s.proxy {
			key, name = id, name+strconv.Itoa(i)
		}
		names[i] = s.prefix + "{" + key + "}" + name
	}
	ctx, pipe := context.Background(), s.probe.client.Pipeline()
	for _, name := range names {
		_ = pipe.Process(ctx, redisscript.Once(ctx, "set", name, "", "px", probeExpiry))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	seen, err := probeScript().Run(ctx, s.client, names, nil)
	if err != nil || len(seen) != 1 {
		return 0, err
	}
	return seen[0], nil
}

// unusableError is the error of a server that a store cannot use.
type unusableError struct{ err error }

func (e *unusableError) Error() string { return e.err.Error() }

func (e *unusableError) Unwrap() []error { return []error{e.err, errors.ErrUnsupported} }
