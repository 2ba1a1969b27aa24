package envoy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// Options are the settings of upstream that decide. The zero value is upstream's default.
type Options struct {
	NearLimitRatio    float32 // of a limit, above which hits count as near_limit; 0: 0.8
	LocalCacheBytes   int     // of memory for denials until their window ends; 0: none
	StopWhenOverLimit bool    // charge all descriptors of a request or none
	ShadowMode        bool    // deny nothing, and count what would be denied
	QuotaMode         bool    // treat every descriptor as if it had quota_mode
	DynamicMetadata   bool    // answer with the request and the metadata of what passed

	// OverLimit is called with each descriptor that is over its limit. It must be quick, and may
	// not keep the parts of a Denial. Default: none.
	OverLimit func(Denial)

	// Unmatched is called with each descriptor that no limit matches, and whether its domain is
	// known. It must be quick, and must not keep the descriptor. Default: none.
	Unmatched func(domain string, known bool, d *Descriptor)

	// The names of the header fields for the client. Fields are sent if LimitHeader is not empty.
	LimitHeader     string
	RemainingHeader string
	ResetHeader     string

	// RetryAfter adds Retry-After to denials that end: when no descriptor denies any more.
	RetryAfter bool
}

// Denial is a descriptor that is over its limit.
type Denial struct {
	Counters *Counters // under which it counts
	Key      string    // of its counter: domain|key=value|key=value
	Hits     uint64    // of the request
	Shadow   bool      // the rule only counts
}

// MaxDescriptors is how many descriptors a request may have.
const MaxDescriptors = 1000

// RequestError is the error of a request that cannot be decided, whatever the store holds. Any
// other error of [Limiter.Decide] is the store's.
type RequestError string

func (e RequestError) Error() string { return string(e) }

const (
	errNoDomain      RequestError = "rate limit domain must not be empty"
	errNoDescriptors RequestError = "rate limit descriptor list must not be empty"
	errNoConfig      RequestError = "no rate limit configuration loaded"
)

// Limiter decides requests by a [Config]. Make one with [New]. It is safe for use by many
// goroutines.
type Limiter struct {
	store     headgate.Store
	perSecond headgate.Store // for limits by the second; nil: store
	options   Options
	stats     *Statistics
	cache     *localCache // nil: none
	config    atomic.Pointer[Config]
	pool      sync.Pool // of *work
}

// New returns a Limiter that keeps its counters in store, those of limits by the second in
// perSecond unless that is nil, and counts what it decides in s.
func New(store, perSecond headgate.Store, o Options, s *Statistics) *Limiter {
	if o.NearLimitRatio == 0 {
		o.NearLimitRatio = 0.8
	}
	l := &Limiter{store: store, perSecond: perSecond, options: o, stats: s}
	l.pool.New = func() any { return new(work) }
	if o.LocalCacheBytes > 0 {
		l.cache = newLocalCache(o.LocalCacheBytes)
	}
	return l
}

// Use makes l decide by c from now on. What was consumed is kept.
func (l *Limiter) Use(c *Config) {
	l.stats.use(c)
	l.config.Store(c)
}

// Config is what l decides by, or nil.
func (l *Limiter) Config() *Config { return l.config.Load() }

// Decide fills resp with the answer to req. An error is a [RequestError] or one of the store, and
// leaves resp empty.
func (l *Limiter) Decide(ctx context.Context, req *Request, resp *Response) error {
	resp.Reset()
	c := l.config.Load()
	w, _ := l.pool.Get().(*work)
	err := l.prepare(w, c, req)
	if err != nil {
		l.stats.ServiceError.Add(1)
		l.release(w)
		return err
	}
	if err = l.take(ctx, w); err != nil {
		l.stats.RedisError.Add(1)
		return err // and w is not used again: the store may still read it
	}
	l.answer(w, req, resp)
	l.release(w)
	return nil
}

// work is what one request needs. It is reused.
type work struct {
	items    []item
	steps    []step
	text     []byte // of one lookup
	keys     []byte // of all counters
	replaced []string
	requests []headgate.Request
	decided  []headgate.Decision
	sent     []int // the items of requests
	held     bool  // a descriptor is over its limit: those that go together charge nothing
	recalled bool  // by the local cache
}

// item is one descriptor of a request.
type item struct {
	rule      *rule // nil: no limit applies
	own       rule  // of an override
	counters  *Counters
	unlimited bool

	hits     uint64
	cost     int64 // hits, below 0 for a refund
	key      string
	keyFrom  int
	keyTo    int
	together bool // charged only if all such items are granted
	force    bool
	// overdraws is for hits that are granted if any of them fits; they are forced once it does.
	overdraws bool
	after     bool // the work of the hits has been done
	cached    bool // over the limit, as the local cache remembers
	pending   bool // not sent to the store yet
	peek      bool // decided as a peek: a limit that is used up exactly is not exceeded
	charged   bool
	decision  headgate.Decision
}

