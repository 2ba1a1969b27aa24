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
	"strings"
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

	// Log gets a line for each request that the server did not answer. Required.
	Log *slog.Logger
}

const defaultStall = time.Minute

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
	h := &handler{options: o, engine: e, target: to}
	h.proxy = &httputil.ReverseProxy{
		Rewrite:        h.rewrite,
		ModifyResponse: modifyResponse,
		ErrorHandler:   h.serveError,
		Transport:      newTransport(),
		FlushInterval:  -1, // each part of a response goes on at once
		ErrorLog:       slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return h, nil
}

// parseTarget reads the URL of a server.
func parseTarget(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, &headgate.InvalidError{
			Field: "proxy target", Value: text, Want: "http://HOST:PORT or https://HOST:PORT",
		}
	}
	return u, nil
}

type handler struct {
	options Options
	engine  *rules.Engine
	target  *url.URL
	proxy   *httputil.ReverseProxy
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
	defer paced.finish()
	x := &exchange{
		trusted: h.options.Trusted(r), length: r.ContentLength,
		body: &pacedBody{ReadCloser: r.Body, controller: paced.controller, stall: h.options.Stall},
	}
	question := h.engine.Match(&rules.Request{
		Method: r.Method, Host: r.Host, Path: r.URL.Path, Header: r.Header,
		Client: h.options.Client(r),
	})
	status, why := x.expect(question, r)
	if x.peeked != nil {
		defer x.peeked.Release()
	}
	if status != 0 {
		paced.dropBody(r)
		answer.Refuse(paced, status, why)
		return
	}
	var err error
	x.verdict, x.admission, err = question.Begin(r.Context())
	switch {
	case err != nil && x.body.failed.Load(): // which ends the context of the decision
		answer.Fail(paced, http.StatusRequestTimeout, noBody)
		return
	case err != nil:
		paced.dropBody(r)
		answer.Undecided(paced, r)
		return
	case !x.verdict.Allowed:
		paced.dropBody(r)
		answer.Deny(paced, http.StatusTooManyRequests, &x.verdict)
		return
	}
	defer x.end(r.Context())
	passed := r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	passed.ContentLength = x.length
	if r.ContentLength != 0 {
		passed.Body = x.body
	}
	if x.passed != nil {
		passed.Body = x.passed
	}
	passed.Trailer = nil // httputil sends none, and fails at some names
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
		h.options.Log.Warn("the server behind the proxy does not answer",
			"target", h.target.Host, "error", err)
	}
	answer.Fail(w, http.StatusBadGateway, "The server behind this proxy does not answer.")
}
