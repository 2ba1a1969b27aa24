package httpapi

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/service/internal/rules"
)

// The time after which a permit expires unless it is renewed.
const (
	defaultTTL = 60 * time.Second
	maxTTL     = 24 * time.Hour
)

// ttlField reads the TTL of a permit.
func ttlField(to *time.Duration) field {
	*to = defaultTTL
	f := seconds("ttl", to, maxTTL)
	read := f.set
	f.set = func(raw json.RawMessage) string {
		if want := read(raw); want != "" || *to < time.Millisecond {
			return "a number of seconds from 0.001 to 86400"
		}
		return ""
	}
	return f
}

// acquire takes one of the permits of a key, if one is free.
func (h *Handler) acquire(w http.ResponseWriter, r *http.Request) error {
	var t target
	var ttl time.Duration
	fields := []field{text("rule", &t.rule, maxRule), text("key", &t.key, maxKey), ttlField(&ttl)}
	if err := h.read(w, r, &t, fields...); err != nil {
		return err
	}
	t.cost = 1
	if t.terms.Permits == 0 {
		return badField("rule", quote(t.rule)+", which has no permits", "a rule with permits")
	}
	request := concurrency.Request{
		Key: rules.PermitKey(t.rule, t.key), Limit: t.terms.Permits, TTL: ttl,
	}
	if t.terms.Mode != rules.Enforce {
		request.Limit = maxPermits
	}
	if _, err := rand.Read(request.ID[:]); err != nil {
		return err // cannot happen
	}
	d := concurrency.Decision{Limit: t.terms.Permits, RetryAfter: t.banEnds()}
	if !t.banned() || !t.enforced() {
		var err error
		if d, err = h.options.Permits.AcquirePermit(r.Context(), request); err != nil {
			h.observe(&t, rules.Failed, headgate.Decision{}, err)
			return err
		}
	}
	h.replyPermit(w, r, &t, request, d)
	return nil
}

// maxPermits is the largest limit of package concurrency.
const maxPermits = 65_535

func (h *Handler) replyPermit(
	w http.ResponseWriter, r *http.Request, t *target, request concurrency.Request,
	d concurrency.Decision,
) {
	full := d.InUse > t.terms.Permits || !d.Allowed()
	body := newObject().flag("allowed", d.Allowed()).text("rule", t.rule)
	body = body.number("permits", t.terms.Permits).number("in_use", d.InUse)
	body = body.seconds("retry_after", d.RetryAfter)
	if t.terms.Mode == rules.Shadow {
		body = body.flag("shadow_denied", full || t.banned())
	}
	outcome := rules.Allowed
	switch {
	case !d.Allowed():
		outcome = rules.Denied
	case t.terms.Mode == rules.Shadow && (full || t.banned()):
		outcome = rules.ShadowDenied
	}
	h.observe(t, outcome, headgate.Decision{}, nil)
	if d.Allowed() {
		id := permit{Rule: t.rule, Key: t.key, ID: request.ID.String()}
		body = body.seconds("ttl", request.TTL).text("id", seal(permitMark, id))
	}
	status := http.StatusOK
	w.Header().Set("Content-Type", "application/json")
	if prefersStatus(r) {
		w.Header().Set("Preference-Applied", "status")
		if !d.Allowed() {
			status = http.StatusTooManyRequests
			w.Header().Set("Content-Type", "application/problem+json")
			setRetryAfter(w.Header(), d.RetryAfter)
			body = problemMembers("All permits of the key are in use.", nil, body)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body.end()) // the client may have disconnected
}

// readPermit reads the body of a request for a permit that was acquired.
func readPermit(w http.ResponseWriter, r *http.Request, more ...field) (concurrency.Request, error) {
	const want = "an id that /v1/acquire returned"
	var id string
	fields := append([]field{text("id", &id, maxID)}, more...)
	if err := readBody(w, r, maxBody, fields...); err != nil {
		return concurrency.Request{}, err
	}
	var v permit
	if err := unseal(id, permitMark, want, &v); err != nil {
		return concurrency.Request{}, err
	}
	request := concurrency.Request{Key: rules.PermitKey(v.Rule, v.Key), TTL: defaultTTL}
	n, err := hex.Decode(request.ID[:], []byte(v.ID[:min(len(v.ID), 2*len(request.ID))]))
	if err != nil || n != len(request.ID) || request.ID == (concurrency.PermitID{}) {
		return concurrency.Request{}, badField("id", "damaged", want)
	}
	return request, nil
}

// renew makes a permit expire later.
func (h *Handler) renew(w http.ResponseWriter, r *http.Request) error {
	var ttl time.Duration
	request, err := readPermit(w, r, ttlField(&ttl))
	if err != nil {
		return err
	}
	request.TTL = ttl
	held, err := h.options.Permits.RenewPermit(r.Context(), request)
	if err != nil {
		return err
	}
	replyJSON(w, newObject().flag("renewed", held))
	return nil
}

// release returns a permit.
func (h *Handler) release(w http.ResponseWriter, r *http.Request) error {
	request, err := readPermit(w, r)
	if err != nil {
		return err
	}
	held, err := h.options.Permits.ReleasePermit(r.Context(), request)
	if err != nil {
		return err
	}
	replyJSON(w, newObject().flag("released", held))
	return nil
}
