package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/headgate/headgate/internal/problem"
)

// tokens are the hashes of bearer tokens. Hashes have one length, so that comparing them takes
// the same time for every token that a client may try.
type tokens [][sha256.Size]byte

func newTokens(list []string) tokens {
	hashes := make(tokens, len(list))
	for i, t := range list {
		hashes[i] = sha256.Sum256([]byte(t))
	}
	return hashes
}

// find returns the place of token in the list, from 1, or 0.
func (t tokens) find(token string) (place int) {
	hash := sha256.Sum256([]byte(token))
	for i := range t {
		place += subtle.ConstantTimeCompare(hash[:], t[i][:]) * (i + 1)
	}
	return place
}

// caller is the kind of client that sends a request.
type caller bool

// A program asks for decisions. An operator refunds, resets, reloads, and reads or sets overrides.
const (
	program  caller = false
	operator caller = true
)

// authorize returns a problem if r is not allowed. Without tokens, an operator must be on this
// machine.
func (h *Handler) authorize(r *http.Request, by caller) error {
	if err := h.guard.Check(r); err != nil {
		return &problem.Problem{Status: http.StatusForbidden, Detail: OtherSite}
	}
	known := h.settings.Load().tokens
	switch {
	case len(known) > 0:
		_, err := known.check(r)
		return err
	case by == operator && !h.IsLocal(r):
		return &problem.Problem{Status: http.StatusForbidden,
			Detail: "without tokens, overrides, resets, refunds and reloads are allowed only " +
				"from this machine: by a listener on loopback, with the host localhost or a " +
				"loopback address, and without a proxy; set api.tokens in the rules file"}
	}
	return nil
}

// HasTokens reports whether the file has tokens.
func (h *Handler) HasTokens() bool { return len(h.settings.Load().tokens) > 0 }

// CheckToken returns an identifier of the token of r, which does not reveal the token. It returns a
// problem if the token is not in the file.
func (h *Handler) CheckToken(r *http.Request) (name string, err error) {
	return h.settings.Load().tokens.check(r)
}

func (t tokens) check(r *http.Request) (name string, err error) {
	token, ok := bearer(r)
	if !ok {
		return "", &problem.Problem{Status: http.StatusUnauthorized, Authenticate: "Bearer",
			Detail: "there is no token; want the header field Authorization: Bearer TOKEN"}
	}
	place := t.find(token)
	if place == 0 {
		return "", &problem.Problem{Status: http.StatusUnauthorized,
			Authenticate: `Bearer error="invalid_token"`,
			Detail:       "the token is unknown; want one of api.tokens in the file"}
	}
	return hex.EncodeToString(t[place-1][:2]), nil
}

func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// byField names who makes a change, for the list of overrides.
const byField = "X-Headgate-By"

// by returns who makes the request r: what it says itself, or a name for its token.
func (h *Handler) by(r *http.Request) string {
	if name := r.Header.Get(byField); name != "" {
		return strings.ToValidUTF8(name[:min(len(name), MaxBy)], "")
	}
	if name, err := h.CheckToken(r); err == nil {
		return "token " + name
	}
	return ""
}
