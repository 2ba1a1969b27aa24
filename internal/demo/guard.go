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

// maxBody bounds what may be posted. The longest that makes sense is a tenth of it.
const maxBody = 4 << 10

// policy lets the page load nothing but its own files, and nobody frame it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// guarded keeps strangers away from h: pages of other sites, which a browser would
// let write here, and names that somebody else has pointed at this machine.
func guarded(h http.Handler, host string) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "this request comes from a page of another site; only the demo's own page may change something here")
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
			refuse(w, http.StatusMisdirectedRequest, "the host "+strconv.Quote(r.Host)+" is not served here; use the address that the demo printed")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// known says whether a request for the host asked may be answered by a page that
// is served at the host bound. Behind a name that is not known may be anybody.
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
	return err == nil || name == strings.ToLower(bound) || name != "" && name == strings.ToLower(machine)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || err == nil && ip.IsLoopback()
}

// hostname is the host of host:port, in small letters and without brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if bare, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(bare, "]")
	}
	return strings.ToLower(host)
}

// only answers one method by h, HEAD like GET, and bounds what comes in.
func only(method string, h http.HandlerFunc) http.Handler {
	allow := method
	if method == http.MethodGet {
		allow = "GET, HEAD"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
			w.Header().Set("Allow", allow)
			refuse(w, http.StatusMethodNotAllowed, "the method is "+strconv.Quote(r.Method)+"; want "+allow)
			return
		}
		if !readBody(w, r) {
			return
		}
		h(w, r)
	})
}

// readBody reads the body as a whole, so that no handler can forget its bound.
func readBody(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		refuse(w, http.StatusRequestEntityTooLarge, "the body is too large; want at most "+strconv.Itoa(maxBody)+" bytes")
		return false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body ends before its end")
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}
