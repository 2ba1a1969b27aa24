// Package redisstore is a headgate store in Redis or Valkey, shared by all
// processes that use the same server and prefix. It decides as headgate.Memory
// does, to the microsecond.
//
// Callers who come while the server decides share the next trip to it: one script call
// decides for all of them, each request by itself, those of a key in the order in which
// they came (a TakeAll with several keys in that of its first). It reads, decides and writes in one atomic step, by the clock of the server.
// A key expires after its state has counted for as long as any that it held was to: up to a quarter of that later, or a
// second, and two seconds (a minute if the time was the caller's). A denial writes nothing, but for the first one after the
// numbers of a named limit have changed. There is no timer: a caller who finds the
// server idle is sent at once. Redis 6.2 and newer, single, Cluster and Sentinel.
//
// A caller whose context ends leaves at once. A request that has not been sent by then is
// not charged, and the error is [ErrNotSent]; one that is under way, be it only to a connection that
// is being made, stays charged if it is granted. [Store.Stats] counts both.
//
// Nothing is ever charged twice: a call whose answer was lost is not repeated but
// reported as an error, and may or may not have been charged. Only the calls of a
// concurrency.Limiter are repeated once, because they name the permit by its ID.
package redisstore

import (
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

// DefaultQueue is how many callers may wait unless [Options] says otherwise.
const DefaultQueue = 8192

// Options are the settings of a [Store]. The zero value is good.
type Options struct {
	// Prefix begins every key in Redis, [DefaultPrefix] if empty. Stores with
	// different prefixes share nothing. It must not contain a brace.
	Prefix string

	// Queue bounds how many callers wait until their request is sent, because a server
	// does not keep up or does not answer: further ones are told [ErrBusy] at once. It is
	// a bound for each half of the keys of a server. [DefaultQueue] if 0.
	Queue int

	// OnBatch, if not nil, is told of each trip to the server for decisions, by the
	// goroutine that made it, several at a time: callers wait until it returns, and it must not ask the store. If it
	// panics, so does each of them, though what was granted stays charged; so with a hook of the client. If it
	// ends its goroutine (runtime.Goexit), which may be a caller's, all others have their answers.
	OnBatch func(Batch)
}

// Store implements headgate.Store in Redis. It is safe for use by many
// goroutines. Make one with [New] or [Open].
type Store struct {
	client   redis.UniversalClient
	prefix   string
	queue    int           // callers who may wait in a lane
	patience time.Duration // see lane
	onBatch  func(Batch)
	owned    bool        // Close closes the client
	closed   atomic.Bool // by Close
	advices  []redisscript.Advice

	route    route
	stats    stats
	dials    dials // of a client that is owned
	clock    redisscript.Clock
	listener listener // of released permits
}

var _ headgate.Store = (*Store)(nil)

// New makes a store that uses client, which remains the caller's to close. A decision
// ends with its context, or else by the client's timeouts. The client's retries of
// commands do not apply here; its retries of dialling do.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if redisscript.IsNil(client) {
		return nil, &headgate.InvalidError{Field: "client", Value: "nil", Want: "a go-redis client"}
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if strings.ContainsAny(o.Prefix, "{}") {
		return nil, &headgate.InvalidError{Field: "prefix", Value: strconv.Quote(o.Prefix), Want: "a text without braces, which mark the part of a key that a Cluster hashes"}
	}
	if o.Queue < 0 {
		return nil, &headgate.InvalidError{Field: "queue", Value: strconv.Itoa(o.Queue), Want: "the number of callers who may wait, or 0 for " + strconv.Itoa(DefaultQueue)}
	}
	if o.Queue == 0 {
		o.Queue = DefaultQueue
	}
	s := &Store{client: client, prefix: o.Prefix, queue: o.Queue, patience: defaultPatience, onBatch: o.OnBatch, advices: advices(o.Prefix, commands)}
	s.route.init(s)
	return s, nil
}

