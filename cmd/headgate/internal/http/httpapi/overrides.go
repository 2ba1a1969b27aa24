package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/http/problem"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// putOverride keeps an override, instead of the one of the same rule and key.
func (h *Handler) putOverride(w http.ResponseWriter, r *http.Request) error {
	o, err := readOverride(w, r)
	if err != nil {
		return err
	}
	terms, err := h.options.Rules.Terms(o.Rule, o.Key)
	if err != nil {
		return err
	}
	o.Key = keyOf(terms.Rule, o.Key)
	if err := checkKey(terms.Rule, o.Key); err != nil {
		return err
	}
	o.By = h.by(r)
	if err := h.options.Overrides.Put(r.Context(), o); err != nil {
		return Unavailable(err, maybeChanged)
	}
	replyJSON(w, appendOverride(newObject(), &o))
	return nil
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

// checkKey returns a problem if no request can have a key of r.
func checkKey(r *rules.Rule, key string) error {
	if err := r.CheckKey(key); err != nil {
		return &problem.Problem{Status: http.StatusBadRequest, Field: "key",
			Detail: "key: " + err.Error()}
	}
	return nil
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
	f := jsonbody.Seconds(name, to, maxAhead)
	read := f.Set
	f.Set = func(raw json.RawMessage) string {
		if read(raw) == "" && *to >= time.Second {
			return ""
		}
		return fmt.Sprintf("a number of seconds from 1 to %.0f, or none for no end",
			maxAhead.Seconds())
	}
	return f
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
	o := append(newObject().name("overrides"), '[')
	o = append(appendOverrides(o, h.options.Overrides, asIs), ']')
	o = append(o.name("modes"), '[')
	o = append(appendModes(o, h.options.Overrides, asIs), ']')
	replyJSON(w, o)
	return nil
}

// asIs is what shows a note to a client of /v1, who may read all.
func asIs(note string) string { return note }

func appendOverrides(list object, t *overrides.Table, note func(string) string) object {
	file, put := t.List()
	for i, o := range append(file, put...) {
		if i > 0 {
			list = append(list, ',')
		}
		source := "put"
		if i < len(file) {
			source = "file"
		}
		o.Note = note(o.Note)
		list = append(append(list, appendOverride(newObject(), &o).text("source", source)...), '}')
	}
	return list
}

func appendModes(list object, t *overrides.Table, note func(string) string) object {
	for i, m := range t.Modes() {
		if i > 0 {
			list = append(list, ',')
		}
		o := newObject().text("rule", m.Rule).text("mode", m.Mode.String()).
			time("at", m.At).time("until", m.Until)
		list = append(append(list, o.origin(note(m.Note), m.By)...), '}')
	}
	return list
}

func appendOverride(o object, v *rules.Override) object {
	o = o.text("rule", v.Rule).text("key", v.Key)
	if v.Ban {
		o = o.flag("ban", true)
	} else {
		o = append(o.name("limits"), '[')
		for i, l := range v.Limits {
			if i > 0 {
				o = append(o, ',')
			}
			o = strconv.AppendQuote(o, l.Named("").String())
		}
		o = append(o, ']')
	}
	return o.time("until", v.Until).origin(v.Note, v.By)
}

// time appends a time; null for none.
func (o object) time(name string, t time.Time) object {
	if t.IsZero() {
		return append(o.name(name), "null"...)
	}
	return o.text(name, t.UTC().Format(time.RFC3339Nano))
}

// origin appends who made a change, and why.
func (o object) origin(note, by string) object {
	if note != "" {
		o = o.text("note", note)
	}
	if by != "" {
		o = o.text("by", by)
	}
	return o
}

// deleteOverride deletes an override that was put.
func (h *Handler) deleteOverride(w http.ResponseWriter, r *http.Request) error {
	rule, key := r.PathValue("rule"), r.PathValue("key")
	if terms, err := h.options.Rules.Terms(rule, key); err == nil { // else the rule is gone
		key = keyOf(terms.Rule, key)
	}
	had, err := h.options.Overrides.Delete(r.Context(), rule, key)
	if err != nil {
		return Unavailable(err, maybeChanged)
	}
	replyJSON(w, newObject().flag("deleted", had))
	return nil
}

// OverrideJSON returns o as PUT /v1/overrides does.
func OverrideJSON(o *rules.Override) json.RawMessage {
	return json.RawMessage(append(appendOverride(newObject(), o), '}'))
}

// OverridesJSON returns the list of GET /v1/overrides, with notes as note shows them.
func OverridesJSON(t *overrides.Table, note func(string) string) json.RawMessage {
	return json.RawMessage(append(appendOverrides(object{'['}, t, note), ']'))
}

// ModesJSON returns the switched modes of GET /v1/overrides, with notes as note shows them.
func ModesJSON(t *overrides.Table, note func(string) string) json.RawMessage {
	return json.RawMessage(append(appendModes(object{'['}, t, note), ']'))
}
