// Package proxy limits requests and passes them on to a server.
//
// It does what forward authentication cannot: costs that are in the response, and permits that are
// held until the response has ended. It has no routes and gets no certificates.
package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/answer"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Options configures [New].
type Options struct {
	// Client finds the address of the client; see [rules.ClientAddress]. Required.
	Client func(*http.Request) netip.Addr

	// Trusted reports whether a trusted proxy sent a request; see [rules.IsFrom]. Its fields about
	// the client go on. Required.
	Trusted func(*http.Request) bool

	// Stall is how long a client may take to send or to receive the next part of a body.
	// Default: 60 s.
	Stall time.Duration

	// Pages lets pages of other sites read an answer of the proxy itself. Default: they cannot.
	Pages func(http.Header, *http.Request)

	// Log gets a line while the server does not answer. Required.
	Log *slog.Logger
}

const (
	defaultStall = time.Minute
	warnInterval = time.Minute
)

// h2c is the scheme of a server that speaks HTTP/2 without TLS, as those of gRPC do.
const h2c = "h2c"

// New makes a handler that passes requests on to target, such as http://app:3000, if the rules of e
// allow them. Target may have a path, which is put in front of each request's.
func New(e *rules.Engine, target string, o Options) (http.Handler, error) {
	to, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	if o.Stall <= 0 {
		o.Stall = defaultStall
	}
	h := &handler{options: o, engine: e, target: to, calls: to.Scheme != "http"}
	transport := newTransport(to.Scheme == h2c)
	if to.Scheme == h2c {
		to.Scheme = "http"
	}
	h.proxy = &httputil.ReverseProxy{
		Rewrite:        h.rewrite,
		ModifyResponse: modifyResponse,
		ErrorHandler:   h.serveError,
		Transport:      transport,
		FlushInterval:  -1, // each part of a response goes on at once
		ErrorLog:       slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return h, nil
}

// parseTarget reads the URL of a server.
func parseTarget(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"http", "https", h2c}, u.Scheme) || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &headgate.InvalidError{
			Field: "proxy target", Value: text,
			Want: "http://HOST:PORT, https://HOST:PORT or h2c://HOST:PORT",
		}
	}
	return u, nil
}

type handler struct {
	options Options
	engine  *rules.Engine
	target  *url.URL
	calls   bool // the server may speak gRPC, as it may speak HTTP/2
	proxy   *httputil.ReverseProxy

	failed atomic.Int64 // requests without an answer of the server since the last warning
	warned atomic.Int64 // when that was, in nanoseconds since 1970
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		answer.Fail(w, http.StatusNotImplemented,
			"This proxy forwards requests to one server only.")
		return
	}
	if r.URL.Host != "" && r.URL.Path == "" {
		r.URL.Path = "/"
	}
	if r.URL.Opaque != "" || !strings.HasPrefix(r.URL.Path, "/") { // no path for the rules
		answer.Fail(w, http.StatusBadRequest, "The target of the request has no path.")
		return
	}
	paced := newPacedWriter(w, h.options.Stall)
	x := &exchange{
		trusted: h.options.Trusted(r), length: r.ContentLength,
		body: newPacedBody(paced, r, h.calls && r.ProtoMajor == 2 && isCall(r)),
	}
	defer paced.finish(x.body)
	if r.ContentLength != 0 {
		defer context.AfterFunc(h.engine.Ending(), x.body.hurry)() //nolint:contextcheck // of all
	}
	if h.options.Pages != nil && len(r.Header["Origin"]) > 0 {
		paced.own = func(fields http.Header) {
			if x.response == nil {
				h.options.Pages(fields, r)
			}
		}
	}
	question := h.engine.Match(&rules.Request{
		Method: r.Method, Host: r.Host, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header,
		Body: r.ContentLength != 0, Client: h.options.Client(r),
	})
	defer x.release()
	x.body.trailer = trailerOf(r, question)
	status, why := x.expect(question, r)
	if status != 0 {
		x.body.drop()
		answer.Refuse(paced, status, why)
		return
	}
	if !x.body.ended.Load() && r.ProtoMajor == 1 {
		question.BeforeWait(x)
	}
	var err error
	x.verdict, x.admission, err = question.Begin(r.Context())
	switch {
	case x.admission == nil && x.body.failed.Load(): // which ends the context of the decision
		answer.Fail(paced, http.StatusRequestTimeout, noBody)
		return
	case err != nil:
		x.body.drop()
		answer.Undecided(paced, r)
		return
	case !x.verdict.Allowed:
		x.body.drop()
		if isCall(r) {
			answer.DenyCall(paced, r, &x.verdict)
			return
		}
		answer.Deny(paced, http.StatusTooManyRequests, &x.verdict)
		return
	}
	defer x.end(r.Context())
	passed := r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	passed.ContentLength = x.length
	if r.ContentLength != 0 {
		passed.Body = x.body
	}
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		paced.body = x.body
	}
	if x.passed != nil {
		passed.Body = x.passed
	}
	passed.Trailer = nil // see rewrite
	dropTunnels(passed.Header)
	h.proxy.ServeHTTP(paced, passed)
}

const noBody = "The body of the request did not arrive."

// serveError answers a request that the server did not answer.
func (h *handler) serveError(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	if r.Context().Err() == nil {
		answer.SetFields(w.Header(), &x.verdict)
	}
	if x.body.failed.Load() {
		answer.Fail(w, http.StatusRequestTimeout, noBody)
		return
	}
	if answer.Left(w, r) {
		return
	}
	if r.Context().Err() == nil {
		x.refused(r.Context(), err)
		h.warn(err)
	}
	answer.Fail(w, http.StatusBadGateway, "The server behind this proxy does not answer.")
}

// warn logs that the server does not answer, and then no more for a while.
func (h *handler) warn(err error) {
	failed, last, now := h.failed.Add(1), h.warned.Load(), time.Now().UnixNano()
	if now-last < int64(warnInterval) || !h.warned.CompareAndSwap(last, now) {
		return
	}
	h.failed.Add(-failed)
	h.options.Log.Warn("the server behind the proxy does not answer",
		"target", h.target.Host, "failed", failed, "error", err)
}

// isCall reports whether r is a call of gRPC, or of gRPC-Web.
func isCall(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}
