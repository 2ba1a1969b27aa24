package proxy

import (
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// rewrite makes the request to the server: that of the client, with its query as it came. A server
// behind https gets the host of its certificate, another that of the client. What the request says
// about who it comes from is kept only if a trusted proxy says it.
func (h *handler) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(h.target)
	if h.target.Scheme == "http" {
		p.Out.Host = p.In.Host
	}
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	x := exchangeOf(p.In)
	p.Out.Trailer = x.body.trailer
	if x.admission.ReadsUsage() {
		p.Out.Header.Set("Accept-Encoding", "identity") // a client could hide its usage by another
	}
	trusted := x.trusted
	for name := range p.Out.Header {
		if plain, is := forwardingField(name); is && (!trusted || name != plain) {
			delete(p.Out.Header, name)
		}
	}
	if trusted {
		keep(p, "X-Forwarded-For")
	}
	p.SetXForwarded()
	if trusted {
		keep(p, "X-Forwarded-Host")
		keep(p, "X-Forwarded-Proto")
		keep(p, "Forwarded")
	}
}

// keep passes a field on, which httputil has removed.
func keep(p *httputil.ProxyRequest, name string) {
	if values := p.In.Header[name]; len(values) > 0 {
		p.Out.Header[name] = values
	}
}

const (
	dialTimeout       = 10 * time.Second
	idleTimeout       = 90 * time.Second
	maxIdle           = 256
	maxResponseHeader = 1 << 20
)

// newTransport returns what sends requests to the server. There is no time limit for a response:
// the client decides how long it waits.
func newTransport(h2c bool) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	var protocols *http.Protocols // the default ones
	if h2c {
		protocols = new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    maxIdle,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true, // bodies go through as they are
		ForceAttemptHTTP2:      true,
	}
}

// forwardingField reports whether name is a field in which proxies describe the request. Plain is
// the name as CGI and its successors read it: to them, X_Real_IP and X-Real-IP are one field. It is
// empty for fields by which some servers choose a path that rules have not seen: nobody may send
// them.
func forwardingField(name string) (plain string, is bool) {
	plain = http.CanonicalHeaderKey(strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return '-'
	}, name))
	if plain == "X-Original-Url" || plain == "X-Rewrite-Url" {
		return "", true
	}
	const prefix = "X-Forwarded-"
	return plain, len(plain) > len(prefix) && strings.HasPrefix(plain, prefix) || slices.Contains(
		[]string{"X-Real-Ip", "X-Original-Uri", "X-Original-Method"}, plain)
}

// trailerOf returns the fields that a request announces for its end and that may pass: a server
// must not find there what it would not have found in the header, nor a key that q has not seen.
func trailerOf(r *http.Request, q *rules.Question) (passed http.Header) {
	for name := range r.Trailer {
		_, forwards := forwardingField(name)
		if forwards || slices.Contains(headerOnly, name) || q.Reads(name) ||
			!httpguts.ValidHeaderFieldName(name) || !httpguts.ValidTrailerHeader(name) {
			continue
		}
		if passed == nil {
			passed = make(http.Header)
		}
		passed[name] = nil
	}
	for _, hop := range r.Header["Connection"] {
		for name := range strings.SplitSeq(hop, ",") {
			delete(passed, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return passed
}

// headerOnly are the fields that pass only in a header, besides those of [trailerOf].
var headerOnly = []string{"Cookie", "Forwarded", "Http2-Settings", "Upgrade"}
