package rules

import (
	"slices"
	"strings"
)

// index finds the rules whose path may match, without looking at the others.
type index struct {
	exact    map[string][]*rule
	prefixes map[string][]*rule // by /x of /x/*
	depth    int                // the largest number of segments of a prefix
	hosts    map[string][]*rule // of rules without an indexed path, by host
	rest     []*rule
}

func newIndex(rules []*rule) index {
	x := index{
		exact:    make(map[string][]*rule),
		prefixes: make(map[string][]*rule),
		hosts:    make(map[string][]*rule),
	}
	for _, r := range rules {
		if r.Mode == Off {
			continue
		}
		path := r.Match.Path
		prefix, isPrefix := strings.CutSuffix(path, "/*")
		switch {
		case path != "" && r.path == nil && isPrefix:
			x.prefixes[prefix] = append(x.prefixes[prefix], r)
			x.depth = max(x.depth, strings.Count(prefix, "/"))
		case path != "" && r.path == nil:
			clean, _ := cleanPath(path)
			x.exact[clean] = append(x.exact[clean], r)
		case len(r.hosts) > 0 && len(r.endings) == 0:
			for _, host := range r.hosts {
				x.hosts[host] = append(x.hosts[host], r)
			}
		default:
			x.rest = append(x.rest, r)
		}
	}
	return x
}

// match appends the rules that match q to found, in their order. A path that servers read in
// several ways matches by each, so that no client avoids a rule by it.
func (x *index) match(q *target, found []*rule) []*rule {
	found = x.matchPath(q, found)
	for _, p := range [...]string{q.dotted, q.empty} {
		if p != "" && p != q.path {
			other := *q
			other.path = p
			found = x.matchPath(&other, found)
		}
	}
	slices.SortFunc(found, func(a, b *rule) int { return a.place - b.place })
	return slices.Compact(found)
}

func (x *index) matchPath(q *target, found []*rule) []*rule {
	found = appendMatching(found, x.exact[q.path], q)
	if len(x.prefixes) > 0 {
		found = appendMatching(found, x.prefixes[""], q)
		for i, depth := 1, 1; i <= len(q.path) && depth <= x.depth; i++ {
			if i == len(q.path) || q.path[i] == '/' {
				found = appendMatching(found, x.prefixes[q.path[:i]], q)
				depth++
			}
		}
	}
	found = appendMatching(found, x.hosts[q.host], q)
	return appendMatching(found, x.rest, q)
}

func appendMatching(found, candidates []*rule, q *target) []*rule {
	for _, r := range candidates {
		if r.matches(q) {
			found = append(found, r)
		}
	}
	return found
}
