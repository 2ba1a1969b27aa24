package envoy

import (
	"strings"

	"github.com/headgate/headgate"
)

// Slot is a counter in a store.
type Slot struct {
	Store headgate.Store
	Key   string
	Limit headgate.Limit

	window int64
}

// Slots returns the counters that the descriptor text ([DescriptorText]) may have under the rules
// of a domain. rule is DOMAIN/PATH, as statistics name it. The path is ignored, because the text is
// more specific. There are none if the domain is not configured.
func (l *Limiter) Slots(rule, text string) (slots []Slot) {
	c := l.config.Load()
	if c == nil {
		return nil
	}
	type state struct{ domain, id string }
	seen := map[state]bool{}
	for _, r := range c.rules {
		id := state{r.domain, r.limit.ID()}
		if r.unlimited || seen[id] || !strings.HasPrefix(rule, sanitize(r.domain)+"/") {
			continue
		}
		seen[id] = true
		s := Slot{Store: l.store, Key: CounterKey(r.domain, text), Limit: r.limit, window: r.window}
		if l.perSecond != nil && r.perSecond {
			s.Store = l.perSecond
		}
		slots = append(slots, s)
	}
	return slots
}

// Forget drops what this process has cached of a counter that was reset.
func (l *Limiter) Forget(s Slot) {
	if l.cache != nil {
		l.cache.forget(s.Key, s.window)
	}
}
