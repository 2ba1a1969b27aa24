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
func event(kind string, v any) []byte {
	text := encode(v)
	if text == nil {
		return nil
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, text)
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return text
}

// pastEvent is the history.
type pastEvent struct {
	Step  int64        `json:"step_s"`
	Steps []stepCounts `json:"steps"` // the oldest first
}
