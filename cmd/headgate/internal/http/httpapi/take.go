package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/internal/problem"
)

// maxAhead bounds how long a caller may wait.
const maxAhead = 366 * 24 * time.Hour

func (h *Handler) take(w http.ResponseWriter, r *http.Request) error {
	var t target
	var o order
	fields := append(t.fields(), t.costField(), t.headroomField(),
		jsonbody.Seconds("max_wait", &o.maxWait, maxAhead), jsonbody.Flag("force", &o.force))
	if err := h.read(w, r, &t, fields...); err != nil {
		return err
	}
	if o.force && o.maxWait > 0 {
		return problem.BadField("max_wait", "given with force",
			"one of them: force charges at once")
	}
	if t.headroom > 0 && (o.force || o.maxWait > 0) {
		return problem.BadField("headroom", "given with force or max_wait",
			"neither of them: what is forced or booked ahead leaves nothing to others")
	}
	o.hold = o.maxWait == 0 && !o.force && t.headroom == 0
	answers, _, err := h.decide(r.Context(), []*target{&t}, o)
	if err != nil {
		return err
	}
	a := &answers[0]
	body := a.append(newObject())
	if o.maxWait > 0 && a.allowed {
		body = body.seconds("wait", a.wait)
	}
	reply(w, r, a.allowed, body, answers...)
	return nil
}

func (h *Handler) peek(w http.ResponseWriter, r *http.Request) error {
	var t target
	if err := h.read(w, r, &t, append(t.fields(), t.headroomField())...); err != nil {
		return err
	}
	answers, _, err := h.decide(r.Context(), []*target{&t}, order{})
	if err != nil {
		return Unavailable(err, problem.Unchecked)
	}
	a := &answers[0]
	reply(w, r, a.allowed, a.eachLimit(a.append(newObject())), answers...)
	return nil
}

func (h *Handler) refund(w http.ResponseWriter, r *http.Request) error {
	var t target
	if err := h.read(w, r, &t, append(t.fields(), t.costField())...); err != nil {
		return err
	}
	t.cost = -t.cost
	answers, _, err := h.decide(r.Context(), []*target{&t}, order{})
	if err != nil {
		return Unavailable(err, "the cost may or may not have been refunded")
	}
	reply(w, r, true, answers[0].append(newObject()), answers...)
	return nil
}

// read reads the body of r and resolves its target.
func (h *Handler) read(
	w http.ResponseWriter, r *http.Request, t *target, fields ...jsonbody.Field,
) error {
	if err := jsonbody.Read(w, r, MaxBody, fields...); err != nil {
		return err
	}
	return h.resolve(t, "")
}

// maxTogether bounds the requests of one take-all.
const maxTogether = 100

func (h *Handler) takeAll(w http.ResponseWriter, r *http.Request) error {
	var raws []json.RawMessage
	list := jsonbody.Field{Name: "requests", Set: func(raw json.RawMessage) string {
		if json.Unmarshal(raw, &raws) != nil || len(raws) == 0 || len(raws) > maxTogether {
			return "a list of 1 to " + strconv.Itoa(maxTogether) + " requests"
		}
		return ""
	}}
	if err := jsonbody.Read(w, r, maxBodyAll, list); err != nil {
		return err
	}
	if len(raws) == 0 {
		return problem.BadField("requests", "missing", "a list of requests")
	}
	targets, err := h.readTargets(raws)
	if err != nil {
		return err
	}
	answers, granted, err := h.decide(r.Context(), targets, order{})
	if err != nil {
		return err
	}
	reply(w, r, granted, together(answers, granted), answers...)
	return nil
}

func (h *Handler) readTargets(raws []json.RawMessage) ([]*target, error) {
	type identity struct{ rule, text, key string }
	first := make(map[identity]int)
	targets := make([]*target, len(raws))
	for i, raw := range raws {
		t := &target{}
		where := "requests[" + strconv.Itoa(i) + "]."
		fields := append(t.fields(), t.costField(), t.headroomField())
		if err := jsonbody.Object(raw, where, fields...); err != nil {
			return nil, err
		}
		if err := h.resolve(t, where); err != nil {
			return nil, err
		}
		id := identity{t.rule, t.text, t.key}
		if t.rule == "" {
			id.text = t.terms.Limits[0].ID() // however it is written
		}
		if j, twice := first[id]; twice {
			return nil, problem.BadField(where+"key",
				jsonbody.Quote(t.key)+", with the same limit as in requests["+strconv.Itoa(j)+"]",
				"one request for each key and limit, with the costs added up")
		}
		first[id] = i
		targets[i] = t
	}
	return targets, nil
}

// together returns the answer for several targets. After its retry_after all of them would be
// granted if no other request came.
func together(answers []answer, granted bool) object {
	o := newObject().flag("allowed", granted)
	retry := time.Duration(0)
	results := append(make([]byte, 0, 200*len(answers)), '[')
	for i := range answers {
		a := &answers[i]
		if !a.allowed {
			retry = max(retry, a.strictest().RetryAfter)
		}
		if i > 0 {
			results = append(results, ',')
		}
		results = append(append(results, a.append(newObject())...), '}')
	}
	o = o.seconds("retry_after", retry)
	return append(append(o.name("results"), results...), ']')
}
