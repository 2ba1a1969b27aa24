package console

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/headgate/headgate/service/internal/httpapi"
)

// access is what a request may do.
type access struct {
	MayRead  bool   `json:"may_read"`
	MayAct   bool   `json:"may_act"`
	Why      string `json:"why"` // why it may not do all
	Instance string `json:"instance"`

	token string // a name for its token
	err   error  // the answer if it may not do what it wants
}

// The texts of why a request may not do all.
const (
	noTokens  = "changes need a token, and there are no tokens; set api.tokens in the rules file"
	notDirect = "without tokens, only this machine may read, with the host localhost or a loopback " +
		"address; set api.tokens in the rules file"
	noToken  = "changes need a token: one of api.tokens in the rules file"
	needsOne = "a token is needed: one of api.tokens in the rules file"
)

// access finds what r may do. Keys are addresses of clients, so that only this machine may read
// without a token.
func (h *Handler) access(r *http.Request) access {
	a := access{Instance: h.instance}
	name, err := h.options.API.CheckToken(r)
	switch {
	case !isOwnSite(r):
		a.Why = "the request comes from a page of another site"
		a.err = &httpapi.Problem{Status: http.StatusForbidden, Detail: a.Why}
	case err == nil:
		a.MayRead, a.MayAct, a.token = true, true, name
	case r.Header.Get("Authorization") != "" && h.options.API.HasTokens():
		a.Why, a.err = err.Error(), err // a wrong token is an error, and not a missing one
	case !h.options.API.HasTokens():
		a.MayRead, a.Why = h.loopback && isDirect(r), noTokens
		if !a.MayRead {
			a.Why = notDirect
		}
		a.err = &httpapi.Problem{Status: http.StatusForbidden, Detail: a.Why}
	case !h.loopback || !isDirect(r):
		a.Why, a.err = needsOne, err
	default:
		a.MayRead, a.Why, a.err = true, noToken, err
	}
	return a
}

// reading refuses requests that may not read.
func (h *Handler) reading(f handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if a := h.access(r); !a.MayRead {
			return a.err
		}
		return f(w, r)
	}
}

// maxBody bounds the body of a request.
const maxBody = 64 << 10

// acting refuses requests that may not act.
func (h *Handler) acting(f handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if a := h.access(r); !a.MayAct {
			return a.err
		}
		return f(w, r)
	}
}

// fromHere refuses requests from pages of other sites.
func (h *Handler) fromHere(f handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := h.guard.Check(r); err != nil {
			return &httpapi.Problem{Status: http.StatusForbidden,
				Detail: "the request comes from a page of another site"}
		}
		return f(w, r)
	}
}

// withJSON refuses bodies that are no JSON, and bounds them.
func withJSON(f handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if kind != "application/json" {
			return &httpapi.Problem{Status: http.StatusUnsupportedMediaType,
				Detail: "the body is not JSON; want Content-Type: application/json"}
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		return f(w, r)
	}
}

func (h *Handler) serveAccess(w http.ResponseWriter, r *http.Request) error {
	return reply(w, h.access(r))
}

// isOwnSite reports whether no page of another site sends r. Such a page cannot read the answer, but
// could take the places of viewers.
func isOwnSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return false
}

// isDirect reports whether r comes from a client of this machine, and not through a proxy, as far as
// r says so. A name that others own may point to this machine, so only loopback names count.
func isDirect(r *http.Request) bool {
	for _, field := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header[field] != nil {
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// isLocal reports whether only this machine can connect to a.
func isLocal(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback() || !ok && a.Network() == "unix"
}
