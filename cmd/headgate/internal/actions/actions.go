// Package actions carries out, lists and undoes the actions of operators on keys and rules.
//
// An action is listed before it is carried out, so that none is missing. An undo restores the
// previous override or mode, unless it was changed after the action. A reset cannot be undone.
package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/headgate/headgate/redisstore"
)

// Max is the number of actions that the list keeps.
const Max = 1000

// The kinds of actions.
const (
	Reset = "reset" // puts a key back in its initial state
	Raise = "raise" // gives a key other limits
	Ban   = "ban"   // denies a key
	Lift  = "lift"  // deletes a raise or a ban
	Mode  = "mode"  // switches the mode of a rule

	// Restore puts back what the store has lost. Only [Executor.PutBack] does it.
	Restore = "restore"
)

// ModeOfFile is the mode of an order that ends the switch of a rule.
const ModeOfFile = "file"

// Order is an action that an operator requests.
type Order struct {
	Kind      string
	Rule      string
	Key       string
	Limits    []headgate.Limit // of a raise
	For       time.Duration    // of a raise, a ban or a mode; 0: without end
	Note      string
	By        string
	KeepUsage bool   // of a raise: do not reset the key
	Mode      string // enforce, shadow or [ModeOfFile]
}

// Action is an action that was carried out.
type Action struct {
	ID       string   `json:"id"`
	At       int64    `json:"at"` // Unix milliseconds, as all times
	By       string   `json:"by"`
	Kind     string   `json:"act"`
	Rule     string   `json:"rule"`
	Key      string   `json:"key"`
	Limits   []string `json:"limits"`
	Mode     string   `json:"mode"`
	Until    *int64   `json:"until"`
	Note     string   `json:"note"`
	Undone   *Undone  `json:"undone"`
	Undoable bool     `json:"undoable"`

	Replaced *Replaced `json:"replaced"`  // by a raise or a ban
	IdleBans int       `json:"idle_bans"` // that deny nothing, because the rule does not enforce
	Ended    *Ended    `json:"ended"`     // null: in force, undone, or an action that nothing ends
}

// Replaced is the override that was in force for a key before an action: its own, or that of many
// keys.
type Replaced struct {
	Key    string   `json:"key"`
	Ban    bool     `json:"ban"`
	Limits []string `json:"limits"`
	Until  *int64   `json:"until"`
	Note   string   `json:"note"`
	By     string   `json:"by"`
}

// Undone has the author and time of an undo.
type Undone struct {
	At int64  `json:"at"`
	By string `json:"by"`
}

// record is an action as it is kept, with what an undo needs.
type record struct {
	Action

	From string `json:"from,omitempty"` // the entry beside the overrides, before and after
	To   string `json:"to,omitempty"`

	kept string // the text of it in the log
}

