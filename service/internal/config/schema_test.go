package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain returns n as JSON has it.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, plain(item))
		}
		return list
	case yaml.DocumentNode, yaml.AliasNode:
		return nil
	}
	if n.Tag == "!!timestamp" {
		return n.Value
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return n.Value
	}
	if _, isInt := v.(int); isInt {
		return json.Number(n.Value)
	}
	return v
}

// wrong are files that neither the schema nor the parser accepts.
var wrong = []string{
	"[]", "rule: []", "rules: {}", "store: 7", "store: ''", "when_store_fails: deny", "trust: []",
	"trust: here", "trust: [10]", "listen: ':80'", "listen: {https: ':443'}", "listen: {http: 8080}",
	"listen: {http: localhost}", "tls: {ca: x}", "tls: {cert: 1}", "api: {tokens: t}",
	"api: {tokens: [a b]}", "api: {tokens: [12]}", "api: {allow_inline_limits: 'yes'}", "api: {token: t}",
	"rules: [{limits: 5/m}]", "rules: [{name: a}]", "rules: [{name: 5, limits: 5/m}]",
	"rules: [{name: a b, limits: 5/m}]", "rules: [{name: nginx, limits: 5/m}]",
	"rules: [{name: a, limits: []}]", "rules: [{name: a, limits: 5}]", "rules: [{name: a, limits: [5/m, b=5/m]}]",
	"rules: [{name: a, limits: 5 per minute}]", "rules: [{name: a, limits: 5/m bucket}]",
	"rules: [{name: a, limits: {count: 5}}]", "rules: [{name: a, limit: 5/m}]",
	"rules: [{name: a, permits: 0}]", "rules: [{name: a, permits: 1.5}]", "rules: [{name: a, permits: 65536}]",
	"rules: [{name: a, limits: 5/m, mode: on}]", "rules: [{name: a, limits: 5/m, mode: true}]",
	"rules: [{name: a, limits: 5/m, cost: 0}]", "rules: [{name: a, limits: 5/m, cost: 1.5}]",
	"rules: [{name: a, limits: 5/m, cost: 'body:x'}]", "rules: [{name: a, limits: 5/m, cost: 'header:'}]",
	"rules: [{name: a, limits: 5/m, key: user}]", "rules: [{name: a, limits: 5/m, key: ip/x}]",
	"rules: [{name: a, limits: 5/m, key: []}]", "rules: [{name: a, limits: 5/m, key: 'const:${X}'}]",
	"rules: [{name: a, limits: 5/m, label_keys: 1}]", "rules: [{name: a, limits: 5/m, match: /x}]",
	"rules: [{name: a, limits: 5/m, match: {path: x}}]", "rules: [{name: a, limits: 5/m, match: {path: [/x]}}]",
	"rules: [{name: a, limits: 5/m, match: {host: a/b}}]", "rules: [{name: a, limits: 5/m, match: {hosts: a}}]",
	"rules: [{name: a, limits: 5/m, match: {method: []}}]",
	"rules: [{name: a, limits: 5/m}]\noverrides: [{rule: a, key: all}]",
	"rules: [{name: a, limits: 5/m}]\noverrides: [{rule: a, key: all, ban: false}]",
	"rules: [{name: a, limits: 5/m}]\noverrides: [{rule: a, key: all, ban: true, limits: 5/m}]",
	"rules: [{name: a, limits: 5/m}]\noverrides: [{rule: a, ban: true}]",
	"rules: [{name: a, limits: 5/m}]\noverrides: [{key: all, ban: true}]",
	"rules: [{name: a, limits: 5/m}]\noverrides: [{rule: a, key: all, ban: true, until: tomorrow}]",
	"rules: [{name: a, limits: 5/m}]\noverrides: [{rule: a, key: all, ban: true, by: me}]",
	"domain: ''", "descriptors: []", "domain: d\ndescriptors: [{value: v}]", "domain: d\ndescriptors: {key: k}",
	"domain: d\nrules: []", "domain: d\ndescriptors: [{key: k, ratelimit: {}}]",
	"domain: d\ndescriptors: [{key: k, rate_limit: {unit: foo}}]",
	"domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: -1}}]",
	"domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, unit_multiplier: 0}}]",
	"domain: d\ndescriptors: [{key: k, shadow_mode: 1}]", "domain: d\ndescriptors: [{key: k, metadata: [1]}]",
	"domain: d\ndescriptors: [{key: k, value: 0.5}]", "domains: [{descriptors: []}]", "domains: [d]",
}

