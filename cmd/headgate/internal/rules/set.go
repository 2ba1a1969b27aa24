package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
)

// Set is a list of rules, ready to decide. It does not change.
type Set struct {
	rules  []*rule
	byName map[string]*rule
	index  index
}

// rule is a Rule, compiled.
type rule struct {
	Rule

	place   int  // in the list
	late    bool // its cost is in the response
	limits  []headgate.Limit
	path    *regexp.Regexp // of a Match by regular expression
	endings []string       // of Hosts such as *.example.com, with the dot
	hosts   []string       // the other Hosts
}

// NewSet compiles rules, whose names and limits must differ: see package config. Its error joins
// those of [Rule.Validate].
func NewSet(list []Rule) (*Set, error) {
	s := &Set{byName: make(map[string]*rule, len(list))}
	var faults []error
	for i := range list {
		r, err := compile(list[i])
		if err = errors.Join(list[i].Validate(), err); err != nil {
			faults = append(faults, err)
			continue
		}
		r.place = len(s.rules)
		s.rules = append(s.rules, r)
		s.byName[r.Name] = r
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	s.index = newIndex(s.rules)
	return s, nil
}

func compile(r Rule) (*rule, error) {
	c := &rule{Rule: r, limits: Named(r.Name, r.Limits), late: r.Cost.IsLate()}
	c.Match.Methods, c.Match.Hosts = nil, nil
	for _, method := range r.Match.Methods {
		c.Match.Methods = append(c.Match.Methods, strings.ToUpper(method))
	}
	err := CheckPath(r.Match.Path)
	for i := 0; i < len(r.Match.Hosts) && err == nil; i++ {
		var host string
		host, err = ParseHost(r.Match.Hosts[i])
		c.Match.Hosts = append(c.Match.Hosts, host)
		if ending, found := strings.CutPrefix(host, "*"); found {
			c.endings = append(c.endings, ending)
		} else if !slices.Contains(c.hosts, host) {
			c.hosts = append(c.hosts, host)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("rule %q: match: %w", r.Name, err)
	}
	if expression, found := strings.CutPrefix(r.Match.Path, "re:"); found {
		c.path = regexp.MustCompile(expression) // valid, by CheckPath
	}
	return c, nil
}

// Named returns the limits of a rule under the names that its state has: NAME, NAME.2, and so on.
// Other limits of the rule for some keys get the same names, so that what is used is kept.
func Named(rule string, limits []headgate.Limit) []headgate.Limit {
	named := make([]headgate.Limit, len(limits))
	for i, l := range limits {
		name := rule
		if i > 0 {
			name += "." + strconv.Itoa(i+1)
		}
		named[i] = l.Named(name)
	}
	return named
}

// LimitTexts returns the texts of limits without names.
func LimitTexts(limits []headgate.Limit) []string {
	texts := make([]string, len(limits))
	for i, l := range limits {
		texts[i] = l.Named("").String()
	}
	return texts
}

const (
	maxName   = 60 // leaves room for the number of a limit
	maxLimits = 16

	// MaxPermits is the largest number of permits that package concurrency counts.
	MaxPermits = 65_535
)

// Validate reports what is wrong with r, all faults together. It does not look at what a function
// Parse of this package has returned.
func (r *Rule) Validate() error {
	var faults []error
	fault := func(field string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("rule %q: %s: %w", r.Name, field, err))
		}
	}
	fault("name", checkName(r.Name))
	if len(r.Limits) > maxLimits {
		fault("limits", fmt.Errorf("has %d entries; want at most %d", len(r.Limits), maxLimits))
	}
	for _, l := range r.Limits {
		fault("limits", l.Validate())
	}
	if r.Permits < 0 || r.Permits > MaxPermits {
		fault("permits", fmt.Errorf("is %d; want 0 to %d", r.Permits, MaxPermits))
	}
	if len(r.Limits) == 0 && r.Permits == 0 {
		fault("limits", errors.New(`is missing; want at least one such as "100/m", or permits`))
	}
	if r.Cost.Tokens != nil {
		fault("cost.tokens", r.Cost.Tokens.Validate())
	}
	if n := r.Cost.Estimate; n < 0 || n > maxCost {
		fault("cost.estimate", fmt.Errorf("is %d; want 0 to %d", n, int64(maxCost)))
	}
	fault("count", r.Count.check(r))
	fault("clear", r.Clear.checkClear(r.Count))
	fault("headroom", r.Headroom.Validate())
	fault("max_wait", r.checkMaxWait())
	fault("max_waiting", r.checkMaxWaiting())
	return errors.Join(faults...)
}

// checkName reports what is wrong with the name of a rule.
func checkName(name string) error {
	const want = "1 to 60 letters, digits, dots, dashes and underscores, the first a letter"
	if len(name) > maxName || name == "" {
		return fmt.Errorf("%q has %d bytes; want %s", name, len(name), want)
	}
	if name == "nginx" {
		return fmt.Errorf("%q is reserved for the address /auth/nginx; want another name", name)
	}
	if headgate.PerSecond(1).Named(name).Validate() != nil {
		return fmt.Errorf("%q is not a name; want %s", name, want)
	}
	return nil
}
