package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// reserve is take, and gives a grant an id for commit.
func (h *Handler) reserve(w http.ResponseWriter, r *http.Request) error {
	var t target
	var o order
	fields := append(t.fields(), t.costField(), jsonbody.Seconds("max_wait", &o.maxWait, maxAhead))
	if err := h.read(w, r, &t, fields...); err != nil {
		return err
	}
	if t.countsDenials() {
		return problem.BadField("rule", jsonbody.Quote(t.rule)+", which counts denials",
			"another rule")
	}
	o.starts, o.hold = o.maxWait > 0 || t.hasWindow(), o.maxWait == 0
	answers, _, err := h.decide(r.Context(), []*target{&t}, o)
	if err != nil {
		return err
	}
	a := &answers[0]
	body := a.append(newObject())
	if a.allowed {
		body = body.seconds("wait", a.wait).text("id", h.ids.seal(reservationID, a.reservation()))
	}
	reply(w, r, a.allowed, body, answers...)
	return nil
}

// reservation returns what commit must know about a grant.
func (a *answer) reservation() reservation {
	t := a.target
	v := reservation{Rule: t.rule, Limit: t.text, Key: t.key}
	if a.charged() { // which a rule in shadow may not be
		v.Cost = t.cost
	}
	for _, start := range a.starts {
		if start.IsZero() { // held requests, or a fallback
			v.Starts = nil
			break
		}
		v.Starts = append(v.Starts, start.UnixMicro())
	}
	return v
}

// commit settles a reservation at the cost that was used; 0 cancels it.
func (h *Handler) commit(w http.ResponseWriter, r *http.Request) error {
	var id string
	used := int64(-1)
	err := jsonbody.Read(w, r, MaxBody, jsonbody.Text("id", &id, maxID),
		jsonbody.Number("cost", &used, 0))
	if err != nil {
		return err
	}
	if used < 0 {
		return problem.BadField("cost", "missing",
			"the cost that was used; 0 cancels the reservation")
	}
	var v reservation
	if err := h.ids.unseal(r.Context(), id, reservationID, &v); err != nil {
		return err
	}
	t := &target{rule: v.Rule, text: v.Limit, key: v.Key}
	if err := h.find(t, ""); err != nil {
		return err
	}
	a, refunded, err := h.settle(r.Context(), t, v, used)
	if err != nil {
		return Unavailable(err, "the reservation may or may not have been settled")
	}
	body := newObject().number("reserved", v.Cost).number("used", used)
	body = body.number("refunded", refunded).number("charged", max(used-v.Cost, 0))
	if t.rule != "" {
		body = body.text("rule", t.rule)
	}
	d := a.strictest()
	body = body.state(d).seconds("reset_after", d.ResetAfter)
	if d.Degraded() {
		body = body.flag("degraded", true)
	}
	replyJSON(w, body)
	return nil
}

// settle refunds what was not used of v, or charges what was used beyond it, whether or not it
// fits: it is used already.
func (h *Handler) settle(
	ctx context.Context, t *target, v reservation, used int64,
) (a answer, refunded int64, err error) {
	a.target = t
	t.cost = used - v.Cost
	t.terms.Banned = false // what is used counts for a banned key, too
	requests := a.appendRequests(nil, order{force: true}, true)
	if t.cost < 0 {
		v.name(requests)
	}
	a.decisions = make([]headgate.Decision, len(requests))
	if err := rules.Take(ctx, h.options.Store, requests, a.decisions); err != nil {
		h.observe(t, rules.Failed, headgate.Decision{}, err)
		return a, 0, err
	}
	if t.cost < 0 && headgate.Granted(requests, a.decisions) {
		refunded = -t.cost
	}
	return a, refunded, nil
}

// name names the starts of v in requests that return tokens of it: not those of a rule that has
// changed since.
func (v *reservation) name(requests []headgate.Request) {
	if len(v.Starts) != len(requests) {
		return
	}
	for i, micros := range v.Starts {
		start := time.UnixMicro(micros)
		requests[i].Start = &start
		if !start.After(time.Now()) {
			requests[i] = requests[i].Refund(-requests[i].Cost)
		}
	}
}
