package envoy

import (
	"errors"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/wildcard"
)

// Config is a set of domains, ready for lookup. It does not change; one [Limiter] uses it.
type Config struct {
	domains map[string]*node
	order   []*node // the domains in the order of their files
	rules   []*rule // in the order of the files
	counted *Statistics
}

// node is a place in the tree of descriptors.
type node struct {
	name      string           // key, or key_value; of a root the domain
	children  map[string]*node // by name
	wildcards []*node          // the children with * in their name, in the order of the file
	rule      *rule            // nil: the node only groups
	share     bool
	valued    bool // value_to_metric

	overrides *paths // of a root: statistics of limits in requests
}

// NewConfig checks domains and makes a Config of them. Two domains of one name are an error unless
// merge is set; then their descriptors are joined. The error holds every fault, one on a line.
func NewConfig(domains []*Domain, merge bool) (*Config, error) {
	c := &Config{domains: make(map[string]*node, len(domains))}
	b := builder{config: c}
	for _, d := range domains {
		b.add(d, merge)
	}
	if len(b.errs) > 0 {
		return nil, errors.Join(b.errs...)
	}
	return c, nil
}

// RuleMode is a rule of a Config, and whether it only counts.
type RuleMode struct {
	Domain, Path string // as in Counters; paths of values below it are not listed
	Shadow       bool
}

// Rules returns the rules with a limit, in the order of the files.
func (c *Config) Rules() []RuleMode {
	list := make([]RuleMode, 0, len(c.rules))
	for _, r := range c.rules {
		if !r.unlimited {
			list = append(list, RuleMode{sanitize(r.domain), sanitize(r.key), r.shadow})
		}
	}
	return list
}

// Domains is the number of domains.
func (c *Config) Domains() int { return len(c.domains) }

// Check returns the faults of d by itself, in the order of the file, and sets d.Warnings.
func (d *Domain) Check() []error {
	b := builder{config: &Config{domains: map[string]*node{}}}
	b.add(d, false)
	if len(b.errs) == 0 {
		d.Warnings = d.collisions(d.Descriptors)
	}
	return b.errs
}

type builder struct {
	config *Config
	file   string
	errs   []error
}

func (b *builder) failf(line int, format string, args ...any) {
	b.errs = append(b.errs, faultf(b.file, line, format, args...))
}

func (b *builder) add(d *Domain, merge bool) {
	b.file = d.File
	if d.Name == "" {
		b.failf(d.Line, "config file cannot have empty domain")
		return
	}
	root := b.config.domains[d.Name]
	if root != nil && !merge {
		b.failf(d.Line, "duplicate domain '%s' in config file", d.Name)
		return
	}
	if root == nil {
		root = &node{name: d.Name}
		b.config.domains[d.Name] = root
		b.config.order = append(b.config.order, root)
	}
	b.load(root, d.Name, "", d.Descriptors)
}

// load adds specs below parent, whose key in statistics is path and a dot.
func (b *builder) load(parent *node, domain, path string, specs []Spec) {
	for i := range specs {
		s := &specs[i]
		if s.Key == "" {
			b.failf(s.Line, "descriptor has empty key")
			continue
		}
		name := s.Key
		if s.Value != "" {
			name += "_" + s.Value
		}
		key := path + name
		if parent.children[name] != nil {
			b.failf(s.Line, "duplicate descriptor composite key '%s.%s'", domain, key)
			continue
		}
		n := &node{name: name, share: s.ShareThreshold, valued: s.ValueToMetric}
		if s.RateLimit != nil {
			n.rule = b.rule(s, domain, key)
		}
		if s.ShareThreshold && !strings.Contains(name, "*") {
			b.failf(s.Line,
				"share_threshold can only be used with wildcard values (containing '*'), "+
					"but found key '%s'", name)
		}
		parent.adopt(n)
		b.load(n, domain, key+".", s.Descriptors)
	}
}

func (n *node) adopt(child *node) {
	if n.children == nil {
		n.children = make(map[string]*node)
	}
	n.children[child.name] = child
	if wildcard.Has(child.name) {
		n.wildcards = append(n.wildcards, child)
	}
}

// rule checks the limit of s.
func (b *builder) rule(s *Spec, domain, key string) *rule {
	l := s.RateLimit
	r := &rule{
		domain: domain, key: key, shown: Limit{Name: l.Name}, unlimited: l.Unlimited,
		shadow: s.ShadowMode, quota: s.QuotaMode, detailed: s.DetailedMetric,
		always:   s.ChargeAlways,
		replaces: l.Replaces, metadata: s.Metadata,
	}
	b.numbers(r, l)
	for _, name := range l.Replaces {
		switch name {
		case "":
			b.failf(l.Line, "should not have an empty replaces entry")
		case r.shown.Name:
			b.failf(l.Line, "replaces should not contain name of same descriptor")
		}
	}
	b.config.rules = append(b.config.rules, r)
	return r
}

func (b *builder) numbers(r *rule, l *RateLimit) {
	unit := unitNamed(l.Unit)
	switch {
	case l.Text != "":
		b.text(r, l)
	case l.Unlimited && unit != UnitUnknown:
		b.failf(l.Line, "should not specify rate limit unit when unlimited")
	case l.Unlimited && l.UnitMultiplier != 0:
		b.failf(l.Line, "should not specify unit_multiplier when unlimited")
	case l.Unlimited:
		r.shown.RequestsPerUnit = l.RequestsPerUnit
	case unit == UnitUnknown:
		b.failf(l.Line, "invalid rate limit unit '%s'", l.Unit)
	default:
		if err := r.setWindow(l.RequestsPerUnit, unit, l.UnitMultiplier); err != nil {
			b.failf(l.Line, "%s", err.Error())
		}
	}
}

func (b *builder) text(r *rule, l *RateLimit) {
	if l.Unit != "" || l.Unlimited || l.RequestsPerUnit != 0 || l.UnitMultiplier != 0 {
		b.failf(l.Line, "limit '%s' has a unit, requests_per_unit, unit_multiplier or unlimited "+
			"as well; want either limit or these", l.Text)
		return
	}
	name := r.shown.Name
	if err := r.setText(l.Text); err != nil {
		b.failf(l.Line, "limit '%s': %s", l.Text, strings.TrimPrefix(err.Error(), "headgate: "))
	}
	if name != "" {
		r.shown.Name = name
	}
}

// collisions warns of descriptors whose key begins with a sibling's key and an underscore: they
// also match entries of the sibling's key.
func (d *Domain) collisions(specs []Spec) []string {
	var warnings []string
	keys := make(map[string]bool, len(specs))
	for i := range specs {
		keys[specs[i].Key] = true
	}
	for i := range specs {
		key, value, name := specs[i].Key, specs[i].Value, specs[i].Key
		what := "key '" + key + "' also matches"
		if value != "" {
			name += "_" + value
			what = "key '" + key + "' and value '" + value + "' also match"
		}
		for at := range len(key) {
			if key[at] == '_' && keys[key[:at]] {
				f := faultf(d.File, specs[i].Line, "%s an entry with key '%s' and value '%s'",
					what, key[:at], name[at+1:])
				warnings = append(warnings, f.Error())
			}
		}
		warnings = append(warnings, d.collisions(specs[i].Descriptors)...)
	}
	return warnings
}
