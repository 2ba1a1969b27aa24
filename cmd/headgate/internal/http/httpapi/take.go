package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// maxAhead bounds how long a caller may wait.
const maxAhead = 366 * 24 * time.Hour

func (h *Handler) take(w http.ResponseWriter, r *http.Request) error {
	var a asked
	var o rules.Order
	fields := append(a.fields(), a.costField(), a.headroomField(),
		jsonbody.Seconds("max_wait", &o.MaxWait, 0, maxAhead), jsonbody.Flag("force", &o.Force))
	if err := h.read(w, r, &a, fields...); err != nil {
		return err
	}
	if o.Force && o.MaxWait > 0 {
		return problem.BadField("max_wait", "given with force",
			"one of them: force charges at once")
	}
	if a.Headroom > 0 && (o.Force || o.MaxWait > 0) {
		return problem.BadField("headroom", "given with force or max_wait",
			"neither of them: what is forced or booked ahead leaves nothing to others")
	}
	o.Hold = o.MaxWait == 0 && !o.Force && a.Headroom == 0
	v, err := h.decide(r.Context(), &a, o)
	if err != nil {
		return err
	}
	body := appendAnswer(newObject(), &v)
	if o.MaxWait > 0 && v.Allowed {
		body = body.seconds("wait", v.Wait)
	}
	reply(w, r, v.Allowed, body, v)
	return nil
}

func (h *Handler) peek(w http.ResponseWriter, r *http.Request) error {
	var a asked
	if err := h.read(w, r, &a, append(a.fields(), a.headroomField())...); err != nil {
		return err
	}
	v, err := h.decide(r.Context(), &a, rules.Order{})
	if err != nil {
		return Unavailable(err, problem.Unchecked)
	}
	reply(w, r, v.Allowed, eachLimit(appendAnswer(newObject(), &v), &v), v)
	return nil
}

func (h *Handler) refund(w http.ResponseWriter, r *http.Request) error {
	var a asked
	if err := h.read(w, r, &a, append(a.fields(), a.costField())...); err != nil {
		return err
	}
	v, err := h.decide(r.Context(), &a, rules.Order{Refund: true})
	if err != nil {
		return Unavailable(err, "the cost may or may not have been refunded")
	}
	if v.Strictest.Unchecked() { // a fallback drops it
		return problem.Unavailable("nothing was refunded")
	}
	reply(w, r, true, appendAnswer(newObject(), &v), v)
	return nil
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
	asks, err := h.readAsks(raws)
	if err != nil {
		return err
	}
	answers, granted, err := h.decideAll(r.Context(), rules.Order{}, asks...)
	if wrong, ok := errors.AsType[*rules.AskError](err); ok {
		return inRequests(wrong.Index, err)
	}
	if err != nil {
		return err
	}
	reply(w, r, granted, together(answers, granted), answers...)
	return nil
}

func (h *Handler) readAsks(raws []json.RawMessage) ([]rules.Ask, error) {
	asks := make([]rules.Ask, len(raws))
	for i, raw := range raws {
		var a asked
		fields := append(a.fields(), a.costField(), a.headroomField())
		if err := jsonbody.Object(raw, inRequest(i), fields...); err != nil {
			return nil, err
		}
		if err := h.complete(&a); err != nil {
			return nil, inRequests(i, err)
		}
		asks[i] = a.Ask
	}
	return asks, nil
}

// inRequest begins the names of the fields of one of several requests.
func inRequest(i int) string { return "requests[" + strconv.Itoa(i) + "]." }

// inRequests is err, of a field of one of several requests.
func inRequests(i int, err error) *problem.Problem {
	p := *toProblem(err)
	p.Field, p.Detail = inRequest(i)+p.Field, inRequest(i)+p.Detail
	return &p
}

// together returns the answer for several targets. After its retry_after all of them would be
// granted if no other request came.
func together(answers []rules.Answer, granted bool) object {
	o := newObject().flag("allowed", granted)
	retry := time.Duration(0)
	results := append(make([]byte, 0, 200*len(answers)), '[')
	for i := range answers {
		a := &answers[i]
		if !a.Allowed {
			retry = max(retry, a.Strictest.RetryAfter)
		}
		if i > 0 {
			results = append(results, ',')
		}
		results = append(append(results, appendAnswer(newObject(), a)...), '}')
	}
	o = o.seconds("retry_after", retry)
	return append(append(o.name("results"), results...), ']')
}
