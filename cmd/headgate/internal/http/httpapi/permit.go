package httpapi

import (
	"encoding/hex"
	"encoding/json"
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
