// Package redisstore is a headgate store in Redis or Valkey, shared by all processes that use the
// same server and prefix. It decides as headgate.Memory does, to the microsecond.
//
// Concurrent callers share round trips. If a trip with the same key is under way, a request waits
// for its end, but not longer than 200 ms. So requests for a key are decided in the order of their
// calls, unless a trip takes longer. Other requests wait only while the largest number of trips is
// under way: one or two if the round trip is short or the server is busy, and up to 16 over a
// network. If no trip is under way, a request is sent at once. A script in the server reads,
// decides and writes in one atomic step, by the server's clock.
//
// Every key expires after it is no longer needed. The delay is at most 2 s plus a quarter of the
// time for which the key was needed. A request whose time is not the server's adds a minute. A
// denial writes nothing, unless the numbers of the limit have changed so that the state is needed
// for longer. The package supports Redis 6.2 and newer: single servers, Cluster and Sentinel.
//
// Before its first request, after a server did not know a script, and once a minute, a store checks
// with a few keys, which it deletes, whether one script reaches all its keys. If not, or if the
// server is a 32-bit program, calls fail with an error that wraps [errors.ErrUnsupported].
//
// A call returns at once when its context ends. If its request was not sent, nothing is charged,
// and the error is [ErrNotSent]. A request that was sent, or waits for a connection, may still be
// charged. [Store.Stats] counts the calls of both kinds.
//
// Nothing is charged twice: a request whose answer was lost is not repeated. The error is returned,
// and the request may have been charged.
package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

// DefaultPrefix begins every key in Redis unless [Options] says otherwise.
const DefaultPrefix = "hg:"

// DefaultQueue is how many callers may wait for a server unless [Options] says otherwise.
const DefaultQueue = 8192

// Options are the settings of a [Store]. The zero value is ready to use.
type Options struct {
	// Prefix begins every key in Redis. Default: [DefaultPrefix]. Stores with different prefixes
	// share nothing. It must not contain a brace.
	Prefix string

	// Queue is how many callers may wait for an answer of a server. Further calls fail with
	// [ErrBusy]. Raise it if more may call in the same moment, such as 10,000 callers of
	// headgate.Limiter.Wait. Default: [DefaultQueue].
	Queue int

	// Proxy is for a client of a proxy that routes each command by its first key to one of several
	// servers, such as Envoy's redis_proxy. The proxy must route by the part of a key in braces, as
	// a Cluster does. Each script then gets the keys of one such part only. Callers that wait for a
	// permit ask every 100 ms, because such a proxy sends no notifications.
	Proxy bool
}

// Store implements headgate.Store in Redis. It is safe for use by many goroutines.
// Make one with [New] or [Open].
type Store struct {
	client     redis.UniversalClient
	prefix     string
	hash       *keyHash      // nil: keys are stored as they are
	queueLimit int           // calls that may wait in a queue
	patience   time.Duration // after which a trip is late, see queue
	proxy      bool          // routes by key
	owned      bool          // Close closes the client
	closed     atomic.Bool   // by Close
	advices    []redisscript.Advice

	servers
	probe    probe
	stats    stats
	clock    redisscript.Clock
	listener listener // of released permits
}

var _ headgate.Store = (*Store)(nil)

// New makes a store that uses client. The caller closes the client. A call ends when its context
// ends, or when the client times out: set ReadTimeout and DialTimeout to some hundred milliseconds,
// as [Open] does. With the defaults of go-redis, a call without a deadline ends after about 5
// seconds if the server does not answer, and after up to 30 if it must connect first. The client's
// retries of dials apply, and its retries of commands do not.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	one, _ := client.(*redis.Client)
	switch {
	case redisscript.IsNil(client):
		return nil, invalid("client", "nil", "a go-redis client")
	case o.Proxy && one == nil:
		return nil, invalid("proxy", "true with a client of several servers", "a *redis.Client")
	case strings.ContainsAny(o.Prefix, "{}"):
		return nil, invalid("prefix", strconv.Quote(o.Prefix),
			"a text without braces, which mark the part of a key that a Cluster hashes")
	case o.Queue < 0:
		return nil, invalid("queue", strconv.Itoa(o.Queue),
			"how many callers may wait, or 0 for "+strconv.Itoa(DefaultQueue))
	}
	s := &Store{
		client:     client,
		prefix:     cmp.Or(o.Prefix, DefaultPrefix),
		queueLimit: cmp.Or(o.Queue, DefaultQueue),
		patience:   defaultPatience,
	}
	s.advices = advices(client, s.prefix, commands)
	s.probe.client, s.proxy, s.single = one, o.Proxy, one != nil && !o.Proxy
	s.common = &queue{store: s}
	return s, nil
}

