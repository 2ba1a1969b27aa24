package console

import (
	"mime"
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/internal/problem"
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
	notDirect = "without tokens, only this machine may read: by a listener on loopback, with " +
		"the host localhost or a loopback address, and without a proxy; set api.tokens in the " +
		"rules file"
	noToken  = "changes need a token: one of api.tokens in the rules file"
	needsOne = "a token is needed: one of api.tokens in the rules file"
)

// access finds what r may do. Keys are addresses of clients, so that only this machine may read
// without a token.
func (h *Handler) access(r *http.Request) access {
	a := access{Instance: h.instance}
	name, err := h.options.API.CheckToken(r)
	switch {
	case !httpapi.IsOwnSite(r): // it cannot read the answer, but could use up the viewers
		a.Why = httpapi.OtherSite
		a.err = &problem.Problem{Status: http.StatusForbidden, Detail: a.Why}
	case err == nil:
		a.MayRead, a.MayAct, a.token = true, true, name
	case r.Header.Get("Authorization") != "" && h.options.API.HasTokens():
		a.Why, a.err = err.Error(), err // a wrong token is an error, and not a missing one
	case !h.options.API.HasTokens():
		a.MayRead, a.Why = h.options.API.IsLocal(r), noTokens
		if !a.MayRead {
			a.Why = notDirect
		}
		a.err = &problem.Problem{Status: http.StatusForbidden, Detail: a.Why}
	case !h.options.API.IsLocal(r):
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

// acting refuses requests from pages of other sites, those that may not act, and bodies that are no
// JSON.
func (h *Handler) acting(f handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		a := h.access(r)
		switch err := h.guard.Check(r); {
		case err != nil:
			return &problem.Problem{Status: http.StatusForbidden, Detail: httpapi.OtherSite}
		case !a.MayAct:
			return a.err
		case kind != "application/json":
			return &problem.Problem{Status: http.StatusUnsupportedMediaType,
				Detail: "the body is not JSON; want Content-Type: application/json"}
		}
		return f(w, r)
	}
}

func (h *Handler) serveAccess(w http.ResponseWriter, r *http.Request) error {
	a := h.access(r)
	if !a.MayRead {
		a.Instance = ""
	}
	return httpapi.Reply(w, a)
}
