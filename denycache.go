package headgate

import (
	"context"
	"hash/maphash"
	"math/bits"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/clock"
)

// DefaultDenials is the number of denials that a [DenyCache] remembers unless
// [DenyCacheOptions] says otherwise.
const DefaultDenials = 1 << 14

// DenyCacheOptions are the settings of a [DenyCache]. The zero value is good.
type DenyCacheOptions struct {
	// Keys is how many denials are remembered, each for a key and a limit; 0 means
	// DefaultDenials, and it is at most 16,777,216. Each takes 160 bytes, and the key.
	// The longest known is forgotten for a new one.
	Keys int

	// MaxTrust is how long a denial is believed before the store is asked again, and so
	// how late a reset, a refund or a higher limit of another process is noticed here. 0
	// means a second, which is what Retry-After counts in; at least 1µs.
	MaxTrust time.Duration
}

// DenyCache is a [Store] around a Store that is far away. Until the moment that a denial named, it
// denies the same key again in this process, without asking the store.
//
// It answers if every field is certain to be what the store would answer if nobody else
// came, and asks the store otherwise. It serves
//   - a cost that was denied, while Remaining is certain. It is if what was denied is one
//     more than that, such as 1 when nothing is left; and of buckets and fixed windows
//     as long as anything is left
//   - another cost above Remaining, if the answer tells what that has to wait for: of
//     buckets and fixed windows mostly, of all limits if the denied cost has to wait until
//     ResetAfter, or if the other exceeds the capacity. If not, it is asked for once, and up to 4 costs
//     of a key are remembered
//   - several limits together, if one of them denies and all are certain: not those
//     with a sliding window or log that is in use and would grant
//
// If nothing is left and a cost above 1 is denied twice, the second call also looks when 1 fits,
// which makes it certain.
//
// Time is counted in this process from before the store was asked. So nothing is denied
// longer than by the store, and the numbers are as if asked up to a round trip later.
// What is granted, given back or reset through the DenyCache is noticed at once, what others
// give back or reset after MaxTrust at most. Looks, requests with a MaxWait or a Ticket, and
// keys of over 1,024 bytes go to the store as they are. While the store fails, what is known
// is denied even so.
//
// A fallback.Store goes inside: around it, it would take denials from memory for successes of the store, and leave
// that alone late. What its share of a limit denies is not remembered. A [Lease] goes outside: inside, what it has
// ahead would be denied. So does [Observe].
//
// Its memory is bounded, a served denial allocates nothing, and it is safe for use by
// many goroutines. Make one with [NewDenyCache].
type DenyCache struct {
	store Store
	clock clock.Clock
	seed  maphash.Seed
	trust int64 // microseconds
	sets  []denials
}

var _ Store = (*DenyCache)(nil)

const (
	mostDenials   = 1 << 24
	longestDenied = 1024 // bytes of a key
)

// NewDenyCache makes a cache of what store denies. It returns an [*InvalidError] if store is
// nil or one of o is out of the range that [DenyCacheOptions] tells.
func NewDenyCache(store Store, o DenyCacheOptions) (*DenyCache, error) {
	if err := validateStore(store); err != nil {
		return nil, err
	}
	switch {
	case o.Keys < 0 || o.Keys > mostDenials:
		return nil, invalid("keys", int64(o.Keys), "at least 1 and at most "+strconv.Itoa(mostDenials)+", or 0 for "+strconv.Itoa(DefaultDenials))
	case o.MaxTrust != 0 && o.MaxTrust < time.Microsecond:
		return nil, &InvalidError{Field: "max trust", Value: o.MaxTrust.String(), Want: "at least 1µs, or 0 for 1s"}
	}
	if o.Keys == 0 {
		o.Keys = DefaultDenials
	}
	if o.MaxTrust == 0 {
		o.MaxTrust = time.Second
	}
	c := &DenyCache{store: store, seed: maphash.MakeSeed(), trust: o.MaxTrust.Microseconds(), sets: make([]denials, (o.Keys+places-1)/places)}
	c.clock.Start()
	return c, nil
}

// Take implements [Store].
func (c *DenyCache) Take(ctx context.Context, r Request) (Decision, error) {
	q := question{}
	if !deniable(&r) || !c.question(&q, &r, c.clock.Micros()) {
		d, err := c.store.Take(ctx, r)
		c.passed(&r)
		return d, err
	}
	v, known := q.answer(c.trust)
	denied := known && !v.granted()
	q.count(denied)
	if denied {
		return v.decision(r.Limit), nil
	}
	d, err := c.store.Take(ctx, r)
	if err != nil || d.RetryAfter == 0 {
		q.forget()
		return d, err
	}
	c.learn(ctx, &q, d, &r)
	return d, nil
}