// right are files that both accept.
var right = []string{
	"rules: []", "api: {tokens: []}", "trust: '::1'", "store: memory", "store: redis://h:6379/0",
	"rules: [{name: a, permits: 5}]", "rules: [{name: a, limits: 1.5/s burst 3 gcra}]",
	"rules: [{name: a, limits: [1/1h30m fixed-window, 5/15m sliding-log], cost: '5', mode: off}]",
	"rules: [{name: a, limits: 5/m, key: [ip/48, 'cookie:s', path, host, method, 'const:x y']}]",
	"rules: [{name: a, limits: 5/m, match: {method: [GET, PUT], path: 're:^/a$', host: '*.example.com'}}]",
	"rules: [{name: a, limits: 5/m}]\noverrides: [{rule: a, key: all, limits: 9/m, ban: false, until: '2027-01-01T00:00:00+01:00'}]",
	"domain: d", "domain: 5\ndescriptors:", "domain: d\ndescriptors: [{key: k, value: 7, rate_limit: {unit: Day, requests_per_unit: 0}}]",
	"domain: d\ndescriptors: [{key: k, rate_limit: {unlimited: true, name: a, replaces: [{name: b}]}, metadata: {a: [1.5]}}]",
	"domain: d\ndescriptors: [{key: k, limit: 5/15m}, {key: l, rate_limit: {limit: 5/15m}, quota_mode: true}]",
	"domain: d\ndescriptors: [{key: k, value: 'a*', share_threshold: true, detailed_metric: true, value_to_metric: true, descriptors: [{key: l}]}]",
	whole,
}

// TestSchemaAgrees holds the schema and the parser to one judgement.
func TestSchemaAgrees(t *testing.T) {
	s := schema(t)
	judge := func(text string, want bool) {
		t.Helper()
		_, parsed := Parse("f", []byte(text), Options{Env: lookup})
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		valid := s.Validate(plain(n.Content[0]))
		if (parsed == nil) != want {
			t.Errorf("%s: the parser says %v", text, parsed)
		}
		if (valid == nil) != want {
			t.Errorf("%s: the schema says %v", text, valid)
		}
	}
	for _, text := range wrong {
		judge(text, false)
	}
	for _, text := range right {
		judge(text, true)
	}
	judge(string(example), true)
}

var wanted = regexp.MustCompile(`unknown field; want ([a-z_, ]+)`)

// TestSchemaHasEveryField compares the properties of the schema with what the parser says it wants
// instead of an unknown field.
func TestSchemaHasEveryField(t *testing.T) {
	var s struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &s); err != nil {
		t.Fatal(err)
	}
	for of, text := range map[string]string{
		"file": "x: 1", "listen": "listen: {x: 1}", "tls": "tls: {x: 1}", "api": "api: {x: 1}",
		"rule": "rules: [{x: 1}]", "match": "rules: [{match: {x: 1}}]", "override": "overrides: [{x: 1}]",
	} {
		_, err := Parse("f", []byte(text), Options{})
		m := wanted.FindStringSubmatch(fmt.Sprint(err))
		if m == nil {
			t.Errorf("%s: %v", of, err)
			continue
		}
		var have []string
		for name := range s.Defs[of].Properties {
			have = append(have, name)
		}
		want := strings.Split(m[1], ", ")
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s: the schema has %v; the parser %v", of, have, want)
		}
	}
}

// TestSchemaOfDomains holds the schema to the dialect: each field is accepted where the schema has
// it, without a warning that it has no effect.
func TestSchemaOfDomains(t *testing.T) {
	var s struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &s); err != nil {
		t.Fatal(err)
	}
	fields := []string{
		"domain", "descriptors", "key", "value", "rate_limit", "limit", "shadow_mode", "quota_mode",
		"detailed_metric", "value_to_metric", "share_threshold", "metadata", "unit",
		"unit_multiplier", "requests_per_unit", "unlimited", "name", "replaces",
	}
	for of, text := range map[string]string{
		"domain":     "domain: d\n%s:",
		"descriptor": "domain: d\ndescriptors:\n  - key: k\n    %s:",
		"rateLimit":  "domain: d\ndescriptors:\n  - key: k\n    rate_limit:\n      unit: day\n      %s:",
	} {
		for _, field := range fields {
			c, err := Parse("f", fmt.Appendf(nil, text, field), Options{})
			said := fmt.Sprint(err)
			if c != nil {
				said = strings.Join(c.Warnings, "\n")
			}
			_, have := s.Defs[of].Properties[field]
			accepted := !strings.Contains(said, "has no effect") && !strings.Contains(said, "unknown key")
			if have != accepted {
				t.Errorf("%s in %s: in the schema %v; the parser says %s", field, of, have, said)
			}
		}
	}
}

// TestExamplesOfTheDocs loads the YAML of docs/serve/config.md, and checks it by the schema.
func TestExamplesOfTheDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "serve", "config.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) < 4 {
		t.Fatalf("%d examples", len(blocks))
	}
	env := func(string) (string, bool) { return "value", true }
	for _, block := range blocks {
		c, err := Parse("config.md", block[1], Options{Env: env})
		if err != nil {
			t.Errorf("%s\n%v", block[1], err)
			continue
		}
		if len(c.Warnings) > 0 {
			t.Errorf("%s\nwarnings %q", block[1], c.Warnings)
		}
		var n yaml.Node
		if err := yaml.Unmarshal(block[1], &n); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(plain(n.Content[0])); err != nil {
			t.Errorf("%s\n%v", block[1], err)
		}
	}
}
