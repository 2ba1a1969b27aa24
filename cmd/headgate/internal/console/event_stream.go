package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/problem"
)

// The bounds of a viewer.
const (
	viewerQueue  = 16               // events that it may be behind
	writeTimeout = 10 * time.Second // of an event
)

// viewer is a client of events.
type viewer struct {
	events chan []byte // closed if it is dropped
}

// joining is a viewer that asks for a place.
type joining struct {
	viewer *viewer
	joined chan<- bool // has room for the answer
}

// serveEvents sends events until the client disconnects, is too slow, or may not read any more.
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request) error {
	v, err := h.join(r.Context())
	if err != nil {
		return err
	}
	defer h.leave(v)
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // that of the request would end the stream
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // for nginx
	for {
		select {
		case <-r.Context().Done():
			return nil
		case event, ok := <-v.events:
			if !ok || !h.access(r).MayRead { // its token may be gone
				return nil
			}
			_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := w.Write(event); err != nil || c.Flush() != nil {
				return nil // the client has disconnected
			}
		}
	}
}

// join waits for a place, and returns a problem if there is none.
func (h *Handler) join(ctx context.Context) (*viewer, error) {
	v := &viewer{events: make(chan []byte, viewerQueue)}
	joined := make(chan bool, 1)
	select {
	case h.joins <- joining{v, joined}:
		if <-joined {
			return v, nil
		}
		return nil, &problem.Problem{Status: http.StatusServiceUnavailable,
			Detail: "there are " + strconv.Itoa(h.options.Viewers) + " viewers, the maximum; " +
				"close one, and try again"}
	case <-h.ended:
	case <-ctx.Done():
	}
	return nil, &problem.Problem{Status: http.StatusServiceUnavailable,
		Detail: "the server is shutting down"}
}

func (h *Handler) leave(v *viewer) {
	select {
	case h.leaves <- v:
	case <-h.ended:
	}
}

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
