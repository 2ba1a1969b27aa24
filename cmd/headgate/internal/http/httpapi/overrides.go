package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// putOverride keeps an override, instead of the one of the same rule and key.
func (h *Handler) putOverride(w http.ResponseWriter, r *http.Request) error {
	o, err := readOverride(w, r)
	if err != nil {
		return err
	}
	terms, err := h.options.Engine.Terms(o.Rule, o.Key)
	if err != nil {
		return err
	}
	o.Key = keyOf(terms.Rule, o.Key)
	if err := terms.Rule.CheckKey(o.Key); err != nil {
		return err
	}
	o.By = h.by(r)
	if err := h.options.Overrides.Put(r.Context(), o); err != nil {
		return Unavailable(err, maybeChanged)
	}
	return Reply(w, NewOverride(&o))
}

// maybeChanged is the detail of a failed change. The answer of the store may have been lost.
const maybeChanged = "the override may or may not have been changed; " +
	"when the store answers again, list the overrides"

// keyOf returns key, or that of all requests if r has no key and key is empty.
func keyOf(r *rules.Rule, key string) string {
	if key == "" && len(r.Key) == 0 {
		return rules.KeyOfAll
	}
	return key
}

func readOverride(w http.ResponseWriter, r *http.Request) (o rules.Override, err error) {
	var texts []string
	var span time.Duration
	var given []string
	until := jsonbody.Field{Name: "until", Set: func(raw json.RawMessage) string {
		if raw[0] != '"' || json.Unmarshal(raw, &o.Until) != nil || o.Until.IsZero() {
			return "a time such as 2027-01-01T00:00:00Z"
		}
		return ""
	}}
	err = jsonbody.Read(w, r, MaxBody,
		jsonbody.Text("rule", &o.Rule, maxRule),
		jsonbody.Given(jsonbody.Text("key", &o.Key, MaxKey), &given),
		LimitsField("limits", &texts), jsonbody.Flag("ban", &o.Ban), until, SpanField("for", &span),
		jsonbody.Text("note", &o.Note, MaxNote))
	switch {
	case err != nil:
		return o, err
	case o.Rule == "":
		return o, problem.BadField("rule", "missing", "the name of a rule in the file")
	case given == nil:
		return o, problem.BadField("key", "missing",
			"a key such as ip:192.0.2.1; * matches any text")
	case o.Ban && texts != nil:
		return o, problem.BadField("ban", "true with limits", "either limits or a ban")
	case !o.Ban && texts == nil:
		return o, problem.BadField("limits", "missing", `limits such as ["100/m"], or ban: true`)
	case span > 0 && !o.Until.IsZero():
		return o, problem.BadField("for", "given with until", "one of for and until")
	case span > 0:
		o.Until = time.Now().Add(span).UTC().Truncate(time.Millisecond)
	}
	o.Limits, err = ParseLimits(texts)
	return o, err
}

// LimitsField reads a list of the texts of limits.
func LimitsField(name string, to *[]string) jsonbody.Field {
	return jsonbody.Field{Name: name, Set: func(raw json.RawMessage) string {
		if json.Unmarshal(raw, to) != nil || len(*to) == 0 {
			return `a list of limits such as ["100/m"]`
		}
		return ""
	}}
}

// SpanField reads for how many seconds a change lasts: at least 1.
func SpanField(name string, to *time.Duration) jsonbody.Field {
	return jsonbody.Seconds(name, to, time.Second, maxAhead)
}

// ParseLimits parses the texts of limits without names. Its error is a [problem.Problem].
func ParseLimits(texts []string) ([]headgate.Limit, error) {
	limits := make([]headgate.Limit, len(texts))
	for i, text := range texts {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			p := *toProblem(err)
			p.Field = "limits[" + strconv.Itoa(i) + "]"
			return nil, &p
		}
		if l.Named("") != l {
			return nil, problem.BadField("limits["+strconv.Itoa(i)+"]", jsonbody.Quote(text),
				"a limit without a name; it has that of its rule")
		}
		limits[i] = l
	}
	return limits, nil
}

// listOverrides lists the overrides in force, in the order of the search, and the modes of rules
// that were switched.
func (h *Handler) listOverrides(w http.ResponseWriter, _ *http.Request) error {
	asIs := func(note string) string { return note } // a client of /v1 may read all
	return Reply(w, struct {
		Overrides []Override `json:"overrides"`
		Modes     []Mode     `json:"modes"`
	}{Overrides(h.options.Overrides, asIs), Modes(h.options.Overrides, asIs)})
}

// Override is an override, as answers have it.
type Override struct {
	Rule   string     `json:"rule"`
	Key    string     `json:"key"`
	Ban    bool       `json:"ban,omitempty"`
	Limits []string   `json:"limits,omitempty"`
	Until  *time.Time `json:"until"`
	Note   string     `json:"note,omitempty"`
	By     string     `json:"by,omitempty"`
	Source string     `json:"source,omitempty"` // file or put, in lists
}

// Mode is the mode of a rule that was switched, as answers have it.
type Mode struct {
	Rule  string     `json:"rule"`
	Mode  string     `json:"mode"`
	At    *time.Time `json:"at"`
	Until *time.Time `json:"until"`
	Note  string     `json:"note,omitempty"`
	By    string     `json:"by,omitempty"`
}

// NewOverride returns o as PUT /v1/overrides does.
func NewOverride(o *rules.Override) Override {
	return Override{
		Rule: o.Rule, Key: o.Key, Ban: o.Ban, Limits: rules.LimitTexts(o.Limits),
		Until: timeOrNull(o.Until), Note: o.Note, By: o.By,
	}
}

// Overrides returns the list of GET /v1/overrides, with notes as note shows them.
func Overrides(t *overrides.Table, note func(string) string) []Override {
	file, put := t.List()
	list := make([]Override, 0, len(file)+len(put))
	for i, o := range append(file, put...) {
		o.Note = note(o.Note)
		one := NewOverride(&o)
		if one.Source = "put"; i < len(file) {
			one.Source = "file"
		}
		list = append(list, one)
	}
	return list
}

// Modes returns the switched modes of GET /v1/overrides, with notes as note shows them.
func Modes(t *overrides.Table, note func(string) string) []Mode {
	list := []Mode{}
	for _, m := range t.Modes() {
		list = append(list, Mode{
			m.Rule, m.Mode.String(), timeOrNull(m.At), timeOrNull(m.Until), note(m.Note), m.By,
		})
	}
	return list
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// deleteOverride deletes an override that was put.
func (h *Handler) deleteOverride(w http.ResponseWriter, r *http.Request) error {
	rule, key, err := fromPath(r)
	if err != nil {
		return err
	}
	if terms, err := h.options.Engine.Terms(rule, key); err == nil { // else the rule is gone
		key = keyOf(terms.Rule, key)
	}
	had, err := h.options.Overrides.Delete(r.Context(), rule, key)
	if err != nil {
		return Unavailable(err, maybeChanged)
	}
	replyJSON(w, newObject().flag("deleted", had))
	return nil
}
