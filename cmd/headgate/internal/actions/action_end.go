package actions

import "time"

// Ended is the end of an action that was not undone.
type Ended struct {
	At  *int64 `json:"at"`  // nil: not known
	By  string `json:"by"`  // the author of the later action, or empty
	Why string `json:"why"` // expired, other, or the name of the later action
}

// Values of Ended.Why that are not names of actions.
const (
	expired = "expired"
	other   = "other" // changed by /v1/overrides
)

// settling is the longest time from the record of an action to its effect.
const settling = 2 * time.Second

// ended returns the end of the i-th record, or nil.
func (x *Executor) ended(records []record, i int) *Ended {
	r := &records[i]
	if r.Undone != nil || r.To == "" || r.From == r.To || x.o.Overrides.Stored(r.name()) == r.To {
		return nil
	}
	later := successor(records[:i], r)
	now := time.Now().UnixMilli()
	switch {
	case later != nil: // which found it in force
		return &Ended{At: &later.At, By: later.By, Why: later.Kind}
	case r.Until != nil && *r.Until <= now:
		return &Ended{At: r.Until, Why: expired}
	case now-r.At < settling.Milliseconds():
		return nil
	}
	return &Ended{Why: other}
}

// successor returns the first action after r that replaced what r stored, or nil. after has the
// actions after r, the newest first.
func successor(after []record, r *record) *record {
	for i := len(after) - 1; i >= 0; i-- {
		o := &after[i]
		if o.Undone == nil && o.From == r.To && o.To != r.To &&
			o.Rule == r.Rule && o.Key == r.Key &&
			(o.Kind == Mode) == (r.Kind == Mode) {
			return o
		}
	}
	return nil
}
