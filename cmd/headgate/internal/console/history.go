package console

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The shape of a history: 15 minutes in steps that all instances have in common.
const (
	stepTime = 5 * time.Second
	steps    = 180
	kept     = steps + 4 // the step that is not over, and those that other instances may send late
	maxRules = 500       // with counts of their own in a history
)

// stepOf returns the number of the step that t is in.
func stepOf(t time.Time) int64 { return t.Unix() / int64(stepTime/time.Second) }

// stepStart returns when a step begins, in seconds since 1970.
func stepStart(step int64) int64 { return step * int64(stepTime/time.Second) }

// series holds the counts of the last steps. Step n is at index n modulo kept.
type series [kept]counts

func (s *series) at(step int64) *counts { return &s[step%kept] }

// history holds the counts of the last steps for each rule. Rules without a count are absent.
type history struct {
	newest int64 // the step up to which places are valid
	rules  map[string]*series
	total  series
	all    [kept]totals
}

func newHistory(newest int64) *history {
	return &history{newest: newest, rules: make(map[string]*series)}
}

// advance makes step the newest, if it is newer.
func (h *history) advance(step int64) {
	if step-h.newest >= kept {
		*h = *newHistory(step)
		return
	}
	for h.newest < step {
		h.newest++
		*h.total.at(h.newest) = counts{}
		h.all[h.newest%kept] = totals{}
		for _, s := range h.rules {
			*s.at(h.newest) = counts{}
		}
	}
	for name, s := range h.rules {
		if *s == (series{}) {
			delete(h.rules, name)
		}
	}
}

// has reports whether step is one of those that h holds.
func (h *history) has(step int64) bool { return step <= h.newest && step > h.newest-kept }

// add adds c to a step of a rule. What it does not hold, or what is of too many rules, counts for
// the total only, or not at all.
func (h *history) add(step int64, rule string, c counts) {
	if !h.has(step) || c.isZero() {
		return
	}
	c.addTo(h.total.at(step))
	s := h.rules[rule]
	if s == nil {
		if len(h.rules) >= maxRules {
			return
		}
		s = new(series)
		h.rules[rule] = s
	}
	c.addTo(s.at(step))
}

// stepCounts are the counts of one step.
type stepCounts struct {
	At    int64             `json:"at"` // its beginning, in seconds since 1970
	Rules map[string]counts `json:"rules"`
	Total counts            `json:"total"`
	All   totals            `json:"all,omitzero"`
}

// step returns the counts of a step.
func (h *history) step(step int64) stepCounts {
	s := stepCounts{At: stepStart(step), Rules: map[string]counts{}}
	if !h.has(step) {
		return s
	}
	s.Total, s.All = *h.total.at(step), h.all[step%kept]
	for name, of := range h.rules {
		if c := *of.at(step); !c.isZero() {
			s.Rules[name] = c
		}
	}
	return s
}

// isDegraded reports whether the two steps up to last have decisions without the store: at least
// two, and 5%. Fewer can be due to a busy machine.
func (h *history) isDegraded(last int64) bool {
	isMany := func(c *counts) bool { return c[degraded] > 1 && c[degraded]*20 >= c.decisions() }
	return isMany(h.total.at(last-1)) && isMany(h.total.at(last))
}

// upTo returns the last steps up to one, the oldest first.
func (h *history) upTo(last int64) []stepCounts {
	list := make([]stepCounts, 0, steps)
	for step := last - steps + 1; step <= last; step++ {
		list = append(list, h.step(step))
	}
	return list
}

// used returns the steps up to one that have counts.
func (h *history) used(last int64) []stepCounts {
	return slices.DeleteFunc(h.upTo(last), func(s stepCounts) bool {
		return s.Total.isZero() && s.All == totals{}
	})
}

// addStep adds the counts of a step of another instance.
func (h *history) addStep(s stepCounts) {
	step := s.At / int64(stepTime/time.Second)
	if !h.has(step) {
		return
	}
	listed := counts{}
	for name, c := range s.Rules {
		h.add(step, name, c)
		c.addTo(&listed)
	}
	s.All.addTo(&h.all[step%kept])
	s.Total.since(listed).addTo(h.total.at(step)) // what is of rules that are not listed
}

// decisions returns how many decisions h holds of each rule.
func (h *history) decisions() map[string]uint64 {
	n := make(map[string]uint64, len(h.rules))
	for name, s := range h.rules {
		for _, c := range s {
			n[name] += c.decisions()
		}
	}
	return n
}

// most returns the n names with the largest numbers.
func most(numbers map[string]uint64, n int) []string {
	names := slices.Collect(maps.Keys(numbers))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(numbers[b], numbers[a]), cmp.Compare(a, b))
	})
	return names[:min(len(names), n)]
}
