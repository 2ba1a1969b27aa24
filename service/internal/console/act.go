package console

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/service/internal/acts"
	"github.com/headgate/headgate/service/internal/httpapi"
)

// serveActs lists the actions, the newest first.
func (h *Handler) serveActs(w http.ResponseWriter, r *http.Request) error {
	list, err := h.desk.List(r.Context())
	if err != nil {
		return err
	}
	return reply(w, map[string]any{"acts": list})
}

// serveAct carries out an order.
func (h *Handler) serveAct(w http.ResponseWriter, r *http.Request) error {
	o, err := h.readOrder(w, r)
	if err != nil {
		return err
	}
	done, err := h.desk.Do(r.Context(), o)
	if err != nil {
		return problemOf(err)
	}
	h.options.Acted(done)
	return reply(w, done)
}

func (h *Handler) readOrder(w http.ResponseWriter, r *http.Request) (o acts.Order, err error) {
	var by string
	var limits []string
	err = httpapi.ReadBody(w, r,
		httpapi.NoteField("act", &o.Act), httpapi.NoteField("rule", &o.Rule),
		httpapi.Nullable(httpapi.KeyField("key", &o.Key)),
		httpapi.Nullable(httpapi.LimitsField("limits", &limits)),
		httpapi.Nullable(httpapi.SpanField("for_s", &o.For)),
		httpapi.Nullable(httpapi.NoteField("note", &o.Note)),
		httpapi.Nullable(httpapi.ByField("by", &by)),
		httpapi.Nullable(httpapi.FlagField("keep_usage", &o.KeepUsage)),
		httpapi.Nullable(httpapi.NoteField("mode", &o.Mode)))
	if err != nil {
		return o, err
	}
	if o.Limits, err = httpapi.ParseLimits(limits); err != nil {
		return o, err
	}
	o.By = h.by(r, by)
	return o, nil
}

// serveUndo undoes an action.
func (h *Handler) serveUndo(w http.ResponseWriter, r *http.Request) error {
	var by string
	if err := httpapi.ReadBody(w, r, httpapi.Nullable(httpapi.ByField("by", &by))); err != nil {
		return err
	}
	undone, err := h.desk.Undo(r.Context(), r.PathValue("id"), h.by(r, by))
	if err != nil {
		return problemOf(err)
	}
	h.options.Acted(undone)
	return reply(w, undone)
}

// by says who sends r: the name that an operator typed, the token, and the address.
func (h *Handler) by(r *http.Request, name string) string {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = "unix socket"
	}
	origin := "token " + h.access(r).token + ", " + address
	if name == "" {
		return origin
	}
	return name + " (" + origin + ")"
}

// problemOf returns the problem for an error of an order.
func problemOf(err error) error {
	if e, ok := errors.AsType[*acts.Error](err); ok {
		status := http.StatusUnprocessableEntity
		if e.Conflict {
			status = http.StatusConflict
		}
		return &httpapi.Problem{Status: status, Detail: e.Text}
	}
	if errors.Is(err, acts.ErrNoAct) {
		return &httpapi.Problem{Status: http.StatusNotFound,
			Detail: "the action does not exist; the list keeps the last " + strconv.Itoa(acts.Max)}
	}
	return err
}

// millis returns a time in Unix milliseconds; nil for none.
func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.UnixMilli()
	return &n
}