// Error is the reason why an order conflicts with the active configuration or state.
type Error struct {
	Conflict bool // with a later change
	Text     string
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// ErrNotAnnounced reports that a key was reset, but other instances may still deny it.
var ErrNotAnnounced = errors.New(
	"actions: the key was reset, but other instances may still deny it")

func refused(format string, values ...any) error {
	return &Error{Text: fmt.Sprintf(format, values...)}
}

func conflict(format string, values ...any) error {
	return &Error{Conflict: true, Text: fmt.Sprintf(format, values...)}
}

// Options configures an [Executor]. All fields but Redis, Box and Domains are required.
type Options struct {
	Store     headgate.Store // of the rules
	Engine    *rules.Engine
	Overrides *overrides.Table
	Domains   *envoy.Limiter    // nil: there are none
	Redis     *redisstore.Store // keeps the list for all instances; nil: this process keeps it
	Box       *seal.Box         // seals the list; nil: it is clear
}

// Executor carries out orders. It is safe for use by many goroutines.
type Executor struct {
	o   Options
	log log
}

// New makes an Executor.
func New(o Options) *Executor {
	x := &Executor{o: o, log: &memoryLog{texts: map[string]string{}}}
	if o.Redis != nil {
		x.log = newRedisLog(o.Redis, o.Box)
	}
	return x
}

// tries is how often an order is tried if others change the same key meanwhile.
const tries = 3

// Do carries out o. Errors are an [Error], a headgate.InvalidError, a rules.NoRuleError, or one of
// the store.
func (x *Executor) Do(ctx context.Context, o Order) (Action, error) {
	if err := x.o.Overrides.Refresh(ctx); err != nil {
		return Action{}, err
	}
	var err error
	for range tries {
		var p *plan
		if p, err = x.plan(o); err != nil {
			return Action{}, err
		}
		// What has begun is brought to an end, also if the client disconnects.
		if err = x.carryOut(context.WithoutCancel(ctx), p); err == nil {
			return x.shown(&p.record), nil
		}
		if !errors.Is(err, overrides.ErrChanged) {
			return Action{}, err
		}
	}
	return Action{}, conflict("the key or rule was changed at the same time: try again")
}

// carryOut records p and does it. If it fails, it deletes the record. After an error of the store,
// a step may have been done, so it undoes that step, too.
func (x *Executor) carryOut(ctx context.Context, p *plan) error {
	r, note := &p.record, p.record.text()
	_, err := x.log.swap(ctx, r.ID, "", note)
	if err == nil {
		err = x.apply(ctx, p)
	}
	if err != nil {
		_, _ = x.log.swap(ctx, r.ID, note, "") // best effort
		return err
	}
	if len(p.slots) > 0 {
		err = x.o.Overrides.Announce(ctx, overrides.Reset{Rule: r.Rule, Key: r.Key})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotAnnounced, err)
		}
	}
	return nil
}

func (x *Executor) apply(ctx context.Context, p *plan) error {
	r := &p.record
	if r.From != r.To {
		if err := x.swap(ctx, r.name(), r.From, r.To); err != nil {
			return err
		}
	}
	for _, s := range p.slots {
		if err := s.Store.Reset(ctx, s.Key, s.Limit); err != nil {
			x.swapBack(ctx, r.name(), r.To, r.From)
			return err
		}
	}
	return nil
}

// swap changes an entry. An error of the store may come after the change, so swap then restores it.
func (x *Executor) swap(ctx context.Context, name, from, to string) error {
	err := x.o.Overrides.Swap(ctx, name, from, to)
	if err != nil && !errors.Is(err, overrides.ErrChanged) {
		x.swapBack(ctx, name, to, from)
	}
	return err
}

// swapBack brings an entry back after what should follow has failed. If it fails, too, the store is
// unavailable, and the note of the action is likely to stay.
func (x *Executor) swapBack(ctx context.Context, name, from, to string) {
	if from != to {
		_ = x.o.Overrides.Swap(ctx, name, from, to)
	}
}

// List returns the actions, the newest first.
func (x *Executor) List(ctx context.Context) ([]Action, error) {
	records, err := x.records(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.o.Overrides.Refresh(ctx); err != nil { // after the records, which come first
		return nil, err
	}
	list := make([]Action, len(records))
	for i := range records {
		list[i] = x.shown(&records[i])
		list[i].Ended = x.ended(records, i)
	}
	return list, nil
}

// records returns what is kept, the newest first.
func (x *Executor) records(ctx context.Context) ([]record, error) {
	kept, err := x.log.all(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]record, 0, len(kept))
	for _, text := range kept {
		var r record
		if err := json.Unmarshal([]byte(text), &r); err == nil { // else of another version
			r.kept = text
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b record) int { return strings.Compare(b.ID, a.ID) })
	return list, nil
}

// shown returns the action of r as it is now.
func (x *Executor) shown(r *record) Action {
	a := r.Action
	a.Undoable = x.undoable(r)
	return a
}

func (r *record) text() string {
	kept := *r
	kept.Undoable = false
	text, err := json.Marshal(kept)
	if err != nil {
		panic(err) // cannot happen: texts and numbers
	}
	return string(text)
}

// name is the name of what r changes beside the overrides.
func (r *record) name() string {
	if r.Kind == Mode {
		return overrides.ModeName(r.Rule)
	}
	return overrides.KeyName(r.Rule, r.Key)
}
