package httplimit

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/pause"
)

// TransportOptions configures [NewTransport]. The zero TransportOptions limits each host at a
// cost of 1 per request, and sends nothing while the store is unavailable.
type TransportOptions struct {
	// Base sends the requests. Default: http.DefaultTransport.
	Base http.RoundTripper

	// Key returns the key of a request, such as an account of the API. Default: [TargetHost].
	Key func(*http.Request) string

	// Cost returns how many tokens a request takes. A request of cost 0 waits only for the
	// end of a pause. A negative cost, such as the ContentLength of a body of unknown
	// length, counts as 1. Default: 1.
	Cost func(*http.Request) int64

	// Tokens makes a request to a model cost the tokens that the model uses: an estimate is
	// reserved, and replaced by what the response reports; see [Transport]. A request whose Cost is
	// 0 costs nothing; other values of Cost do not count. Default: requests cost their Cost.
	Tokens *TokenCost

	// Pause returns the pause that a response asks for in a way of its own, such as by the
	// X-RateLimit-Reset of GitHub. If it returns 0 or less, the fields that [Transport] names
	// decide. It must be safe for concurrent use, and must not read the body. Default: none.
	Pause func(*http.Response) time.Duration

	// MaxPause is the longest pause that a response can cause, at most a year. A longer one
	// is shortened to it. Default: [DefaultMaxPause].
	MaxPause time.Duration

	// Permits limits how many requests arrive at an API in any window of a Period. A request that
	// has a cost waits for a permit of its key, and releases it a Period after the response. So no
	// more requests arrive in any window of a Period than there are permits. Without a response,
	// the permit expires: its TTL must be at least the sum of a Period and the longest time from
	// the acquisition until a request arrives. If Base is an http.Transport, it sends each of these
	// requests once, with two exceptions: it may repeat a TRACE, and a request that has an
	// Idempotency-Key and no body. Default: none.
	Permits *concurrency.Limiter

	// Period is the period of the API's limit. Required with Permits.
	Period time.Duration

	// WhenStoreFails is what happens to requests while the store is unavailable. With [Closed],
	// RoundTrip returns the error of the store, as [headgate.Limiter.Wait] does. With [Open],
	// requests are sent without waiting; pauses that responses to this process asked for still
	// apply. Default: Closed.
	WhenStoreFails Mode

	// Observe is called with each pause that a response causes, and with each error of the store.
	// The pause is 0 if the error concerns no pause. It must be safe for concurrent use. Default:
	// none.
	Observe func(r *http.Request, pause time.Duration, err error)

	// Waited is called before a request is sent, with how long it waited: for the limits, for the
	// end of pauses and for a permit. It must be safe for concurrent use, and must not panic.
	// Default: none.
	Waited func(r *http.Request, d time.Duration)
}

// DefaultMaxPause is the MaxPause of the zero [TransportOptions].
const DefaultMaxPause = pause.DefaultMax

// NewTransport makes an http.RoundTripper that waits before it sends a request. It returns a
// [headgate.InvalidError] if l is nil or the options are invalid.
func NewTransport(l *headgate.Limiter, o TransportOptions) (*Transport, error) {
	switch {
	case o.Tokens != nil && o.Tokens.cost().Validate() != nil:
		return nil, invalid("Tokens", fmt.Sprintf("%+v", *o.Tokens), "an Estimate of at least 1, "+
			"and weights from 0 to 1,000,000, one of them above 0")
	case o.WhenStoreFails > Open:
		return nil, invalid("WhenStoreFails", strconv.Itoa(int(o.WhenStoreFails)), "Closed or Open")
	case o.Period < 0 || o.Period > pause.Longest || (o.Period > 0) != (o.Permits != nil):
		return nil, invalid("Period", o.Period.String(),
			"more than 0 and at most a year with Permits, or 0 without")
	case o.Permits != nil && o.Permits.TTL() < o.Period:
		return nil, invalid("Permits", "a limiter with a TTL of "+o.Permits.TTL().String(),
			"a TTL of at least the Period, because a request without a response keeps its permit")
	}
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	if o.Key == nil {
		o.Key = TargetHost
	}
	t := &Transport{options: o, limiter: l, pauses: pause.Pauses[*http.Request]{
		Max: o.MaxPause, Open: o.WhenStoreFails == Open, Observe: o.Observe, Waited: o.Waited,
		Permits: o.Permits, Period: o.Period,
	}}
	if err := t.pauses.Init(l); err != nil {
		return nil, err
	}
	return t, nil
}

