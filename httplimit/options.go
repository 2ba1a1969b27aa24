package httplimit

import (
	"net/http"
	"time"

	"github.com/headgate/headgate"
)

// Mode is what happens to a request while the store is unavailable. To limit requests in this time,
// too, put a fallback.Store around the store. The zero Mode is the default of the option.
type Mode uint8

const (
	// Closed answers a request with an error, or does not send it.
	Closed Mode = iota + 1

	// Open lets a request pass, or sends it.
	Open
)

// Options configures [New].
type Options = OptionsOf[*http.Request, DenyFunc]

// DenyFunc denies a request of net/http: see [OptionsOf.Denied].
type DenyFunc = func(w http.ResponseWriter, r *http.Request, denied []headgate.Decision)

// OptionsOf are the options of every kind of server. R is a request, and D the function that denies
// it. The zero OptionsOf limits each client address at a cost of 1 per request, sets all header
// fields, and lets requests pass while the store is unavailable.
type OptionsOf[R, D any] struct {
	// Key returns the key of a request. For net/http, [Key] adapts the functions of this package:
	// Key(Header("X-Api-Key")). Default: [RemoteAddress]; behind a proxy, use [ClientAddress].
	Key func(R) string

	// Cost returns how many tokens a request takes. 0 lets the request pass uncharged, and
	// its header fields show the limits as they are. A negative cost, such as the
	// ContentLength of a body of unknown length, counts as 1. Default: 1.
	Cost func(R) int64

	// Count reports whether a response with this status counts, such as a failed login:
	//
	//	Count: func(status int) bool { return status == http.StatusUnauthorized }
	//
	// The cost is taken before the handler runs, so that requests at the same time cannot exceed
	// the limit. If the response does not count, the cost is refunded before the response is sent;
	// its header fields show the limit without that refund. If the requests in progress have
	// used up the limit, the next one is denied, even if none of them counts in the end.
	//
	// Under a window or a log, a late refund returns only what the limit still counts. Under a
	// bucket, each request that is held open until the bucket has refilled can let its cost pass
	// once more: limit how long a request may take, or use a [headgate.SlidingLog].
	//
	// A handler that writes nothing has the status 200, and a handler that hijacks the connection
	// has 101. Informational statuses such as 103 do not matter. A request stays charged if its
	// handler panics, if its context ends before the status is written (the client has left), or if
	// the refund fails (Observe gets the error). Count is called by the goroutine of the handler.
	// With Count, the ResponseWriter is an [http.Flusher], [http.Hijacker] and io.ReaderFrom;
	// [http.ResponseController] has the rest, but there is no [http.Pusher]. Default: all count.
	Count func(status int) bool

	// Skip reports whether a request passes without being counted, such as a health check.
	// Default: no request.
	Skip func(R) bool

	// Denied writes the status and the body of the response to a denied request. The header fields
	// are already set. denied holds the decisions of the limits that denied, at least one. It is
	// not called if a fallback denies without having checked the limit, as fallback.Closed does:
	// then no limit is exceeded, and the response is a 503. Default: status 429 with a problem
	// document (RFC 9457).
	Denied D

	// WhenStoreFails is what happens to a request that cannot be decided: the store is unavailable,
	// or the function of NewLimiterFunc failed. With [Closed], the response has status 503. With
	// [Open], the request passes uncharged, unless its own context has ended or its limits are not
	// valid. Use Closed if that function can fail. A fallback.Store decides while the store inside
	// it is unavailable, so only errors of the function remain. Under fallback.Closed, the response
	// is a 503 meanwhile, even with Open. Under fallback.Local, the header fields show this
	// instance's share of the limit. Default: Open.
	WhenStoreFails Mode

	// Timeout is how long a decision may take until the store counts as unavailable. The request
	// may still be charged. Set it for a store across a network, to 50 ms for example, but not for
	// a fallback.Store, which has a timeout of its own. Default: the timeouts of the store's
	// client. With redisstore.Open, they end a decision within a second, or within seconds if
	// thousands of requests come together. The defaults of go-redis take 5 s and more.
	Timeout time.Duration

	// Shadow decides and charges, but denies no request and sets no header field. Use it to
	// try limits on live traffic. It requires Observe.
	Shadow bool

	// Observe is called with the decision of the strictest limit before it takes effect, and with
	// each error of the store. It is not called for a request of cost 0. It must be safe for
	// concurrent use. Default: none.
	Observe func(r R, d headgate.Decision, err error)

	// Fields are the header fields to set. Default: [AllFields].
	Fields Fields
}
