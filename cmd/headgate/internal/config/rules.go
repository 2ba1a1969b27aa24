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
		field{"name", func(n *yaml.Node, path string) { rule.Name, _ = r.text(n, path) }},
		field{"match", func(n *yaml.Node, path string) { rule.Match = r.match(n, path) }},
		field{"key", func(n *yaml.Node, path string) { rule.Key = r.key(n, path) }},
		field{"any_key", func(n *yaml.Node, path string) { rule.AnyKey, _ = r.boolean(n, path) }},
		field{"limits", func(n *yaml.Node, path string) { rule.Limits = r.limitTexts(n, path) }},
		field{"permits", func(n *yaml.Node, path string) {
			rule.Permits, _ = r.whole(n, path, 1, math.MaxUint16)
		}},
		field{"mode", func(n *yaml.Node, path string) {
			rule.Mode = parsed(r, n, path, rules.ParseMode)
		}},
		field{"cost", func(n *yaml.Node, path string) { rule.Cost = r.cost(n, path) }},
		field{"count", func(n *yaml.Node, path string) { rule.Count = r.count(n, path) }},
		field{"headroom", func(n *yaml.Node, path string) {
			rule.Headroom = r.headroom(n, path)
		}},
		field{"label_keys", func(n *yaml.Node, path string) {
			rule.LabelKeys, _ = r.boolean(n, path)
		}},
		field{"max_wait", func(n *yaml.Node, path string) {
			rule.MaxWait = r.duration(n, path, rules.ParseMaxWait)
		}},
		field{"max_waiting", func(n *yaml.Node, path string) {
			most, _ := r.whole(n, path, 1, rules.MaxMaxWaiting)
			rule.MaxWaiting = int(most)
		}},
		field{"retry_within", func(n *yaml.Node, path string) {
			rule.RetryWithin = r.duration(n, path, rules.ParseRetryWithin)
		}},
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
	r.rules = append(r.rules, origin{r.at(n), path})
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
		field{"method", func(n *yaml.Node, path string) {
			r.texts(n, path, "text", func(text string, n *yaml.Node, path string) {
				method, err := rules.ParseMethod(text)
				if err != nil {
					r.faultf(n, path, "%v", err)
					return
				}
				one := r.matching(n, path, []string{method}, nil, "")
				m.Methods = append(m.Methods, one.Methods...)
			})
		}},
		field{"path", func(n *yaml.Node, path string) {
			const want = "one path; for several, a regular expression such as re:^/(a|b)$"
			if text, ok := r.textFor(n, path, want); ok {
				m.Path = r.matching(n, path, nil, nil, text).Path
			}
		}},
		field{"host", func(n *yaml.Node, path string) {
			r.texts(n, path, "text", func(text string, n *yaml.Node, path string) {
				one := r.matching(n, path, nil, []string{text}, "")
				m.Hosts = append(m.Hosts, one.Hosts...)
			})
		}},
	)
	return m
}

func (r *reader) matching(
	n *yaml.Node, path string, methods, hosts []string, p string,
) rules.Match {
	m, err := rules.ParseMatch(methods, hosts, p)
	if err != nil {
		r.faultf(n, path, "%v", err)
	}
	return m
}

// parsed reads a text by parse.
func parsed[T any](r *reader, n *yaml.Node, path string, parse func(string) (T, error)) T {
	var none T
	text, ok := r.text(n, path)
	if !ok {
		return none
	}
	value, err := parse(text)
	if err != nil {
		r.faultf(n, path, "%v", err)
		return none
	}
	return value
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
	return parsed(r, numberAsText(n), path, rules.ParseCost)
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

func (r *reader) count(n *yaml.Node, path string) (c rules.Count) {
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
	if r.noProxy && len(c.Statuses) > 0 {
		r.faultf(n, path, "%s needs the status of the response, which only the proxy sees; "+
			"want --proxy ADDR=URL, or count: denied", c)
	}
	return c
}

// headroom reads the header field of the class, and what the classes leave: any other field.
func (r *reader) headroom(n *yaml.Node, path string) (h rules.Headroom) {
	fields := []field{{"header", func(n *yaml.Node, path string) {
		text, _ := r.text(n, path)
		h.Header = http.CanonicalHeaderKey(text)
	}}}
	for i := 0; i < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		name := n.Content[i].Value
		if name == "header" {
			continue
		}
		fields = append(fields, field{name, func(n *yaml.Node, path string) {
			if r.isText(n, path, "a percentage such as 50%") {
				percent := parsed(r, n, path, rules.ParsePercent)
				h.Classes = append(h.Classes, rules.Class{Name: name, Percent: percent})
			}
		}})
	}
	r.mapping(n, path, fields...)
	r.require(n, path, "header", "the header field that holds the class, such as X-Class")
	return h
}

func (r *reader) duration(
	n *yaml.Node, path string, parse func(string) (time.Duration, error),
) time.Duration {
	if !r.isText(n, path, "a time such as 2s") {
		return 0
	}
	return parsed(r, n, path, parse)
}

func (r *reader) override(n *yaml.Node, path string) {
	var o rules.Override
	r.mapping(n, path,
		field{"rule", func(n *yaml.Node, path string) { o.Rule, _ = r.text(n, path) }},
		field{"key", func(n *yaml.Node, path string) { o.Key, _ = r.text(n, path) }},
		field{"limits", func(n *yaml.Node, path string) { o.Limits = r.limitTexts(n, path) }},
		field{"ban", func(n *yaml.Node, path string) { o.Ban, _ = r.boolean(n, path) }},
		field{"until", func(n *yaml.Node, path string) { o.Until = r.until(n, path) }},
		field{"note", func(n *yaml.Node, path string) { o.Note, _ = r.text(n, path) }},
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
	r.overrides = append(r.overrides, origin{r.at(n), path})
}

func (r *reader) until(n *yaml.Node, path string) time.Time {
	return parsed(r, n, path, func(text string) (time.Time, error) {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return t, fmt.Errorf("%q is not a time; want one such as 2027-01-01T00:00:00Z", text)
		}
		return t, nil
	})
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