// Transport is an http.RoundTripper that waits until its limits allow a request, and until the
// pauses that the server asked for are over. Make one with [NewTransport]:
//
//	client := &http.Client{Transport: transport}
//
// Requests of a key are sent in the order in which they came, with three exceptions. Requests that
// have the same start time, such as those within the burst or after a pause, may change places. A
// request that had a start time when a pause began goes to the end of the line. Requests of
// different costs may change places while tokens are left.
//
// A request must be sent before the deadline of its context, which includes the Timeout of the
// http.Client. If its start time or the end of a pause is later, RoundTrip fails with a
// [headgate.DeadlineError] as soon as that is certain, and charges nothing. A loop that then sends
// the next request at once uses a whole CPU: end or pause the loop. With Permits, a request that
// gets no permit before its deadline fails with the error of its context.
//
// # Pauses
//
// A response can ask for a pause; then the next requests of its key wait. If the options have a
// Pause that returns more than 0, it decides. Otherwise the first of these fields that asks for a
// pause decides:
//
//   - Retry-After-Ms, or else Retry-After, in seconds or as a date, unless the status is a success
//     (2xx). A fraction is rounded up. A date may end in UTC or an offset instead of GMT.
//   - RateLimit, as in draft-ietf-httpapi-ratelimit-headers-10: t of a limit with r=0.
//   - In a 429 or 503, unless something remains: reset of RateLimit in draft 7, or RateLimit-Reset
//     in draft 6, in seconds or as a Unix time.
//
// After a 429 in which none of these asks for a pause (also "Retry-After: 0" or a date in the
// past), the key backs off: it pauses for a second, and for twice as long after each further one,
// up to a minute. Any other response ends the back-off. There is no jitter, because the limits
// space the requests after a pause.
//
// Dates are compared with the Date of the response. Pauses are kept in the limiter's store, under
// the limit named "httplimit.pause", so that all processes that share the store obey them. No limit
// of the limiter may have that name. In a full [headgate.Memory], new keys share their pauses, as
// they share their limits. If several responses ask for pauses within one round trip to the store,
// the pause that remains is sometimes not the longest of them. Another process may briefly see a
// pause that is longer than all of them.
//
// The response is returned unchanged, and nothing is sent again: to retry, send the request again,
// and it waits. Recording a pause delays a response by at most 100 ms. If the store takes longer,
// this process alone keeps the pause.
//
// # Tokens
//
// With Tokens, a request to OpenAI, Anthropic, Gemini, or to a server with one of their APIs first
// reserves tokens: Output x its max_tokens + Input x a quarter of the bytes of its body. The field
// may also be max_completion_tokens, max_output_tokens, maxOutputTokens, maxTokens or num_predict.
// Without such a field in a body of JSON, the request reserves the Estimate instead of Output x
// max_tokens. It never reserves more than the limits can hold. RoundTrip reads the first MiB of the
// body for that, and sends the body unchanged.
//
// When the body of the response has been read to its end, or to the last event of a stream, the
// usage that it reports is charged instead of what was reserved. Unused tokens are returned; tokens
// used beyond the reservation delay later requests. Each part of the body passes at once; the end
// waits for the store for at most 100 ms. A failure to connect, a status of 400 or above without
// usage, and a response that is nothing but an error cost nothing. If another response has no
// usage, if its body is closed before its end, or if the Base fails otherwise, the request costs
// what was reserved, or what was reported until then if that is more.
//
// If tokens refill before unused tokens are returned, a limit can be exceeded: see
// [headgate.Limiter.Refund]. Otherwise it is exceeded only by what responses use beyond their
// reservations. A request that waits keeps its start time, even if tokens are returned meanwhile.
// Only requests that come later can use these tokens.
//
// # Round trips to the store
//
// A request takes one round trip, which reads the pause and reserves. If the request had to wait,
// it reads the pause again, in a second one. A response that asks for a pause takes two more,
// Permits take two more, and Tokens take one more.
type Transport struct {
	options TransportOptions
	limiter *headgate.Limiter
	pauses  pause.Pauses[*http.Request]
}

// RoundTrip waits until r may be sent, and sends it.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	key := t.options.Key(r)
	r, cost, err := t.estimate(r, key)
	var reservation *headgate.Reservation
	var permit *concurrency.Permit
	if err == nil {
		reservation, permit, err = t.pauses.Wait(r.Context(), r, key, cost)
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, err
	}
	if permit != nil {
		r = once(r)
	}
	response, err := t.options.Base.RoundTrip(r)
	if t.options.Tokens != nil && reservation != nil {
		t.settleBy(response, err, r, reservation, cost)
	}
	if err == nil {
		t.answered(r, key, response, permit)
	}
	return response, err
}

// CloseIdleConnections closes the idle connections of the Base.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.options.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// TargetHost returns a key: the host to which a request is sent. The key contains the port unless
// that is the default of the scheme. Upper case and a dot at the end make no difference.
func TargetHost(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	host, port := r.URL.Hostname(), r.URL.Port()
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	isDefault := strings.EqualFold(r.URL.Scheme, "http") && port == "80" ||
		strings.EqualFold(r.URL.Scheme, "https") && port == "443"
	if port != "" && !isDefault {
		host += ":" + port
	}
	return tagged("host:", host)
}
