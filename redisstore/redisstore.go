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
// headgate.Concurrency, which say by an ID what they are about, are repeated once.
package redisstore

import (
	"context"
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
	client     redis.UniversalClient
	prefix     string
	queueLimit int           // calls that may wait in a queue
	patience   time.Duration // see queue
	onBatch    func(Batch)
	owned      bool        // Close closes the client
	closed     atomic.Bool // by Close
	advices    []redisscript.Advice

	servers
	stats      stats
	dialErrors dialErrors // of a client that is owned
	clock      redisscript.Clock
	listener   listener // to flights that are given back
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
	s := &Store{
		client: client, prefix: o.Prefix, queueLimit: o.Queue, patience: defaultPatience, onBatch: o.OnBatch,
		advices: advices(o.Prefix, commands),
	}
	s.initServers()
	return s, nil
}

// Close closes the client, if the store was made by [Open]. Those who wait for a flight
// get an error then. A second Close does nothing, and returns nil.
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
	err := s.decideTogether(ctx, rs[:], ds[:], charge)
	return ds[0], err
}

// TakeAll implements headgate.Store. On a single server, and wherever all the
// requests have one key, it is one atomic step in one round trip.
//
// Otherwise the keys may lie on several servers. Then the requests of each key
// are taken together, key after key, and if a later key refuses they are taken back, as if they
// had never been taken. Others may see the charges meanwhile and be refused for them. What
// cannot be taken back within two seconds stays charged, and so may the last key if its answer is
// lost. Never more is granted than the limits say. What may be taken back makes each decision on
// its key slower: name the busiest key last, of which nothing is. Nothing is booked ahead then: a
// MaxWait is refused with a
// headgate.InvalidError.
func (s *Store) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	if err := headgate.ValidateAll(rs, ds); err != nil {
		return err
	}
	if len(rs) == 0 {
		return nil
	}
	if s.single || oneKey(rs) {
		return s.decideTogether(ctx, rs, ds, charge)
	}
	for i, r := range rs {
		if r.MaxWait > 0 {
			return &headgate.InvalidError{Field: "request " + strconv.Itoa(i) + ": max wait", Value: r.MaxWait.String(), Want: "0, or one key for all requests, because keys may lie on several servers"}
		}
	}
	return s.takeApart(ctx, rs, ds)
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
	return s.dialErrors.explain(ctx, s.explain(redisscript.Process(ctx, s.client, cmd)))
}

// mode is how a call is decided.
type mode uint8

const (
	charge mode = iota
	settle      // charge, also if the queue is full, to end what was begun
	peek        // charge nothing, also if the queue is full
)

// decideTogether decides rs in one batch, and fills ds.
func (s *Store) decideTogether(ctx context.Context, rs []headgate.Request, ds []headgate.Decision, m mode) error {
	c := s.newCall(rs, m)
	if err := s.queue(c.names[0]).do(ctx, c); err != nil {
		return s.dialErrors.explain(ctx, err)
	}
	copy(ds, c.decisions)
	err := c.err
	c.free()
	return s.explain(err)
}

// within keeps a cost to what a double holds: beyond its capacity a limit makes
// no difference between costs.
func within(cost int64, l headgate.Limit) int64 {
	return min(max(cost, -l.Capacity()), l.Capacity()+1)
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

// key is the key in Redis for the state of key under l: prefix{key}:id. A Cluster hashes what is
// between the first brace and the next, so that all limits of a key are on one server. The key may
// hold any bytes: its closing braces and percent signs are escaped, so that no two names collide.
func (s *Store) key(key string, l headgate.Limit) string {
	return s.prefix + "{" + escape(key) + "}:" + l.ID()
}

var escaper = strings.NewReplacer("%", "%25", "}", "%7D")

// escape is one to one, and never empty: a Cluster ignores empty braces.
func escape(key string) string {
	if key == "" {
		return "%"
	}
	if !strings.ContainsAny(key, "%}") {
		return key
	}
	return escaper.Replace(key)
}
