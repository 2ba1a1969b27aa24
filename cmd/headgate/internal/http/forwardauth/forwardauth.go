// Package forwardauth answers proxies that ask, before they pass a request on, whether they may.
//
// The addresses are /auth for all rules that match the described request and /auth/RULE for one
// rule. They answer 200, or 429 to deny; /auth/nginx and /auth/nginx/RULE answer 403 instead,
// because nginx turns any other denial into 500. docs/gateways has the configurations.
package forwardauth

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/answer"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// New makes the handler of /auth and of all below it. The function client finds the address of the
// client; see [rules.ClientAddress]. The function pages lets pages of other sites read a denial,
// and noURI gets requests without the field of the URI.
// Nothing is read from the query or the body: a proxy may pass those of the client.
func New(
	e *rules.Engine, client func(*http.Request) netip.Addr,
	pages func(http.Header, *http.Request), noURI func(*http.Request),
) http.Handler {
	return &handler{engine: e, client: client, pages: pages, noURI: noURI}
}

type handler struct {
	engine *rules.Engine
	client func(*http.Request) netip.Addr
	pages  func(http.Header, *http.Request)
	noURI  func(*http.Request)
}

const missingURI = "The request has no X-Forwarded-Uri and no X-Original-URI, so Headgate cannot " +
	"find the rules that match. Set one of these fields to the URI that the client asked for. " +
	"Also set X-Forwarded-Method and X-Forwarded-Host, unless the gateway sends the client's " +
	"method and Host. See docs/gateways."

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A proxy may announce the client's body and not send it: the server must not wait for it
	// before it answers. Where the deadline cannot be set, there is no connection to wait for.
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	}
	w.Header().Set("Cache-Control", "no-store") // by which docs/gateways/haproxy.md knows an answer
	rule, status, found := parseAddress(r.URL.Path)
	if !found {
		answer.Fail(w, http.StatusNotFound,
			"The path does not exist; want /auth, /auth/RULE, /auth/nginx or /auth/nginx/RULE.")
		return
	}
	if rule == "" && originalURI(r) == "" { // it would match other rules, or none, and pass
		h.noURI(r)
		answer.Fail(w, http.StatusBadRequest, missingURI)
		return
	}
	question, err := h.ask(rule, r)
	if err != nil {
		answer.Fail(w, http.StatusNotFound, "There is no rule "+rule+".")
		return
	}
	v, err := question.Decide(r.Context())
	if err != nil || !v.Allowed {
		h.pages(w.Header(), r)
	}
	write(w, r, &v, err, status)
}

// ask asks one rule, or all that match if it has no name, about the request that r describes.
func (h *handler) ask(rule string, r *http.Request) (*rules.Question, error) {
	q := h.describe(r)
	if rule == "" {
		return h.engine.Match(&q), nil
	}
	return h.engine.MatchRule(rule, &q)
}

// write answers r with a verdict. status is that of a denial.
func write(w http.ResponseWriter, r *http.Request, v *rules.Verdict, err error, status int) {
	switch {
	case err != nil:
		answer.Undecided(w, r)
	case !v.Allowed && status == http.StatusForbidden && !answer.Unchecked(v):
		// nginx drops the body, and closes the connection of an answer that has one.
		answer.SetFields(w.Header(), v)
		w.WriteHeader(status)
	case !v.Allowed:
		answer.Deny(w, status, v)
	default:
		answer.SetFields(w.Header(), v)
		w.WriteHeader(http.StatusOK)
	}
}

// parseAddress returns the rule of an address, or "" for all, and the status of denials.
func parseAddress(path string) (rule string, status int, found bool) {
	rest, found := strings.CutPrefix(path, "/auth")
	if !found || rest != "" && rest[0] != '/' {
		return "", 0, false
	}
	rest = strings.Trim(rest, "/")
	status = http.StatusTooManyRequests
	if first, second, _ := strings.Cut(rest, "/"); first == "nginx" {
		rest, status = second, http.StatusForbidden
	}
	return rest, status, !strings.Contains(rest, "/")
}

// describe returns the request that the proxy describes.
func (h *handler) describe(r *http.Request) rules.Request {
	host := cmp.Or(first(r.Header, "X-Forwarded-Host"), r.Host)
	return rules.Request{
		Method: cmp.Or(first(r.Header, "X-Forwarded-Method", "X-Original-Method"), r.Method),
		Host:   strings.TrimSpace(host[strings.LastIndexByte(host, ',')+1:]),
		Path:   rules.TargetPath(cmp.Or(originalURI(r), r.URL.EscapedPath())),
		Query:  rules.TargetQuery(originalURI(r)),
		Header: r.Header,
		Client: h.client(r),
	}
}

func originalURI(r *http.Request) string {
	return first(r.Header, "X-Forwarded-Uri", "X-Original-Uri")
}

// first returns the value of the first of the fields that is there. If the field has several
// values, it returns the last, which the nearest proxy wrote.
func first(h http.Header, names ...string) string {
	for _, name := range names {
		if values := h[name]; len(values) > 0 && values[len(values)-1] != "" {
			return values[len(values)-1]
		}
	}
	return ""
}
