package overrides

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// entry is the value of an override, of the mode of a rule, or of a reset in the store.
type entry struct {
	Rule   string    `json:"rule"`
	Key    string    `json:"key"`
	Limits []string  `json:"limits,omitempty"`
	Ban    bool      `json:"ban,omitempty"`
	Mode   string    `json:"mode,omitempty"`
	Reset  bool      `json:"reset,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	Note   string    `json:"note,omitempty"`
	By     string    `json:"by,omitempty"`
}

// KeyName is the name of the override of a rule and key in the store. A rule's name has no space.
func KeyName(rule, key string) string { return rule + " " + key }

func (e *entry) text() string {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // cannot happen: texts, and a time that was checked
	}
	return string(text)
}

// encode returns the value of o. Equal overrides have equal values.
func encode(o rules.Override) string {
	e := entry{
		Rule: o.Rule, Key: o.Key, Limits: rules.LimitTexts(o.Limits), Ban: o.Ban,
		Until: o.Until.UTC(), Note: o.Note, By: o.By,
	}
	return e.text()
}

// Encode returns the value of o in the store. It returns a headgate.InvalidError if o is not
// accepted.
func Encode(o rules.Override) (string, error) {
	if err := validate(&o, time.Now()); err != nil {
		return "", err
	}
	return encode(o), nil
}

func parse(name, value string) (e entry, err error) {
	if err := json.Unmarshal([]byte(value), &e); err != nil {
		return e, fmt.Errorf("overrides: entry %q in the store: %w", name, err)
	}
	return e, nil
}

// isOverride reports whether name is one of [KeyName].
func isOverride(name string) bool {
	return strings.Contains(name, " ") && !strings.HasPrefix(name, resetMark)
}

// kind returns what e counts as: nothing for a reset, and for the zero entry of a bad value.
func (e *entry) kind() string {
	switch {
	case e.Ban:
		return "ban"
	case len(e.Limits) > 0:
		return "limits"
	case e.Mode != "":
		return "mode"
	}
	return ""
}

// override returns the override that e is.
func (e *entry) override(name string) (*rules.Override, error) {
	o := &rules.Override{Ban: e.Ban, Until: e.Until, Note: e.Note, By: e.By}
	o.Rule, o.Key, _ = strings.Cut(name, " ")
	for _, text := range e.Limits {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			return nil, fmt.Errorf("overrides: entry %q in the store: %w", name, err)
		}
		o.Limits = append(o.Limits, l)
	}
	if err := validate(o, time.Time{}); err != nil {
		return nil, fmt.Errorf("overrides: entry %q in the store: %w", name, err)
	}
	return o, nil
}

// maxLimits is how many limits an override may have.
const maxLimits = 16

// validate checks o, and names its limits after the rule. now is zero for what was kept before.
func validate(o *rules.Override, now time.Time) error {
	invalid := func(field, value, want string) error {
		return &headgate.InvalidError{Field: field, Value: value, Want: want}
	}
	switch {
	case o.Rule == "":
		return invalid("rule", "empty", "the name of a rule")
	case o.Ban == (len(o.Limits) > 0):
		return invalid("override", fmt.Sprintf("%d limits and ban %t", len(o.Limits), o.Ban),
			"either limits or a ban")
	case len(o.Limits) > maxLimits:
		return invalid("limits", strconv.Itoa(len(o.Limits)), "at most "+strconv.Itoa(maxLimits))
	case !now.IsZero() && expired(o, now):
		return invalid("until", o.Until.Format(time.RFC3339), "a time in the future")
	case !o.Until.IsZero() && (o.Until.Year() < 1970 || o.Until.Year() > 9999):
		return invalid("until", o.Until.String(), "a year up to 9999")
	}
	o.Limits = rules.Named(o.Rule, o.Limits)
	for _, l := range o.Limits {
		if err := l.Validate(); err != nil {
			return err
		}
	}
	return nil
}