// release puts w back. What it points to may go.
func (l *Limiter) release(w *work) {
	clear(w.items)
	clear(w.steps[:cap(w.steps)]) // of other descriptors, too
	clear(w.replaced)
	clear(w.requests[:cap(w.requests)]) // of other rounds, too
	*w = work{
		items: w.items[:0], steps: w.steps[:0], text: w.text[:0], keys: w.keys[:0],
		sent:     w.sent[:0],
		replaced: w.replaced[:0], requests: w.requests[:0], decided: w.decided[:0],
	}
	if cap(w.keys) <= 1<<16 && cap(w.items) <= 64 {
		l.pool.Put(w)
	}
}

// prepare finds the limits of req and counts its hits.
func (l *Limiter) prepare(w *work, c *Config, req *Request) error {
	switch {
	case req.Domain == "":
		return errNoDomain
	case len(req.Descriptors) == 0:
		return errNoDescriptors
	case c == nil:
		return errNoConfig
	case len(req.Descriptors) > MaxDescriptors:
		return RequestError(fmt.Sprintf(
			"rate limit descriptor list has %d descriptors; want at most %d",
			len(req.Descriptors), MaxDescriptors))
	}
	if cap(w.items) < len(req.Descriptors) {
		w.items = make([]item, 0, len(req.Descriptors))
	}
	w.items = w.items[:len(req.Descriptors)]
	root := c.domains[req.Domain]
	for i := range w.items {
		if root == nil {
			l.stats.notFound(req.Domain)
			l.unmatched(req.Domain, false, &req.Descriptors[i])
			continue
		}
		if err := l.find(w, &w.items[i], root, &req.Descriptors[i]); err != nil {
			return err
		}
		w.items[i].charge(req, &req.Descriptors[i])
	}
	w.replace()
	l.plan(w)
	return nil
}

// find sets the rule of it, its statistics, and its key in w.keys.
func (l *Limiter) find(w *work, it *item, root *node, d *Descriptor) error {
	if d.Override != nil {
		return l.override(w, it, root, d)
	}
	w.steps, w.text = match(root, d, w.steps[:0], w.text)
	r := limitOf(w.steps)
	if r == nil {
		l.stats.Unmatched.Add(1)
		l.unmatched(root.name, true, d)
		return nil
	}
	w.replaced = append(w.replaced, r.replaces...)
	if r.unlimited {
		it.unlimited = true
		return nil
	}
	it.rule = r
	it.counters = r.stats.own
	if !ownPath(r, d, w.steps) {
		w.text = appendPath(w.text[:0], r, d, w.steps)
		it.counters = r.stats.paths.get(l.stats, r.domain, w.text)
	}
	l.addKey(w, it, root.name, d)
	return nil
}

func (l *Limiter) unmatched(domain string, known bool, d *Descriptor) {
	if l.options.Unmatched != nil {
		l.options.Unmatched(domain, known, d)
	}
}

// override makes the limit that d brings the rule of it.
func (l *Limiter) override(w *work, it *item, root *node, d *Descriptor) error {
	o := d.Override
	if err := it.own.setWindow(o.RequestsPerUnit, o.Unit, o.Multiplier); err != nil {
		return RequestError("rate limit override: " + err.Error())
	}
	it.rule = &it.own
	w.text = appendOverridePath(w.text[:0], d)
	it.counters = root.overrides.get(l.stats, root.name, w.text)
	w.steps = w.steps[:0]
	l.addKey(w, it, root.name, d)
	return nil
}

// maxText is the longest key of a counter that is not hashed, and the longest path under which
// statistics by value are kept. A client can send a header field of any length.
const maxText = 4 << 10

func (l *Limiter) addKey(w *work, it *item, domain string, d *Descriptor) {
	it.keyFrom = len(w.keys)
	w.keys = appendKey(w.keys, domain, d, w.steps)
	if key := w.keys[it.keyFrom:]; len(key) > maxText {
		sum := sha256.Sum256(key)
		w.keys = append(appendEscaped(w.keys[:it.keyFrom], domain), "|sha256:"...) // without a =
		w.keys = hex.AppendEncode(w.keys, sum[:])
	}
	it.keyTo = len(w.keys)
}

// charge sets what it costs.
func (it *item) charge(req *Request, d *Descriptor) {
	it.hits = max(1, uint64(req.HitsAddend))
	if d.HasHits {
		it.hits = d.Hits
	}
	if it.rule == nil {
		return
	}
	it.cost = int64(it.hits)
	if d.Negative && d.HasHits {
		it.cost = -it.cost
	}
	// Denied hits count, as upstream has it. A limit in Headgate's text form counts what it grants.
	// But hits that come with the descriptor may be known only after the work is done. They are
	// granted, and charged, while anything is left, so that a client that asks for more than its
	// limit gets it; or the rule charges them always.
	it.after = it.rule.always && d.HasHits
	it.force = it.rule.window > 0 || it.after
	it.overdraws = !it.force && d.HasHits
}

// replace drops the limits that others of the same request replace.
func (w *work) replace() {
	for i := range w.items {
		it := &w.items[i]
		if it.rule != nil && it.rule.shown.Name != "" &&
			slices.Contains(w.replaced, it.rule.shown.Name) {
			it.rule = nil
		}
	}
}