// Close closes the client, if the store was made by [Open]. Callers that wait for a
// permit get an error then. A second Close does nothing, and returns nil.
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
	err := s.call(ctx, rs[:], ds[:], charges)
	return ds[0], err
}

// TakeAll implements headgate.Store. On a single server, and wherever all the
// requests have one key, it is one atomic step in one round trip.
//
// Otherwise the keys may lie on several servers. Then the requests of each key are taken
// together, key after key, and if a later key denies them they are refunded. Others may see
// the charges meanwhile and be denied for them; a refund after the edge of a window lets as
// many more be granted there. If an answer is lost, what was sent may stay charged. Nothing is
// booked ahead across keys: a MaxWait is refused with a headgate.InvalidError.
func (s *Store) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	if err := headgate.ValidateAll(rs, ds); err != nil {
		return err
	}
	if len(rs) == 0 {
		return nil
	}
	if s.route.single || oneKey(rs) {
		return s.call(ctx, rs, ds, charges)
	}
	for i, r := range rs {
		if r.MaxWait > 0 {
			return &headgate.InvalidError{Field: "request " + strconv.Itoa(i) + ": max wait", Value: r.MaxWait.String(), Want: "0, or one key for all requests, because keys may lie on several servers"}
		}
	}
	return s.takeMultiKey(ctx, rs, ds)
}

// Reset implements headgate.Store. It deletes whatever is at the key.
func (s *Store) Reset(ctx context.Context, key string, l headgate.Limit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	return s.process(ctx, redis.NewIntCmd(ctx, "del", s.key(key, l)))
}

// Ping says whether the server answers, and why not.
func (s *Store) Ping(ctx context.Context) error {
	return s.process(ctx, redis.NewStatusCmd(ctx, "ping"))
}

func (s *Store) process(ctx context.Context, cmd redis.Cmder) error {
	return s.dials.explain(ctx, s.explain(redisscript.Process(ctx, s.client, cmd)))
}

func asksStart(rs []headgate.Request) bool {
	return slices.ContainsFunc(rs, func(r headgate.Request) bool { return r.Start != nil })
}

// manner is how requests are decided.
type manner uint8

const (
	charges manner = iota
	settles        // charges, for one who has been let in already: a queue that is full takes him
	looksOn        // charges nothing, and is let in likewise
)

// call decides rs together, in the next batch of their lane, and fills ds.
func (s *Store) call(ctx context.Context, rs []headgate.Request, ds []headgate.Decision, how manner) error {
	a := s.ask(rs, how)
	err := errClosed
	for errors.Is(err, errClosed) {
		err = s.route.lane(rs[0].Key, a.names[0]).do(ctx, a) //nolint:contextcheck // to find the lane asks nobody
	}
	if err != nil {
		if errors.Is(err, ErrNotSent) && !a.left { // the lane was not joined: its context had ended before
			s.stats.notSent.Add(1)
		}
		return s.dials.explain(ctx, err)
	}
	defer a.free()
	if a.panicked != nil {
		panic(a.panicked)
	}
	copy(ds, a.decisions)
	if a.err == nil && asksStart(rs) && headgate.Granted(rs, ds) {
		for i := range rs {
			if rs[i].Start != nil && rs[i].Cost > 0 {
				*rs[i].Start = *a.requests[i].Start
			}
		}
	}
	return s.explain(a.err)
}

// within keeps a cost to what a double holds: above its capacity a limit makes no difference
// between costs, and no state has used 2^53.
func within(cost int64, l headgate.Limit) int64 {
	const max53 = 1<<53 - 1
	return min(max(cost, -max53), l.Capacity()+1)
}

// numbers are what a limit's algorithm needs besides its capacity.
func numbers(l headgate.Limit) (a, b int64) {
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		return l.Rate()
	case headgate.AlgorithmStepped:
		return l.Refill(), l.Period().Microseconds()
	default:
		return l.Period().Microseconds(), 0
	}
}