// TakeAll implements [Store].
func (c *DenyCache) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	if err := ValidateAll(rs, ds); err != nil {
		return err
	}
	var few [8]question
	qs, ok := c.questions(rs, few[:0])
	if ok && c.answerAll(qs, rs, ds) {
		return nil
	}
	err := c.store.TakeAll(ctx, rs, ds)
	granted := err == nil && allAllowed(ds)
	for i := range rs {
		switch {
		case !ok:
			c.passed(&rs[i])
		case err != nil || granted:
			qs[i].forget()
		default:
			c.learn(ctx, &qs[i], ds[i], &rs[i])
		}
	}
	return err
}

// Reset implements [Store].
func (c *DenyCache) Reset(ctx context.Context, key string, l Limit) error {
	err := c.store.Reset(ctx, key, l)
	c.passed(&Request{Key: key, Limit: l, Cost: -1})
	return err
}

// DenyCacheStats are counts since a [DenyCache] was made. A request for several limits counts
// once for each.
type DenyCacheStats struct {
	Served uint64 // requests that were answered here
	Asked  uint64 // those for which the store was asked, but for what goes to it as it is
}

// Stats counts what the cache is good for.
func (c *DenyCache) Stats() DenyCacheStats {
	var n DenyCacheStats
	for i := range c.sets {
		s := &c.sets[i]
		n.Served += s.served.Load()
		n.Asked += s.asked.Load()
	}
	return n
}

// deniable says whether r can be answered from memory.
func deniable(r *Request) bool {
	return r.Cost > 0 && r.MaxWait == 0 && r.Ticket == 0 && r.Hold == 0 && len(r.Key) <= longestDenied
}

// question is r, asked now, if it is valid.
func (c *DenyCache) question(q *question, r *Request, now int64) bool {
	at, err := r.micros()
	if err != nil || r.Limit.rule == nil || !r.Limit.rule.valid {
		return false
	}
	q.key, q.l, q.cost = r.Key, r.Limit.rule, r.Cost
	q.asked = instant{own: now, at: at, given: at != 0}
	if at == 0 {
		q.asked.at = now
	}
	h := maphash.String(c.seed, r.Key) ^ r.Limit.rule.identity
	i, _ := bits.Mul64(h, uint64(len(c.sets)))
	q.denials, q.tag = &c.sets[i], uint32(h)
	return true
}

// questions are rs, which are valid, if all can be answered from memory.
func (c *DenyCache) questions(rs []Request, qs []question) ([]question, bool) {
	now := c.clock.Micros()
	for i := range rs {
		qs = append(qs, question{})
		if !deniable(&rs[i]) || !c.question(&qs[i], &rs[i], now) {
			return nil, false
		}
	}
	return qs, true
}

// answerAll fills ds if every answer is known and one of them is a denial, because of which
// nothing is charged.
func (c *DenyCache) answerAll(qs []question, rs []Request, ds []Decision) bool {
	known, denied := true, false
	for i := range qs {
		v, ok := qs[i].answer(c.trust) // also notes what is to be known when it is learnt
		if known = known && ok; ok {
			ds[i] = v.decision(rs[i].Limit)
			denied = denied || !v.granted()
		}
	}
	for i := range qs {
		qs[i].count(known && denied)
	}
	return known && denied
}

// learn takes over what d, which charged nothing, foretells of r.
func (c *DenyCache) learn(ctx context.Context, q *question, d Decision, r *Request) {
	if !q.learn(d, c.trust, c.margin(q)) {
		return
	}
	look := *r
	look.Cost = 0
	q.asked.own, q.cost = c.clock.Micros(), 1
	if !q.asked.given {
		q.asked.at = q.asked.own
	}
	if d, err := c.store.Take(ctx, look); err == nil {
		q.learn(d, c.trust, c.margin(q))
	}
}

// margin is how long ago q was asked, if that has to do with when it was decided.
func (c *DenyCache) margin(q *question) int64 {
	if q.asked.given {
		return 0
	}
	return c.clock.Micros() - q.asked.own + 1
}

// passed forgets what r, which went to the store as it was, may have changed.
func (c *DenyCache) passed(r *Request) {
	q := question{}
	if r.Cost != 0 && r.Limit.rule != nil && r.Limit.rule.valid {
		r := Request{Key: r.Key, Limit: r.Limit}
		c.question(&q, &r, 0)
		q.forget()
	}
}

func allAllowed(ds []Decision) bool {
	for _, d := range ds {
		if !d.Allowed() {
			return false
		}
	}
	return true
}
