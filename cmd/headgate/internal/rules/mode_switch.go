package rules

import "maps"

// This file switches the modes of rules while they decide. A switch makes a Set that is as if the
// file said so, so that decisions cost nothing more, and there is no second way to decide.

// Switch sets the modes of the named rules. All other rules get the mode of their Set. A name
// without a rule has no effect until [Engine.Use] adds a rule of that name.
func (e *Engine) Switch(modes map[string]Mode) {
	e.using.Lock()
	defer e.using.Unlock()
	e.modes = maps.Clone(modes)
	e.activate()
}

// InForce is a rule with its current mode.
type InForce struct {
	*Rule // the caller must not change it

	FileMode Mode // without a switch
}

// Rules returns the rules in their order.
func (e *Engine) Rules() []InForce {
	e.using.Lock()
	defer e.using.Unlock()
	list := make([]InForce, len(e.set.rules))
	for i, r := range e.active.Load().rules {
		list[i] = InForce{Rule: &r.Rule, FileMode: e.set.rules[i].Mode}
	}
	return list
}

// inModes returns s with other modes: s itself if none differs.
func (s *Set) inModes(modes map[string]Mode) *Set {
	switched := s
	for i, r := range s.rules {
		mode, found := modes[r.Name]
		if !found || mode == r.Mode {
			continue
		}
		if switched == s {
			switched = &Set{rules: append([]*rule(nil), s.rules...), byName: maps.Clone(s.byName)}
		}
		other := *r
		other.Mode = mode
		switched.rules[i], switched.byName[r.Name] = &other, &other
	}
	if switched != s {
		switched.index = newIndex(switched.rules)
	}
	return switched
}
