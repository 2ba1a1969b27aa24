package httpapi

import (
	"encoding/hex"
	"net/http"
	"time"

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
	return jsonbody.Seconds("ttl", to, time.Millisecond, maxTTL)
}

// acquire takes one of the permits of a key, if one is free.
func (h *Handler) acquire(w http.ResponseWriter, r *http.Request) error {
	var a asked
	var ttl time.Duration
	fields := []jsonbody.Field{jsonbody.Text("rule", &a.Rule, maxRule),
		jsonbody.Text("key", &a.Key, MaxKey), ttlField(&ttl), a.headroomField()}
	if err := h.read(w, r, &a, fields...); err != nil {
		return err
	}
	p, err := h.options.Engine.AcquirePermit(r.Context(), a.Ask, ttl)
	if err != nil {
		return Unavailable(err,
			"the request was not decided, but a permit may be in use until its ttl ends")
	}
	body := newObject().flag("allowed", p.Allowed()).text("rule", a.Rule).
		number("permits", p.Permits).number("in_use", p.InUse).seconds("retry_after", p.RetryAfter)
	if p.Shadow {
		body = body.flag("shadow_denied", p.ShadowDenied)
	}
	denial := "All permits of the key are in use."
	switch {
	case p.Banned:
		denial = "The key is banned."
	case p.Allowed():
		id := permit{Rule: a.Rule, Key: p.Key, ID: p.ID.String()}
		body = body.seconds("ttl", ttl).text("id", h.ids.seal(permitID, id))
	}
	replyPermit(w, r, body, p.Decision, denial)
	return nil
}

// replyPermit writes body, the answer to r. A denial is a 429 if the client prefers a status.
func replyPermit(
	w http.ResponseWriter, r *http.Request, body object, d concurrency.Decision, denial string,
) {
	denied := prefersStatus(w, r) && !d.Allowed()
	if denied {
		problem.SetRetryAfter(w.Header(), d.RetryAfter)
		body = problemMembers(denial, nil, body)
	}
	send(w, denied, body)
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
	request, err := h.readPermit(w, r, jsonbody.Seconds("after", &after, 0, maxTTL))
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
