package config

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

func (r *reader) rule(n *yaml.Node, path string) {
	var rule rules.Rule
	before := len(r.faults)
	r.mapping(n, path,
		into("name", &rule.Name, r.text),
		into("match", &rule.Match, r.match),
		into("exempt", &rule.Exempt, r.networks("the rule applies to no request")),
		into("key", &rule.Key, r.key),
		into("any_key", &rule.AnyKey, r.boolean),
		into("limits", &rule.Limits, r.limitTexts),
		into("permits", &rule.Permits, wholeNumber[int64](r, 1, math.MaxUint16)),
		into("mode", &rule.Mode, parsed(r, rules.ParseMode)),
		into("cost", &rule.Cost, r.cost),
		into("count", &rule.Count, r.count),
		into("clear", &rule.Clear, r.statuses),
		into("headroom", &rule.Headroom, r.headroom),
		into("label_keys", &rule.LabelKeys, r.boolean),
		into("max_wait", &rule.MaxWait, r.duration("a wait", "1ms", "20s", "2s")),
		into("max_waiting", &rule.MaxWaiting, wholeNumber(r, 1, rules.MaxMaxWaiting)),
		into("retry_within", &rule.RetryWithin, r.duration("a wait", "1s", "8784h", "10s")),
		into("retry_jitter", &rule.Reply.Jitter, parsed(r, rules.ParsePercent)),
		into("header_fields", &rule.Reply.Hides, r.hides),
		into("denial", &rule.Reply.Denial, r.denial),
	)
	r.require(n, path, "name", "a name for state and metrics")
	if !has(n, "permits") {
		r.require(n, path, "limits", `limits such as [5/m, 100/d], or permits`)
	}
	checked := rule
	if len(r.faults) > before { // those of single fields, which are reported once
		checked = rules.Rule{Name: cmp.Or(rule.Name, "none"), Permits: 1,
			Limits: slices.Repeat([]headgate.Limit{headgate.PerSecond(1)}, len(rule.Limits))}
	}
	r.validate(n, path, &checked)
	if len(r.faults) > before && len(rule.Key) == 0 {
		rule.Key = unknownKey // there may be one under a wrong name
	}
	rule.Limits = rules.Named(rule.Name, rule.Limits)
	r.nameRule(n, path, rule)
	r.config.Rules = append(r.config.Rules, rule)
	r.rules = append(r.rules, origin{r.at(n), path, n})
}

// validate reports what the reading of single fields cannot see.
func (r *reader) validate(n *yaml.Node, path string, rule *rules.Rule) {
	err := rule.Validate()
	if err == nil {
		return
	}
	for text := range strings.Lines(err.Error()) {
		text = strings.TrimPrefix(text, fmt.Sprintf("rule %q: ", rule.Name))
		r.faultf(n, "", "%s", join(path, strings.TrimSuffix(text, "\n")))
	}
}

// nameRule remembers the names of a rule and its limits, which must be unique in all files: state
// belongs to them.
func (r *reader) nameRule(n *yaml.Node, path string, rule rules.Rule) {
	if rule.Name == "" {
		return
	}
	path = join(path, "name")
	if first, twice := r.named[rule.Name]; twice {
		r.faultf(n, path, "%q is also the name of the rule at %s; want another", rule.Name, first)
		return
	}
	r.named[rule.Name] = r.at(n)
	names := []string{rule.Name} // also without limits
	for i := 1; i < len(rule.Limits); i++ {
		if l := rule.Limits[i]; l.Validate() == nil {
			names = append(names, l.Name())
		}
	}
	for _, name := range names {
		if first, twice := r.limits[name]; twice {
			r.faultf(n, path, "%q is also a limit of the rule at %s, whose limits are named "+
				"NAME, NAME.2 and so on; want another name", name, first)
		}
		r.limits[name] = r.at(n)
	}
}

func (r *reader) match(n *yaml.Node, path string) (m rules.Match) {
	r.mapping(n, path,
		into("method", &m.Methods, each(r, rules.ParseMethod)),
		field{"path", func(n *yaml.Node, path string) {
			const want = "one path; for several, a regular expression such as re:^/(a|b)$"
			if m.Path = r.textFor(n, path, want); m.Path == "" {
				return
			}
			if err := rules.CheckPath(m.Path); err != nil {
				r.faultf(n, path, "%v", err)
			}
		}},
		into("host", &m.Hosts, each(r, rules.ParseHost)),
		into("ip", &m.Clients, r.networks("")),
	)
	return m
}

// unknownKey is the key of a rule whose key has a fault.
var unknownKey = []rules.KeyPart{{}}