func invalid(field, value, want string) error {
	return &headgate.InvalidError{Field: field, Value: value, Want: want}
}

// Close closes the client, if [Open] made the store. Callers that wait for a permit get an error at
// once, and those of [headgate.Limiter.Wait] when the first of their line asks next. A second Close
// does nothing, and returns nil.
func (s *Store) Close() error {
	if !s.owned || s.closed.Swap(true) {
		return nil
	}
	defer s.listener.wakeAll()
	return s.client.Close()
}

// Take implements headgate.Store, in one round trip.
func (s *Store) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if err := r.Validate(); err != nil {
		return headgate.Decision{}, err
	}
	rs, ds := [1]headgate.Request{r}, [1]headgate.Decision{}
	err := s.decideTogether(ctx, rs[:], ds[:], modeOf(rs[:]))
	return ds[0], err
}

// TakeAll implements headgate.Store. On a single server, and wherever all requests have one key, it
// is one atomic step in one round trip.
//
// Otherwise the keys may be on several servers. A request with MaxWait then returns a
// headgate.InvalidError, not headgate.ErrNoBooking. Forced requests are sent first, all at once.
// After that, the requests of each key are taken together, key after key; meanwhile, other callers
// may be denied because of the charges. If a later key denies, the charges are refunded, and
// cancels are undone. To undo a cancel, its whole cost is charged, even if the cancel had returned
// less. A refund after the end of a window lets the next window grant that many more tokens. If an
// answer is lost, requests that were sent may stay charged.
func (s *Store) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	if err := headgate.ValidateAll(rs, ds); err != nil {
		return err
	}
	if len(rs) == 0 {
		return nil
	}
	if s.single || oneKey(rs) {
		return s.decideTogether(ctx, rs, ds, modeOf(rs))
	}
	for i, r := range rs {
		if r.MaxWait > 0 {
			return invalid("request "+strconv.Itoa(i)+": max wait", r.MaxWait.String(),
				"0, or one key for all requests, because keys may be on several servers")
		}
	}
	forced, others := byKey(rs)
	if !together(rs) {
		forced, others = slices.Concat(forced, others), nil
	}
	var errs []error
	if len(forced) > 0 {
		errs = append(errs, s.takeForced(ctx, forced))
	}
	if len(others) > 0 && errors.Join(errs...) == nil {
		errs = append(errs, s.takeMultiKey(ctx, others))
	}
	if err := s.ofSome(errs); err != nil {
		return err
	}
	for _, g := range slices.Concat(forced, others) {
		for j, i := range g.indices {
			ds[i] = g.decisions[j]
		}
	}
	return nil
}

// Reset implements headgate.Store. It deletes the key in Redis, whatever its value. A lost answer
// is an error.
func (s *Store) Reset(ctx context.Context, key string, l headgate.Limit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	return s.process(ctx, redisscript.Once(ctx, "del", s.key(key, l.ID())))
}

// Ping returns an error if the server does not answer, or if the store cannot use it.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.process(ctx, redis.NewStatusCmd(ctx, "ping")); err != nil {
		return err
	}
	return s.explain(redisscript.Await(ctx, s.usable))
}

// Client returns the client of s, for other uses of the same server. If [Open] made s, then Close
// closes the client.
func (s *Store) Client() redis.UniversalClient { return s.client }

// Prefix returns the prefix of all keys of s.
func (s *Store) Prefix() string { return s.prefix }

func (s *Store) process(ctx context.Context, cmd redis.Cmder) error {
	return s.explain(redisscript.Process(ctx, s.client, cmd))
}

type mode uint8

const (
	charge mode = iota
	settle      // charge, also if the queue is full, to end what was begun
	peek        // charge nothing, also if the queue is full
)

// modeOf returns the mode of a call: refunds settle.
func modeOf(rs []headgate.Request) mode {
	for i := range rs {
		if rs[i].Cost >= 0 {
			return charge
		}
	}
	return settle
}

// decideTogether decides rs in one batch, and fills ds.
func (s *Store) decideTogether(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision, m mode,
) error {
	c := s.newCall(rs, m)
	queue := s.queue(c.names[0]) //nolint:contextcheck // the client knows the server by now
	if err := queue.do(ctx, c); err != nil {
		return err
	}
	return s.explain(c.take(rs, ds))
}
