package httplimit

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/internal/problem"
)

// Request is what a [KeyFunc] reads of a request, whichever server received it.
type Request interface {
	Context() context.Context
	RemoteAddr() string         // the other end of the connection; a port is ignored
	Host() string               // as the client wrote it
	Path() string               // decoded
	Field(name string) []string // the values of a header field, by its name as net/http spells it
}

// Decider decides the requests of any kind of server. It is the part of a middleware that is the
// same for all servers: [New] uses one for net/http, and ginlimit, echolimit, fiberlimit, grpclimit
// and connectlimit for their servers. R is a request, and D the function that denies it.
type Decider[R, D any] struct {
	OptionsOf[R, D]
	limiter  *headgate.Limiter
	policies *policies
	clock    wallClock
}

// Verdict is what a middleware does with a request.
type Verdict struct {
	// Status is 0 if the request passes, 429 if limits deny it, and 503 if it cannot be decided. If
	// the client left before its request was decided, Status is 499, as nginx logs it.
	Status int

	// Denied holds the decisions of the limits that denied, if Status is 429.
	Denied []headgate.Decision

	// Counted reports that [Decider.Outcome] decides, by the response, whether the request counts.
	Counted bool

	cost  int64
	taken []headgate.Request // what Outcome refunds
}

// statusLeft is never received: the client has left. It is for access logs and metrics.
const statusLeft = 499

// NewDecider makes a Decider. Its options must have a Key. It returns a [headgate.InvalidError] if
// l is nil or the options are invalid.
func NewDecider[R, D any](l *headgate.Limiter, o OptionsOf[R, D]) (*Decider[R, D], error) {
	switch {
	case l == nil:
		return nil, invalid("limiter", "nil", "one made by headgate.NewLimiter")
	case o.Key == nil:
		return nil, invalid("Key", "nil", "a function")
	case o.Timeout < 0:
		return nil, invalid("Timeout", o.Timeout.String(), "more than 0, or 0 for none")
	case o.WhenStoreFails > Open:
		return nil, invalid("WhenStoreFails", strconv.Itoa(int(o.WhenStoreFails)), "Closed or Open")
	case o.Fields&^(AllFields|NoFields) != 0:
		return nil, invalid("Fields", strconv.Itoa(int(o.Fields)),
			"a set of Draft10, XRateLimit and RetryAfter, or NoFields")
	case o.Shadow && o.Observe == nil:
		return nil, invalid("Observe", "nil", "a function, because Shadow has no other effect")
	}
	o.Fields = cmp.Or(o.Fields, AllFields)
	return &Decider[R, D]{OptionsOf: o, limiter: l, policies: newPolicies()}, nil
}

func invalid(field, value, want string) error {
	return &headgate.InvalidError{Field: field, Value: value, Want: want}
}

// Decide decides r, and sets the header fields of its response in fields, such as an http.Header.
func (d *Decider[R, D]) Decide(ctx context.Context, r R, fields map[string][]string) Verdict {
	if d.Skip != nil && d.Skip(r) {
		return Verdict{}
	}
	var room [4]headgate.Decision
	v := Verdict{cost: costOf(r, d.Cost)}
	ds, taken, err := d.allow(ctx, d.Key(r), v.cost, room[:0])
	switch {
	case err != nil && v.cost > 0:
		v.Status = d.undecided(ctx, r, err)
		return v
	case len(ds) == 0: // a key without limits, or a free request that cannot be decided
		return v
	case v.cost == 0:
		for i := range ds {
			ds[i].RetryAfter = 0 // a free request is never denied
		}
	}
	strictest := headgate.Strictest(ds)
	if d.Observe != nil && v.cost > 0 {
		d.Observe(r, strictest, nil)
	}
	v.taken = taken
	v.Counted = d.Count != nil && v.cost > 0 && strictest.Allowed() && !strictest.Unchecked()
	switch {
	case d.Shadow:
	case !strictest.Allowed() && strictest.Unchecked():
		(d.Fields & RetryAfter).Write(fields, time.Now(), ds...)
		v.Status = http.StatusServiceUnavailable
	default:
		d.Fields.write(fields, d.clock.unixNano(), ds, d.policies)
		if !strictest.Allowed() {
			v.Status = http.StatusTooManyRequests
			v.Denied = slices.DeleteFunc(slices.Clone(ds), headgate.Decision.Allowed)
		}
	}
	return v
}

// undecided returns the status of r if it cannot be decided. A request whose context has ended is
// not passed on: a client could cancel its requests in order to be served uncharged. Nor is one
// whose limits are not valid: that is a mistake in the program, not a store that is unavailable.
func (d *Decider[R, D]) undecided(ctx context.Context, r R, err error) (status int) {
	if d.Observe != nil {
		d.Observe(r, headgate.Decision{}, err)
	}
	switch {
	case d.Shadow, d.WhenStoreFails != Closed && headgate.Unavailable(ctx, err):
		return 0
	case errors.Is(ctx.Err(), context.Canceled):
		return statusLeft
	}
	return http.StatusServiceUnavailable
}

