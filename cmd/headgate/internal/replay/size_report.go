package replay

import (
	"time"

	"github.com/headgate/headgate"
)

// SizeReport is the result of [Size]. Of logs without requests, all but Traffic is empty.
type SizeReport struct {
	Traffic

	Periods   []SmallestLimits `json:"periods"`   // n/period, for each of SizeConfig.Periods
	Rates     []SmallestLimits `json:"rates"`     // rate burst b, for each of SizeConfig.Rates
	Proposals []Proposal       `json:"proposals"` // careful, balanced and tight
	StandOut  *StandOut        `json:"stand_out"` // nil if no key stands out
	Caveats   []Caveat         `json:"caveats"`   // what the logs cannot say
}

// Needed returns the smallest limit that denies nothing to keys that do not stand out, and twice
// this limit, which has reserve for a client that is busier than in the log. Without requests, both
// are the zero Limit. If twice as much cannot be counted exactly, reserve is needed itself.
func (r *SizeReport) Needed() (needed, reserve headgate.Limit) {
	switch {
	case r.StandOut != nil:
		needed = r.StandOut.Rest.Limit
	case len(r.Proposals) > 0:
		needed = r.Proposals[0].Limit
	}
	return needed, Reserve(needed)
}

// Reserve returns twice the token bucket l, or l itself if twice as much cannot be counted exactly.
func Reserve(l headgate.Limit) headgate.Limit {
	if twice := headgate.Per(2*l.Refill(), l.Period()); twice.Validate() == nil {
		return twice
	}
	return l
}

// SmallestLimits are those of one period, or of one rate.
type SmallestLimits struct {
	Period Period          `json:"period"`
	Rate   string          `json:"rate"`   // such as 60/m; empty for a period
	Enough bool            `json:"enough"` // the span is at least 10 periods
	Fits   []SmallestLimit `json:"fits"`   // for 0, 0.01, 0.1 and 1% of the requests
	Rest   []SmallestLimit `json:"rest"`   // without the keys that stand out; nil if none does
	Needs  []KeysByNeed    `json:"needs"`  // how many keys need which limit, the smallest first
}

// Period is a duration that is written as in the text form of a limit.
type Period time.Duration

// MarshalText returns the period, such as 15m.
func (p Period) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String returns the period, such as 15m.
func (p Period) String() string {
	text := headgate.FixedWindow(1, time.Duration(p)).String()
	text = text[len("1/") : len(text)-len(" fixed-window")]
	if text[0] < '0' || text[0] > '9' {
		return "1" + text
	}
	return text
}

// SmallestLimit is the smallest limit that denies at most a share of the requests.
type SmallestLimit struct {
	MaxShare float64     `json:"max_share"` // of the requests, from 0 to 1
	Point    *TriedLimit `json:"point"`     // nil if no limit that can be counted exactly does
}

// TriedLimit is a limit and what it would have denied.
type TriedLimit struct {
	Limit      headgate.Limit `json:"limit"`
	Size       int64          `json:"size"`   // the burst of Limit
	Denied     int64          `json:"denied"` // of the keys that count
	DeniedKeys int64          `json:"denied_keys"`
}

// KeysByNeed counts the keys that need a limit of a size from From to To so that none of their
// requests is denied.
type KeysByNeed struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Keys int64 `json:"keys"`
}

// Proposal is a limit with what it would have denied and to which keys.
type Proposal struct {
	Name     string  `json:"name"`
	MaxShare float64 `json:"max_share"` // that it may deny of the requests
	OfRest   bool    `json:"of_rest"`   // of those of the keys that do not stand out
	Result

	RestDenied     int64 `json:"rest_denied"`      // of the keys that do not stand out
	RestDeniedKeys int64 `json:"rest_denied_keys"` // of those
}

// StandOut is the keys that need more than the rest, and for some period that the span is long
// enough for, at least three times as much. They are at most 20 for each period.
type StandOut struct {
	Period Period        `json:"period"`
	Keys   []StandOutKey `json:"keys"` // those that need most first
	Rest   Result        `json:"rest"` // the smallest limit of the period that denies no other key
}

// StandOutKey is a key that stands out.
type StandOutKey struct {
	Key      LogKey         `json:"key"`
	Requests int64          `json:"requests"`
	Share    float64        `json:"share"`  // of all requests, from 0 to 1
	Need     headgate.Limit `json:"need"`   // the smallest that denies it nothing
	Denied   []int64        `json:"denied"` // by proposal
	From     time.Time      `json:"from"`   // the first request
	To       time.Time      `json:"to"`     // the last request
}

// Caveat is something that the logs cannot say. ID is stable.
type Caveat struct {
	ID   string `json:"id"` // gap, span, whole-seconds, late or few-keys
	Text string `json:"text"`
}
