package httpapi

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/problem"
)

// The time after which a permit expires unless it is renewed.
const (
	defaultTTL = 60 * time.Second
	maxTTL     = 24 * time.Hour
)

// ttlField reads the TTL of a permit.
func ttlField(to *time.Duration) jsonbody.Field {
	*to = defaultTTL
	f := jsonbody.Seconds("ttl", to, maxTTL)
	read := f.Set
	f.Set = func(raw json.RawMessage) string {
		if want := read(raw); want != "" || *to < time.Millisecond {
			return "a number of seconds from 0.001 to 86400"
		}
		return ""
	}
	return f
}

// acquire takes one of the permits of a key, if one is free.
func (h *Handler) acquire(w http.ResponseWriter, r *http.Request) error {
	t := target{permit: true}
	var ttl time.Duration
	fields := []jsonbody.Field{jsonbody.Text("rule", &t.rule, maxRule),
		jsonbody.Text("key", &t.key, MaxKey), ttlField(&ttl), t.headroomField()}
	if err := h.read(w, r, &t, fields...); err != nil {
		return err
	}
	t.cost = 1
	if t.banned() && t.enforced() {
		d := concurrency.Decision{RetryAfter: t.banEnds()}
		h.observe(&t, rules.Denied, headgate.Decision{RetryAfter: d.RetryAfter}, nil)
		replyPermit(w, r, permitMembers(&t, d), d, "The key is banned.")
		return nil
	}
	request := newPermit(&t, ttl)
	d, err := h.options.Permits.AcquirePermit(r.Context(), request)
	if err != nil {
		h.observe(&t, rules.Failed, headgate.Decision{}, err)
		return Unavailable(err,
			"the request was not decided, but a permit may be in use until its ttl ends")
	}
	if request.Limit == 0 {
		d.RetryAfter = headgate.Never // more permits are to be free than there are
	}
	body := permitMembers(&t, d)
	if t.terms.Mode == rules.Shadow {
		body = body.flag("shadow_denied", t.wouldDeny(d))
	}
	if d.Allowed() {
		id := permit{Rule: t.rule, Key: t.key, ID: request.ID.String()}
		body = body.seconds("ttl", ttl).text("id", h.ids.seal(permitID, id))
	}
	h.observePermit(&t, d)
	replyPermit(w, r, body, d, "All permits of the key are in use.")
	return nil
}

// newPermit returns the request for a permit of t. A rule that does not enforce denies none.
func newPermit(t *target, ttl time.Duration) concurrency.Request {
	r := concurrency.Request{
		Key: rules.PermitKey(t.rule, t.key), Limit: max(t.terms.Permits-t.headroom, 0), TTL: ttl,
	}
	if !t.enforced() {
		r.Limit = rules.MaxPermits
	}
	_, _ = rand.Read(r.ID[:]) // never fails
	return r
}

// wouldDeny reports whether t would have denied d if it were not in shadow.
func (t *target) wouldDeny(d concurrency.Decision) bool {
	return t.banned() || d.InUse > t.terms.Permits-t.headroom
}

func (h *Handler) observePermit(t *target, d concurrency.Decision) {
	outcome := rules.Allowed
	switch {
	case !d.Allowed():
		outcome = rules.Denied
	case t.terms.Mode == rules.Shadow && t.wouldDeny(d):
		outcome = rules.ShadowDenied
	}
	h.observe(t, outcome, headgate.Decision{RetryAfter: d.RetryAfter}, nil)
}

// permitMembers starts the answer to a request for a permit.
func permitMembers(t *target, d concurrency.Decision) object {
	return newObject().flag("allowed", d.Allowed()).text("rule", t.rule).
		number("permits", t.terms.Permits).number("in_use", d.InUse).
		seconds("retry_after", d.RetryAfter)
}

// replyPermit writes body, the answer to r. A denial is a 429 if the client prefers a status.
func replyPermit(
	w http.ResponseWriter, r *http.Request, body object, d concurrency.Decision, denial string,
) {
	if prefersStatus(r) {
		w.Header().Set("Preference-Applied", "status")
		if !d.Allowed() {
			problem.SetRetryAfter(w.Header(), d.RetryAfter)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusTooManyRequests)
			// The client may have disconnected.
			_, _ = w.Write(problemMembers(denial, nil, body).end())
			return
		}
	}
	replyJSON(w, body)
}

// readPermit reads the body of a request for a permit that was acquired.
func (h *Handler) readPermit(
	w http.ResponseWriter, r *http.Request, more ...jsonbody.Field,
) (concurrency.Request, error) {
	var id string
	fields := append([]jsonbody.Field{jsonbody.Text("id", &id, maxID)}, more...)
	if err := jsonbody.Read(w, r, MaxBody, fields...); err != nil {
		return concurrency.Request{}, err
	}
	var v permit
	if err := h.ids.unseal(r.Context(), id, permitID, &v); err != nil {
		return concurrency.Request{}, err
	}
	request := concurrency.Request{Key: rules.PermitKey(v.Rule, v.Key), TTL: defaultTTL}
	raw, err := hex.DecodeString(v.ID)
	if err == nil && len(raw) == len(request.ID) {
		request.ID = concurrency.PermitID(raw)
	}
	if request.ID == (concurrency.PermitID{}) { // which no permit has
		return concurrency.Request{}, problem.BadField("id", "damaged", permitID.want)
	}
	return request, nil
}

// renew makes a permit expire later.
func (h *Handler) renew(w http.ResponseWriter, r *http.Request) error {
	var ttl time.Duration
	request, err := h.readPermit(w, r, ttlField(&ttl))
	if err != nil {
		return err
	}
	request.TTL = ttl
	held, err := h.options.Permits.RenewPermit(r.Context(), request)
	if err != nil {
		return Unavailable(err, "the permit may or may not have been renewed")
	}
	replyJSON(w, newObject().flag("renewed", held))
	return nil
}

// release releases a permit, at once or later.
func (h *Handler) release(w http.ResponseWriter, r *http.Request) error {
	var after time.Duration
	request, err := h.readPermit(w, r, jsonbody.Seconds("after", &after, maxTTL))
	if err != nil {
		return err
	}
	request.After = after
	held, err := h.options.Permits.ReleasePermit(r.Context(), request)
	if err != nil {
		return Unavailable(err, "the permit may or may not have been released; if not, it expires")
	}
	replyJSON(w, newObject().flag("released", held))
	return nil
}
