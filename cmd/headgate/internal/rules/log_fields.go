package rules

import (
	"slices"
	"strings"
)

// NotInLog returns what an access log lacks to decide r, such as "header:X-Api-Key"; empty: a log
// decides it. A rule that does not enforce denies nothing.
func (r *Rule) NotInLog() string {
	if r.Mode != Enforce {
		return ""
	}
	var lacks []string
	for _, p := range r.Key {
		if slices.Contains([]string{"cookie", "query", "body"}, p.Source) ||
			p.Source == "header" && p.Name != "Host" {
			lacks = append(lacks, p.String())
		}
	}
	if r.Cost != (Cost{Fixed: r.Cost.Fixed}) {
		lacks = append(lacks, "cost "+r.Cost.String())
	}
	if len(r.Count.Statuses) > 0 { // a rule that counts denials is decided
		lacks = append(lacks, "count "+r.Count.String())
	}
	if r.MaxWait > 0 {
		lacks = append(lacks, "max_wait")
	}
	if r.Headroom.Header != "" {
		lacks = append(lacks, "headroom by "+r.Headroom.Header)
	}
	if r.Permits > 0 {
		lacks = append(lacks, "permits")
	}
	return strings.Join(lacks, ", ")
}

// NeedsHost reports whether r decides by the host, which some access logs lack.
func (r *Rule) NeedsHost() bool {
	return r.Mode == Enforce && (len(r.Match.Hosts) > 0 ||
		slices.ContainsFunc(r.Key, func(p KeyPart) bool {
			return p.Source == "host" || p.Source == "header" && p.Name == "Host"
		}))
}
