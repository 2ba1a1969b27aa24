package httpapi

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// reserve is take, and gives a grant an id for commit.
func (h *Handler) reserve(w http.ResponseWriter, r *http.Request) error {
	var a asked
	o := rules.Order{Settle: true}
	fields := append(a.fields(), a.costField(),
		jsonbody.Seconds("max_wait", &o.MaxWait, 0, maxAhead))
	if err := h.read(w, r, &a, fields...); err != nil {
		return err
	}
	o.Hold = o.MaxWait == 0
	v, err := h.decide(r.Context(), &a, o)
	if err != nil {
		return err
	}
	body := appendAnswer(newObject(), &v)
	if v.Allowed {
		id := h.ids.seal(reservationID, newReservation(&a, &v))
		body = body.seconds("wait", v.Wait).text("id", id)
	}
	reply(w, r, v.Allowed, body, v)
	return nil
}

// newReservation returns what commit must know about a grant.
func newReservation(a *asked, v *rules.Answer) reservation {
	r := reservation{Rule: a.Rule, Limit: a.limit, Key: v.Key, Cost: v.Charged}
	for _, start := range v.Starts {
		r.Starts = append(r.Starts, start.UnixMicro())
	}
	return r
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
	a := asked{Ask: rules.Ask{Rule: v.Rule, Key: v.Key, Cost: used - v.Cost}, limit: v.Limit}
	if err := h.complete(&a); err != nil {
		return err
	}
	var starts []time.Time
	for _, micros := range v.Starts {
		starts = append(starts, time.UnixMicro(micros))
	}
	settled, refunded, err := h.options.Engine.Settle(r.Context(), a.Ask, starts)
	if err != nil {
		return Unavailable(err, "the reservation may or may not have been settled")
	}
	body := newObject().number("reserved", v.Cost).number("used", used)
	body = body.number("refunded", refunded).number("charged", max(used-v.Cost, 0))
	if v.Rule != "" {
		body = body.text("rule", v.Rule)
	}
	body = body.state(settled.Strictest).seconds("reset_after", settled.Strictest.ResetAfter)
	if settled.Strictest.Degraded() {
		body = body.flag("degraded", true)
	}
	replyJSON(w, body)
	return nil
}