func (d *Decider[R, D]) allow(
	ctx context.Context, key string, cost int64, ds []headgate.Decision,
) (_ []headgate.Decision, taken []headgate.Request, err error) {
	ctx, cancel := within(ctx, d.Timeout)
	defer cancel()
	if d.Count == nil || cost == 0 {
		ds, err = d.limiter.AllowEach(ctx, key, cost, ds)
		return ds, nil, err
	}
	limits, err := d.limiter.Limits(ctx, key)
	if err != nil || len(limits) == 0 {
		return nil, nil, err
	}
	start := new(time.Time)
	for _, l := range limits {
		taken = append(taken, headgate.Request{Key: key, Limit: l, Cost: cost})
		if l.Refill() == 0 { // a bucket's refund names no start
			taken[len(taken)-1].Start = start
		}
	}
	ds, err = d.take(ctx, taken)
	return ds, taken, err
}

func (d *Decider[R, D]) take(
	ctx context.Context, rs []headgate.Request,
) (ds []headgate.Decision, err error) {
	ds = make([]headgate.Decision, len(rs))
	if len(rs) > 1 {
		return ds, d.limiter.Store().TakeAll(ctx, rs, ds)
	}
	ds[0], err = d.limiter.Store().Take(ctx, rs[0])
	return ds, err
}

// within returns ctx with a timeout, if there is one.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {}
}

// Outcome refunds the cost of a request, unless the status of its response counts: see
// [OptionsOf.Count]. It does nothing unless v.Counted is true. If it is called before the response
// ends, the client waits for the refund, and its next request finds the refunded tokens. If ctx has
// ended because the client has left, the request stays charged.
func (d *Decider[R, D]) Outcome(ctx context.Context, r R, v Verdict, status int) {
	if !v.Counted || ctx.Err() != nil || d.Count(status) {
		return
	}
	ctx, stop := await.Settling(ctx, true)
	defer stop()
	ctx, cancel := within(ctx, d.Timeout)
	defer cancel()
	refunds := make([]headgate.Request, len(v.taken))
	for i, r := range v.taken {
		refunds[i] = r.Refund(v.cost)
	}
	_, err := d.take(ctx, refunds)
	if err != nil && d.Observe != nil {
		d.Observe(r, headgate.Decision{}, err)
	}
}

// Problem returns the document for the response to a request that does not pass: RFC 9457, of type
// application/problem+json, with the types of draft-ietf-httpapi-ratelimit-headers-10. It is empty
// if the client has left.
func (v *Verdict) Problem() []byte {
	switch v.Status {
	case statusLeft:
		return nil
	case http.StatusServiceUnavailable:
		return append(problem.Reduced(v.Status, v.Detail()).JSON(), '\n')
	}
	var violated []string
	for _, d := range v.Denied {
		violated = append(violated, d.Limit.Name())
	}
	return append(problem.Exceeded(v.Status, v.Detail(), violated).JSON(), '\n')
}

// Write sends Status and the problem document as the response.
func (v *Verdict) Write(w http.ResponseWriter) {
	h := w.Header()
	// These describe the page that is not sent. Other fields of outer handlers stay.
	for _, stale := range []string{"Content-Length", "Content-Range", "ETag", "Last-Modified"} {
		h.Del(stale)
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(v.Status)
	_, _ = w.Write(v.Problem()) // the client may have disconnected
}

// Detail returns the sentence that tells the client why its request does not pass.
func (v *Verdict) Detail() string {
	if v.Status != http.StatusTooManyRequests {
		return "The server cannot check the limits of this request at the moment."
	}
	d := headgate.Strictest(v.Denied)
	if d.RetryAfter == headgate.Never {
		return "The limit " + d.Limit.Name() + " can never grant a request of this cost."
	}
	return "The limit " + d.Limit.Name() + " is exceeded. Retry in " +
		problem.Seconds(d.RetryAfter) + " s."
}

// costOf returns the cost of r: that of the given function, or 1.
func costOf[R any](r R, cost func(R) int64) int64 {
	if cost != nil {
		if n := cost(r); n >= 0 {
			return n
		}
	}
	return 1
}

// wallClock is a wall clock that reads only the monotonic clock, at half the cost of
// time.Now. Once a second it reads both, so a step of the wall clock takes effect within a
// second, which is the precision of the header fields.
type wallClock struct{ last atomic.Pointer[time.Time] }

func (c *wallClock) unixNano() int64 {
	if last := c.last.Load(); last != nil {
		if since := time.Since(*last); since < time.Second {
			return last.UnixNano() + int64(since)
		}
	}
	now := time.Now()
	c.last.Store(&now)
	return now.UnixNano()
}
