package console

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/actions"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/internal/problem"
)

// actionList is the list of actions as it was read last. Each open page asks for it every few
// seconds, so that one reading serves all of them for a second.
type actionList struct {
	mu   sync.Mutex
	at   time.Time // zero: read again
	acts []actions.Action
	lost lostView
	err  error
}

// lostView counts the overrides and modes that the store has lost, and when.
type lostView struct {
	At    int64          `json:"at"` // milliseconds since 1970; 0: nothing is lost
	Count map[string]int `json:"count"`
}

// How long a list of actions serves other requests, and how long its reading may take.
const (
	listTTL     = time.Second
	listTimeout = 3 * time.Second
)

// serveActs lists the actions, the newest first.
func (h *Handler) serveActs(w http.ResponseWriter, r *http.Request) error {
	acts, lost, err := h.listActions(r.Context())
	if err != nil {
		return err
	}
	return httpapi.Reply(w, map[string]any{"acts": acts, "lost": lost})
}

func (h *Handler) listActions(ctx context.Context) ([]actions.Action, lostView, error) {
	l := &h.actions
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < listTTL {
		return l.acts, l.lost, l.err
	}
	// Others wait for it, too: the client that began may leave.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
	defer cancel()
	l.acts, l.err = h.executor.List(ctx)
	for i := range l.acts {
		h.maskNotes(&l.acts[i])
	}
	if l.err == nil {
		var lost overrides.Lost
		lost, l.err = h.options.Overrides.Lost(ctx)
		l.lost = lostView{Count: lost.Count()}
		if len(lost.Values) > 0 {
			l.lost.At = lost.At.UnixMilli()
		}
	}
	l.at = time.Now()
	return l.acts, l.lost, l.err
}

// acted logs what an operator has done, and lets the list be read again.
func (h *Handler) acted(a actions.Action) {
	h.options.Acted(a)
	h.actions.mu.Lock()
	defer h.actions.mu.Unlock()
	h.actions.at = time.Time{}
}

// serveAct performs an action.
func (h *Handler) serveAct(w http.ResponseWriter, r *http.Request) error {
	o, err := h.readOrder(w, r)
	if err != nil {
		return err
	}
	done, err := h.executor.Do(r.Context(), o)
	if err != nil {
		return problemOf(err)
	}
	h.acted(done)
	h.maskNotes(&done)
	return httpapi.Reply(w, done)
}

// maskNotes hides the secrets of the file in the notes of a, as in the list of overrides.
func (h *Handler) maskNotes(a *actions.Action) {
	c := h.loaded.Load().config
	a.Note = c.Masked(a.Note)
	if a.Replaced != nil {
		a.Replaced.Note = c.Masked(a.Replaced.Note)
	}
}

// fieldsOf has the fields of each act, besides act, rule, note and by.
var fieldsOf = map[string][]string{
	actions.Reset: {"key"},
	actions.Raise: {"key", "limits", "for_s", "keep_usage"},
	actions.Ban:   {"key", "for_s"},
	actions.Lift:  {"key"},
	actions.Mode:  {"mode", "for_s"},
}

func (h *Handler) readOrder(w http.ResponseWriter, r *http.Request) (o actions.Order, err error) {
	var by string
	var limits, given []string
	some := func(f jsonbody.Field) jsonbody.Field {
		return jsonbody.Given(jsonbody.Nullable(f), &given)
	}
	err = jsonbody.Read(w, r, httpapi.MaxBody,
		jsonbody.Text("act", &o.Kind, httpapi.MaxNote),
		jsonbody.Text("rule", &o.Rule, httpapi.MaxNote),
		some(jsonbody.Text("key", &o.Key, httpapi.MaxKey)),
		some(httpapi.LimitsField("limits", &limits)),
		some(httpapi.SpanField("for_s", &o.For)),
		some(jsonbody.Text("mode", &o.Mode, httpapi.MaxNote)),
		some(jsonbody.Flag("keep_usage", &o.KeepUsage)),
		jsonbody.Nullable(jsonbody.Text("note", &o.Note, httpapi.MaxNote)),
		jsonbody.Nullable(jsonbody.Text("by", &by, httpapi.MaxBy)))
	if err != nil {
		return o, err
	}
	if err := checkFields(&o, given); err != nil {
		return o, err
	}
	if o.Limits, err = httpapi.ParseLimits(limits); err != nil {
		return o, err
	}
	o.By = h.by(r, by)
	return o, nil
}

// checkFields returns a problem if o lacks a field, or has one that would have no effect.
func checkFields(o *actions.Order, given []string) error {
	mine, known := fieldsOf[o.Kind]
	switch {
	case o.Kind == "":
		return problem.BadField("act", "missing", "reset, raise, ban, lift or mode")
	case !known:
		return problem.BadField("act", strconv.Quote(o.Kind), "reset, raise, ban, lift or mode")
	case o.Rule == "":
		return problem.BadField("rule", "missing", "the name of a rule")
	}
	for _, name := range given {
		if !slices.Contains(mine, name) {
			return problem.BadField(name, "not a field of "+o.Kind,
				"only act, rule, note, by, "+strings.Join(mine, ", "))
		}
	}
	if !slices.Contains(given, "for_s") {
		return nil
	}
	if o.Mode == actions.ModeOfFile {
		return problem.BadField("for_s", "given with mode file", "none, since that mode has no end")
	}
	return nil
}

// serveUndo undoes an action.
func (h *Handler) serveUndo(w http.ResponseWriter, r *http.Request) error {
	var by string
	field := jsonbody.Nullable(jsonbody.Text("by", &by, httpapi.MaxBy))
	if err := jsonbody.Read(w, r, httpapi.MaxBody, field); err != nil {
		return err
	}
	undone, err := h.executor.Undo(r.Context(), r.PathValue("id"), h.by(r, by))
	if err != nil {
		return problemOf(err)
	}
	h.acted(undone)
	h.maskNotes(&undone)
	return httpapi.Reply(w, undone)
}

// servePutBack puts back what the store has lost.
func (h *Handler) servePutBack(w http.ResponseWriter, r *http.Request) error {
	var by string
	field := jsonbody.Nullable(jsonbody.Text("by", &by, httpapi.MaxBy))
	if err := jsonbody.Read(w, r, httpapi.MaxBody, field); err != nil {
		return err
	}
	done, err := h.executor.PutBack(r.Context(), h.by(r, by))
	if done.ID != "" {
		h.acted(done)
	}
	if err != nil {
		return problemOf(err)
	}
	return httpapi.Reply(w, done)
}

// by returns the author of r: the name that an operator typed, the token, and the address.
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
	if e, ok := errors.AsType[*actions.Error](err); ok {
		status := http.StatusUnprocessableEntity
		if e.Conflict {
			status = http.StatusConflict
		}
		return &problem.Problem{Status: status, Detail: e.Text}
	}
	if errors.Is(err, actions.ErrNoAction) {
		return &problem.Problem{Status: http.StatusNotFound,
			Detail: "the action does not exist; the list keeps the last " +
				strconv.Itoa(actions.Max)}
	}
	if errors.Is(err, actions.ErrNotAnnounced) {
		return httpapi.Unavailable(err, httpapi.NotAnnounced)
	}
	return httpapi.Unavailable(err, "the action may or may not have been done; when the store "+
		"answers again, check the list of actions and the key")
}
