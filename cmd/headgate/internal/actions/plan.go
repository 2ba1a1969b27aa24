package actions

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// plan is an order that may be carried out.
type plan struct {
	record record
	slots  []envoy.Slot // to reset
}

// plan checks o against what is in force, and says what is to be done.
func (x *Executor) plan(o Order) (*plan, error) {
	now := time.Now()
	p := &plan{record: record{Action: Action{
		// It sorts after those before.
		ID: uuid.Must(uuid.NewV7()).String(), At: now.UnixMilli(),
		By: o.By, Kind: o.Kind, Rule: o.Rule, Key: o.Key,
		Limits: []string{}, Note: o.Note,
	}}}
	until := time.Time{}
	if o.For > 0 && (o.Kind == Raise || o.Kind == Ban || o.Kind == Mode) {
		until = now.Add(o.For).UTC().Truncate(time.Millisecond)
		millis := until.UnixMilli()
		p.record.Until = &millis
	}
	if strings.Contains(o.Rule, "/") { // which no name of a rule has
		return p, x.planDomain(p)
	}
	if o.Kind == Mode {
		return p, x.planMode(p, o, until)
	}
	terms, err := x.terms(p, o)
	if err != nil {
		return nil, err
	}
	p.record.From = x.o.Overrides.Stored(p.record.name())
	p.record.To = p.record.From
	switch o.Kind {
	case Reset:
		return p, x.planReset(p, terms)
	case Raise:
		return p, x.planRaise(p, terms, o, until)
	case Ban:
		return p, x.planBan(p, terms, until)
	case Lift:
		return p, x.planLift(p)
	}
	return nil, &headgate.InvalidError{Field: "act", Value: strconv.Quote(o.Kind),
		Want: "reset, raise, ban, lift or mode"}
}

// terms returns what applies to the key of o, which must be one of its rule.
func (x *Executor) terms(p *plan, o Order) (rules.Terms, error) {
	terms, err := x.o.Engine.Terms(o.Rule, o.Key)
	if err != nil {
		return terms, err
	}
	if o.Key == "" && len(terms.Rule.Key) == 0 {
		p.record.Key = rules.KeyOfAll
		return x.o.Engine.Terms(o.Rule, rules.KeyOfAll)
	}
	if err := terms.Rule.CheckKey(o.Key); err != nil {
		return terms, refused("%v", err)
	}
	return terms, nil
}

// planDomain resets a counter of Envoy's dialect.
func (x *Executor) planDomain(p *plan) error {
	if p.record.Kind != Reset {
		return refused("rule %q is in Envoy's format, which has no overrides: change its file",
			p.record.Rule)
	}
	if x.o.Domains != nil {
		p.slots = x.o.Domains.Slots(p.record.Rule, p.record.Key)
	}
	if len(p.slots) == 0 {
		return refused("no domain in the files has the rule %q", p.record.Rule)
	}
	return nil
}

// of returns the slots of a key of a rule under limits.
func (x *Executor) of(key string, limits []headgate.Limit) (slots []envoy.Slot) {
	for _, l := range limits {
		slots = append(slots, envoy.Slot{Store: x.o.Store, Key: key, Limit: l})
	}
	return slots
}

func (x *Executor) planReset(p *plan, terms rules.Terms) error {
	switch {
	case strings.Contains(p.record.Key, "*"):
		return refused("key %q matches many keys: reset one key at a time", p.record.Key)
	case len(terms.StateLimits()) == 0:
		return refused("rule %q has no limits to reset: its permits are free when they expire",
			p.record.Rule)
	}
	p.slots = x.of(p.record.Key, terms.StateLimits())
	return nil
}

func (x *Executor) planRaise(p *plan, terms rules.Terms, o Order, until time.Time) error {
	if len(o.Limits) == 0 {
		return &headgate.InvalidError{Field: "limits", Value: "missing",
			Want: `limits such as ["100/m"]`}
	}
	p.record.Limits = rules.LimitTexts(o.Limits)
	if err := checkRaise(terms.Rule, o.Limits); err != nil {
		return err
	}
	if err := x.planOverride(p, rules.Override{Limits: o.Limits}, until); err != nil {
		return err
	}
	if p.record.replacesBan() {
		return conflict("%q is banned under rule %q, %s: lift the ban first", o.Key, o.Rule,
			end(p.record.Replaced.Until))
	}
	if o.KeepUsage {
		return nil
	}
	if strings.Contains(p.record.Key, "*") {
		return &headgate.InvalidError{Field: "keep_usage", Value: "false",
			Want: "true for a key with *, because many keys cannot be reset at once"}
	}
	if err := x.planReset(p, terms); err != nil {
		return err
	}
	p.slots = append(p.slots, x.of(p.record.Key, rules.Named(o.Rule, o.Limits))...)
	return nil
}

