package acts

import "time"

// Ended says since when and why an act is not in force any more, though nobody has undone it.
type Ended struct {
	At  *int64 `json:"at"` // nil: not known
	By  string `json:"by"`
	Why string `json:"why"` // expired, the act that came after it, or other
}

// The ends that are no acts.
const (
	expired = "expired"
	other   = "other" // by /v1/overrides
)

// settling is how long an act may be noted before it is carried out.
const settling = 2 * time.Second

// ended returns the end of the i-th record, or nil.
func (d *Desk) ended(records []record, i int) *Ended {
	r := &records[i]
	if r.Undone != nil || r.To == "" || r.From == r.To || d.o.Overrides.Kept(r.name()) == r.To {
		return nil
	}
	later := successor(records[:i], r)
	now := time.Now().UnixMilli()
	switch {
	case later != nil && (r.Until == nil || later.At < *r.Until):
		return &Ended{At: &later.At, By: later.By, Why: later.Act.Act}
	case r.Until != nil && *r.Until <= now:
		return &Ended{At: r.Until, Why: expired}
	case now-r.At < settling.Milliseconds():
		return nil
	}
	return &Ended{Why: other}
}

// successor returns the act that has changed what r put, of those after it, the newest first.
func successor(after []record, r *record) *record {
	for i := len(after) - 1; i >= 0; i-- {
		o := &after[i]
		if o.Undone == nil && o.From == r.To && o.To != r.To && o.Rule == r.Rule && o.Key == r.Key &&
			(o.Act.Act == Mode) == (r.Act.Act == Mode) {
			return o
		}
	}
	return nil
}
