package console

import (
	"encoding/json"
	"fmt"
)

// The kinds of events.
const (
	historyEvent = "history"
	stepEvent    = "step"
	stateEvent   = "state"
)

// event returns v as a server-sent event. It is empty if another instance sent numbers that add up
// to none.
func (h *Handler) event(kind string, v any) []byte {
	text := h.encode(v)
	if text == nil {
		return nil
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, text)
}

func (h *Handler) encode(v any) []byte {
	h.encoded.Add(1)
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return text
}

// pastEvent is the history, with a list of counts for each outcome.
type pastEvent struct {
	Step  int64                `json:"step_s"`
	From  int64                `json:"from"` // start of the first step, in seconds since 1970
	Rules map[string]pastCount `json:"rules"`
	Total pastCount            `json:"total"`
}

type pastCount struct {
	Allowed      [steps]uint64 `json:"allowed"`
	Denied       [steps]uint64 `json:"denied"`
	ShadowDenied [steps]uint64 `json:"shadow_denied"`
	Failed       [steps]uint64 `json:"error"`
	Degraded     [steps]uint64 `json:"degraded"`
}

// past returns the steps of h up to last. Of the rules, it has those with most decisions.
func (h *history) past(last int64, decisions map[string]uint64) pastEvent {
	first := last - steps + 1
	e := pastEvent{
		Step: int64(stepTime.Seconds()), From: stepStart(first), Rules: map[string]pastCount{},
	}
	e.Total = h.columns(&h.total, first)
	for _, name := range most(decisions, shownRules) {
		if s := h.rules[name]; s != nil {
			e.Rules[name] = h.columns(s, first)
		}
	}
	return e
}

func (h *history) columns(s *series, first int64) (p pastCount) {
	for i := range int64(steps) {
		if !h.has(first + i) {
			continue
		}
		c := s.at(first + i)
		p.Allowed[i], p.Denied[i], p.ShadowDenied[i] = c[allowed], c[denied], c[shadowDenied]
		p.Failed[i], p.Degraded[i] = c[failed], c[degraded]
	}
	return p
}