func (r *reader) key(n *yaml.Node, path string) (key []rules.KeyPart) {
	before := len(r.faults)
	r.texts(n, path, "text", func(text string, n *yaml.Node, path string) {
		part, err := rules.ParseKeyPart(text)
		if err != nil {
			r.faultf(n, path, "%v", err)
		}
		if r.noProxy && part.Source == "body" {
			r.faultf(n, path, "%s needs the body, which only the proxy sees; want --proxy ADDR=URL",
				part)
		}
		key = append(key, part)
	})
	if len(r.faults) > before {
		return unknownKey
	}
	return key
}

func (r *reader) limitTexts(n *yaml.Node, path string) (limits []headgate.Limit) {
	r.texts(n, path, "a limit such as 5/m", func(text string, n *yaml.Node, path string) {
		l, err := headgate.ParseLimit(text)
		switch {
		case err != nil:
			r.faultf(n, path, "%s", withoutComponent(err))
		case strings.Contains(text, "="):
			r.faultf(n, path, "%q has a name; want none: the name of the rule is used", text)
		}
		limits = append(limits, l)
	})
	return limits
}

// withoutComponent returns the text of err, which comes from the library, without its beginning.
func withoutComponent(err error) string { return strings.TrimPrefix(err.Error(), "headgate: ") }

func (r *reader) cost(n *yaml.Node, path string) rules.Cost {
	if n.Kind == yaml.MappingNode {
		return r.lateCost(n, path)
	}
	return parsed(r, rules.ParseCost)(numberAsText(n), path)
}

// numberAsText returns n, which is text if it was a whole number.
func numberAsText(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		return n
	}
	text := *n
	text.Tag = "!!str"
	return &text
}

func (r *reader) count(n *yaml.Node, path string) rules.Count {
	c := r.statuses(n, path)
	if r.noProxy && len(c.Statuses) > 0 {
		r.faultf(n, path, "%s needs the status of the response, which only the proxy sees; "+
			"want --proxy ADDR=URL, or count: denied", c)
	}
	return c
}

func (r *reader) statuses(n *yaml.Node, path string) (c rules.Count) {
	entries := *numberAsText(n)
	entries.Content = slices.Clone(n.Content)
	for i, entry := range entries.Content {
		entries.Content[i] = numberAsText(entry)
	}
	r.texts(&entries, path, "a status such as 401, or denied",
		func(text string, n *yaml.Node, path string) {
			one, err := rules.ParseCount(text)
			if err != nil {
				r.faultf(n, path, "%v", err)
			}
			c.Statuses = append(c.Statuses, one.Statuses...)
			c.Denied = c.Denied || one.Denied
		})
	return c
}

// headroom reads the header field of the class, and what the classes leave: any other field.
func (r *reader) headroom(n *yaml.Node, path string) (h rules.Headroom) {
	fields := []field{{"header", func(n *yaml.Node, path string) {
		h.Header = http.CanonicalHeaderKey(r.text(n, path))
	}}}
	for i := 0; i < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		name := n.Content[i].Value
		if name == "header" {
			continue
		}
		fields = append(fields, field{name, func(n *yaml.Node, path string) {
			if r.isText(n, path, "a percentage such as 50%") {
				percent := parsed(r, rules.ParsePercent)(n, path)
				h.Classes = append(h.Classes, rules.Class{Name: name, Percent: percent})
			}
		}})
	}
	r.mapping(n, path, fields...)
	r.require(n, path, "header", "the header field that holds the class, such as X-Class")
	return h
}

func (r *reader) override(n *yaml.Node, path string) {
	var o rules.Override
	r.mapping(n, path,
		into("rule", &o.Rule, r.text),
		into("key", &o.Key, r.text),
		into("limits", &o.Limits, r.limitTexts),
		into("ban", &o.Ban, r.boolean),
		into("until", &o.Until, parsed(r, parseUntil)),
		into("note", &o.Note, r.text),
	)
	r.require(n, path, "rule", "the name of a rule")
	r.require(n, path, "key", `the text of a key, such as "ip:192.0.2.*"`)
	if !o.Ban {
		r.require(n, path, "limits", "limits, or ban: true")
	} else if has(n, "limits") {
		r.faultf(n, path, "has limits and ban; want one of them")
	}
	o.Limits = rules.Named(o.Rule, o.Limits)
	r.config.Overrides = append(r.config.Overrides, o)
	r.overrides = append(r.overrides, origin{r.at(n), path, n})
}

func parseUntil(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q is not a time; want one such as 2027-01-01T00:00:00Z", text)
	}
	return t, nil
}

// has reports whether mapping n has a field.
func has(n *yaml.Node, name string) bool {
	for i := 0; i < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}