func (x *Executor) planBan(p *plan, terms rules.Terms, until time.Time) error {
	if err := x.planOverride(p, rules.Override{Ban: true}, until); err != nil {
		return err
	}
	r := &p.record
	if b := r.Replaced; r.replacesBan() && r.Until != nil &&
		(b.Until == nil || *b.Until > *r.Until) {
		return conflict("%q is banned under rule %q for longer already, %s: lift that ban first",
			r.Key, r.Rule, end(b.Until))
	}
	if terms.Mode != rules.Enforce {
		r.IdleBans = 1
	}
	return nil
}

// end returns when a ban ends.
func end(until *int64) string {
	if until == nil {
		return "without end"
	}
	return "until " + time.UnixMilli(*until).UTC().Format(time.RFC3339)
}

// replacesBan reports whether r would replace a ban of the key itself. A ban of a pattern stays,
// and r takes precedence over it.
func (r *record) replacesBan() bool {
	return r.Replaced != nil && r.Replaced.Ban && r.Replaced.Key == r.Key
}

// planOverride puts o for the key of p.
func (x *Executor) planOverride(p *plan, o rules.Override, until time.Time) (err error) {
	r := &p.record
	if _, found := x.o.Overrides.OfFile(r.Rule, r.Key); found {
		return refused("the file has an override for %q under rule %q, which takes precedence: "+
			"change the file", r.Key, r.Rule)
	}
	r.Replaced = x.inForce(r.Rule, r.Key)
	o.Rule, o.Key, o.Until, o.Note, o.By = r.Rule, r.Key, until, r.Note, r.By
	r.To, err = overrides.Encode(o)
	return err
}

// inForce returns the override that counts for a key.
func (x *Executor) inForce(rule, key string) *Replaced {
	o, found := x.o.Overrides.Find(rule, key)
	if !found || strings.Contains(key, "*") && o.Key != key { // many keys, of which it covers some
		return nil
	}
	r := &Replaced{
		Key: o.Key, Ban: o.Ban, Limits: rules.LimitTexts(o.Limits), Note: o.Note, By: o.By,
	}
	if !o.Until.IsZero() {
		millis := o.Until.UnixMilli()
		r.Until = &millis
	}
	return r
}

func (x *Executor) planLift(p *plan) error {
	r := &p.record
	if r.From != "" {
		r.To = ""
		return nil
	}
	if _, found := x.o.Overrides.OfFile(r.Rule, r.Key); found {
		return refused("the override for %q under rule %q is in the file: change the file",
			r.Key, r.Rule)
	}
	return conflict("there is no override for %q under rule %q: it has expired or was deleted",
		r.Key, r.Rule)
}

func (x *Executor) planMode(p *plan, o Order, until time.Time) error {
	rule, found := x.rule(o.Rule)
	r := &p.record
	r.From, r.Key, r.Mode = x.o.Overrides.Stored(r.name()), "", o.Mode
	if o.Mode == rules.Shadow.String() || o.Mode == ModeOfFile && rule.FileMode != rules.Enforce {
		r.IdleBans = x.bans(o.Rule)
	}
	if o.Mode == ModeOfFile {
		r.Until = nil
		if r.From != "" {
			return nil
		}
		if !found {
			return &rules.NoRuleError{Name: o.Rule}
		}
		return conflict("rule %q is already in the mode of the file: %s", o.Rule, rule.FileMode)
	}
	mode, err := rules.ParseMode(o.Mode)
	if err != nil || o.Mode == "" || mode == rules.Off {
		return &headgate.InvalidError{Field: "mode", Value: strconv.Quote(o.Mode),
			Want: "enforce, shadow or file"}
	}
	switch {
	case !found:
		return &rules.NoRuleError{Name: o.Rule}
	case r.From == "" && rule.FileMode == mode:
		return conflict("rule %q is already in this mode: the file says %s", o.Rule, mode)
	case rule.FileMode == mode: // the switch ends, so that a change of the file counts again
		r.Until = nil
		return nil
	}
	r.To = overrides.EncodeMode(overrides.Mode{
		Rule: o.Rule, Mode: mode, At: time.UnixMilli(r.At), Until: until, Note: r.Note, By: r.By,
	})
	return nil
}

// bans counts the bans of a rule.
func (x *Executor) bans(rule string) (n int) {
	file, put := x.o.Overrides.List()
	for _, list := range [][]rules.Override{file, put} {
		for i := range list {
			if list[i].Rule == rule && list[i].Ban {
				n++
			}
		}
	}
	return n
}

// rule returns the rule of this name.
func (x *Executor) rule(name string) (rules.InForce, bool) {
	for _, r := range x.o.Engine.Rules() {
		if r.Name == name {
			return r, true
		}
	}
	return rules.InForce{}, false
}
