package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

// A script gets the keys of many callers. What looks like one server may be a proxy that sends a
// script to the server of its first key, where the states of its other keys are not: each limit
// would be granted once by each server, without an error. So a store writes some keys, each by
// itself, and asks one script how many of them it sees.

const (
	// Two servers share out this many keys: all are on one of them in 1 of 2^19 probes.
	probeKeys = 20

	probeExpiry = "10000" // milliseconds
)

// probe is what a store knows about the server of its client.
type probe struct {
	client *redis.Client // nil: it sends each key to the right server by itself
	mu     sync.Mutex    // held while keys are written and counted
	passed atomic.Bool
	known  [1 << 8]atomic.Bool // the scripts that a server has run
}

// ran notes that a server ran a script. If the server had to load one that was known, it may be
// another server than before, so the next request is preceded by a probe.
func (p *probe) ran(script algorithms, loaded bool) {
	if known := &p.known[script]; !known.Load() {
		known.Store(true)
	} else if loaded {
		p.passed.Store(false)
	}
}

var probeScript = sync.OnceValue(func() redisscript.Script {
	return redisscript.New(file("probe"))
})

// usable returns an error if the server cannot be used, or cannot be reached. Any other error of
// the server is left to the request that follows, and the server is probed again for the next one.
func (s *Store) usable() error {
	p := &s.probe
	if p.client == nil || p.passed.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passed.Load() {
		return nil
	}
	seen, err := s.seenTogether()
	switch {
	case err == nil && seen == probeKeys:
		p.passed.Store(true)
	case err == nil && s.proxy:
		return &unusableError{errors.New("the proxy sends keys that are equal in braces to " +
			"several servers: let it hash only what is in braces; Envoy: enable_hashtagging")}
	case err == nil:
		return &unusableError{errors.New("one script does not reach all keys: this is a proxy " +
			"that routes by key: use redis+proxy:// (Options.Proxy), or name the server behind it")}
	case redis.HasErrorPrefix(err, "CROSSSLOT"), redis.HasErrorPrefix(err, "MOVED"),
		redis.HasErrorPrefix(err, "BITS"):
		return &unusableError{err}
	case !isAnswer(err):
		return err
	}
	return nil
}

// seenTogether writes the keys of a probe, and returns how many of them one script sees.
func (s *Store) seenTogether() (int64, error) {
	ctx, id := context.Background(), rand.Text()
	names := make([]string, probeKeys)
	pipe := s.probe.client.Pipeline()
	for i := range names {
		key, name := id+strconv.Itoa(i), ":@probe"
		if s.proxy {
			key, name = id, name+strconv.Itoa(i)
		}
		names[i] = s.prefix + "{" + key + "}" + name
		_ = pipe.Process(ctx, redisscript.Once(ctx, "set", names[i], "", "px", probeExpiry))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	seen, err := probeScript().Run(ctx, s.client, names, nil)
	if err == nil && len(seen) != 1 {
		err = fmt.Errorf("a probe returned %d numbers, want 1", len(seen))
	}
	if err != nil {
		return 0, err
	}
	return seen[0], nil
}

func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// unusableError is the error of a server that a store cannot use.
type unusableError struct{ err error }

func (e *unusableError) Error() string { return e.err.Error() }

func (e *unusableError) Unwrap() []error { return []error{e.err, errors.ErrUnsupported} }
