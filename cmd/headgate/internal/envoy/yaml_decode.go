package envoy

import (
	"math"

	"go.yaml.in/yaml/v3"
)

// ParseDomain reads a document of upstream's dialect. The errors are its faults in the order in
// which they were found; each is one line and begins with file and line.
func ParseDomain(file string, doc *yaml.Node) (*Domain, []error) {
	r := &reader{file: file}
	d := &Domain{File: file, Line: max(doc.Line, 1)}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		doc = doc.Content[0]
	}
	doc, err := expanded(file, doc)
	switch {
	case err != nil:
		return nil, []error{err}
	case doc.Kind == yaml.MappingNode:
		r.check(doc)
		if len(r.errs) == 0 {
			r.domain(doc, d)
		}
	case doc.Kind != 0 && !null(doc):
		r.mismatch(doc, "map[interface {}]interface {}")
	}
	if len(r.errs) == 0 {
		r.errs = d.Check()
	}
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	d.Warnings = append(d.Warnings, r.warned...)
	return d, nil
}

func (r *reader) domain(n *yaml.Node, d *Domain) {
	for _, p := range r.allPairs(n) {
		switch p.key.Value {
		case "domain":
			d.Line = p.key.Line
			r.text(p.value, &d.Name)
		case "descriptors":
			d.Descriptors = r.descriptors(p.value)
		default:
			r.misplaced(p.key, "at the top of the file")
		}
	}
}

// list calls each with the mappings of list n.
func (r *reader) list(n *yaml.Node, of string, each func(*yaml.Node)) {
	switch {
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			each(item)
		}
	case !null(n):
		r.mismatch(n, of)
	}
}

func (r *reader) descriptors(value *yaml.Node) []Spec {
	var specs []Spec
	r.list(value, "[]config.YamlDescriptor", func(n *yaml.Node) {
		s := Spec{Line: n.Line}
		for _, p := range r.allPairs(n) {
			r.descriptor(p, &s)
		}
		specs = append(specs, s)
	})
	return specs
}

func (r *reader) descriptor(p pair, s *Spec) {
	switch p.key.Value {
	case "key":
		r.text(p.value, &s.Key)
	case "value":
		r.text(p.value, &s.Value)
	case "rate_limit":
		r.rateLimit(p.value, s)
	case "limit":
		if s.RateLimit == nil {
			s.RateLimit = &RateLimit{Line: p.key.Line}
		}
		r.text(p.value, &s.RateLimit.Text)
	case "descriptors":
		s.Descriptors = r.descriptors(p.value)
	case "shadow_mode":
		r.boolean(p.value, &s.ShadowMode)
	case "quota_mode":
		r.boolean(p.value, &s.QuotaMode)
	case "charge_always":
		r.boolean(p.value, &s.ChargeAlways)
	case "detailed_metric":
		r.boolean(p.value, &s.DetailedMetric)
	case "value_to_metric":
		r.boolean(p.value, &s.ValueToMetric)
	case "share_threshold":
		r.boolean(p.value, &s.ShareThreshold)
	case "metadata":
		s.Metadata = r.metadata(p.value)
	default:
		r.misplaced(p.key, "in a descriptor")
	}
}

func (r *reader) rateLimit(n *yaml.Node, s *Spec) {
	if n.Kind != yaml.MappingNode {
		s.RateLimit = nil
		if !null(n) {
			r.mismatch(n, "config.YamlRateLimit")
		}
		return
	}
	if s.RateLimit == nil {
		s.RateLimit = &RateLimit{}
	}
	s.RateLimit.Line = n.Line
	for _, p := range r.allPairs(n) {
		r.limitField(p, s.RateLimit)
	}
}

func (r *reader) limitField(p pair, l *RateLimit) {
	switch p.key.Value {
	case "unit":
		l.Line = p.key.Line
		r.text(p.value, &l.Unit)
	case "requests_per_unit":
		r.count(p.value, &l.RequestsPerUnit)
	case "unit_multiplier":
		r.count(p.value, &l.UnitMultiplier)
		if l.UnitMultiplier == 0 {
			r.failf(p.value, "unit_multiplier is %q; want a whole number of at least 1",
				p.value.Value)
		}
	case "unlimited":
		r.boolean(p.value, &l.Unlimited)
	case "name":
		r.text(p.value, &l.Name)
	case "replaces":
		l.Replaces = nil
		r.list(p.value, "[]config.yamlReplaces", func(n *yaml.Node) {
			l.Replaces = append(l.Replaces, r.replaces(n))
		})
	case "limit":
		r.text(p.value, &l.Text)
	default:
		r.misplaced(p.key, "in a rate_limit")
	}
}

func (r *reader) replaces(n *yaml.Node) (name string) {
	for _, p := range r.allPairs(n) {
		if p.key.Value == "name" {
			r.text(p.value, &name)
		} else {
			r.misplaced(p.key, "in replaces")
		}
	}
	return name
}

// misplaced is for a known key that means nothing where it is. Upstream ignores it.
func (r *reader) misplaced(key *yaml.Node, where string) {
	if ours[key.Value] {
		r.failf(key, "config error, unknown key '%s' %s", key.Value, where)
		return
	}
	r.warnf(key, "'%s' has no effect %s", key.Value, where)
}

func (r *reader) text(value *yaml.Node, to *string) {
	r.scalar(value, "string", func(n *yaml.Node) bool {
		*to = n.Value
		return n.ShortTag() != "!!binary" || n.Decode(to) == nil
	}, func() { *to = "" })
}

func (r *reader) boolean(value *yaml.Node, to *bool) {
	r.scalar(value, "bool", func(n *yaml.Node) bool {
		if kind(n) != "!!bool" {
			return false
		}
		*to = boolean(n)
		return true
	}, func() { *to = false })
}

func (r *reader) count(value *yaml.Node, to *uint32) {
	r.scalar(value, "uint32", func(n *yaml.Node) bool {
		if k := kind(n); k != "!!int" && k != "!!float" {
			return false
		}
		var f float64 // a fraction passes only where a later duplicate replaces it
		ok := n.Decode(&f) == nil && f >= 0 && f <= math.MaxUint32
		if ok {
			*to = uint32(f)
		}
		return ok
	}, func() { *to = 0 })
}

// scalar reads a scalar by set, or calls unset if it is null.
func (r *reader) scalar(n *yaml.Node, want string, set func(*yaml.Node) bool, unset func()) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.mismatch(n, want)
	case null(n):
		unset()
	case !set(n):
		r.mismatch(n, want)
	}
}

// mismatch reports a value of the wrong type as upstream's YAML library does.
func (r *reader) mismatch(n *yaml.Node, want string) {
	value := ""
	if n.Kind == yaml.ScalarNode {
		value = n.Value
		if len(value) > 10 {
			value = value[:7] + "..."
		}
		value = " `" + value + "`"
	}
	r.failf(n, "error loading config file: yaml: cannot unmarshal %s%s into %s",
		kind(n), value, want)
}
