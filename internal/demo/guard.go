package demo

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// maxBody bounds the body of a request, at ten times the longest that makes sense.
const maxBody = 4 << 10

// policy lets the page load only its own files, and lets no page frame it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; " +
	"frame-ancestors 'none'; object-src 'none'"

// guarded rejects requests from pages of other sites, which a browser would send here, and for
// host names of others that point to this machine.
func guarded(h http.Handler, host string) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "the request comes from a page of another site; "+
			"only the page of the demo may send it")
	}))
	h = cross.Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !known(r.Host, host) {
			refuse(w, http.StatusMisdirectedRequest,
				"the host is "+strconv.Quote(r.Host)+"; want the address that the demo printed")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// known reports whether a page that is served on the host bound may respond to a request for the
// host asked. Anyone may own a name that is not known.
func known(asked, bound string) bool {
	name := hostname(asked)
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	if err == nil && ip.IsLoopback() {
		return true
	}
	if isLoopback(bound) {
		return false
	}
	machine, _ := os.Hostname()
	return err == nil || name == strings.ToLower(bound) ||
		name != "" && name == strings.ToLower(machine)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || err == nil && ip.IsLoopback()
}

// hostname returns the host of host:port, in lower case and without brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if bare, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(bare, "]")
	}
	return strings.ToLower(host)
}

// only accepts one method, HEAD like GET, and bounds the body.
func only(method string, h http.HandlerFunc) http.Handler {
	allow := method
	if method == http.MethodGet {
		allow = "GET, HEAD"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
			w.Header().Set("Allow", allow)
			refuse(w, http.StatusMethodNotAllowed,
				"the method is "+strconv.Quote(r.Method)+"; want "+allow)
			return
		}
		if !readBody(w, r) {
			return
		}
		h(w, r)
	})
}

// readBody reads the whole body, so that no handler can forget its bound.
func readBody(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		refuse(w, http.StatusRequestEntityTooLarge,
			"the body is too large; want at most "+strconv.Itoa(maxBody)+" bytes")
		return false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body is incomplete")
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}
