package proxy

import (
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// rewrite makes the request to the server: that of the client, with its host and its query as they
// came. What it says about who it comes from is kept only if a trusted proxy says it.
func (h *handler) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(h.target)
	p.Out.Host = p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	trusted := exchangeOf(p.In).trusted
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

// dropTunnels removes the fields that ask for another protocol than websocket. Requests inside it
// would not be limited.
func dropTunnels(h http.Header) {
	if to := h["Upgrade"]; len(to) != 1 || !strings.EqualFold(to[0], "websocket") {
		delete(h, "Upgrade")
	}
	delete(h, "Http2-Settings")
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
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    maxIdle,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true, // bodies go through as they are
		ForceAttemptHTTP2:      true,
	}
}
