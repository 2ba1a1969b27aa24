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

// files returns the texts of a file of testdata, with an empty line between them: wrong.txt has
// files that neither the schema nor the parser accepts, and right.txt those that both accept.
func files(t testing.TB, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(content), "\n\n")
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
	for _, text := range files(t, "wrong.txt") {
		judge(text, false)
	}
	for _, text := range append(files(t, "right.txt"), whole, string(example)) {
		judge(text, true)
	}
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
		"file": "x: 1", "denial": "denial: {x: 1}", "listen": "listen: {x: 1}", "tls": "tls: {x: 1}", "api": "api: {x: 1}",
		"rule": "rules: [{x: 1}]", "match": "rules: [{match: {x: 1}}]",
		"override": "overrides: [{x: 1}]",
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
			accepted := !strings.Contains(said, "has no effect") &&
				!strings.Contains(said, "unknown key")
			if have != accepted {
				t.Errorf("%s in %s: in the schema %v; the parser says %s", field, of, have, said)
			}
		}
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestExamplesOfTheDocs loads the YAML of docs/serve/config.md, tokens.md and tenants.md, and checks it by
// the schema.
func TestExamplesOfTheDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "serve", "config.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	blocks := yamlBlock.FindAllSubmatch(text, -1)
	if len(blocks) < 4 {
		t.Fatalf("%d examples", len(blocks))
	}
	checkErrorsOfTheDocs(t, text, string(blocks[0][1]))
	for _, page := range []string{"tokens.md", "tenants.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", page)) //nolint:gosec,nolintlint // a page
		if err != nil {
			t.Fatal(err)
		}
		more := yamlBlock.FindAllSubmatch(text, -1)
		if blocks = append(blocks, more...); len(more) == 0 {
			t.Fatalf("%s has no examples", page)
		}
	}
	env := func(string) (string, bool) { return "value-of-a-variable", true }
	for _, block := range blocks {
		c, err := Parse("config.md", block[1], Options{Env: env, Now: now})
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

// The rules of docs/waiting.md are valid.
func TestRulesOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/waiting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("```yaml\n"))
	text, _, found := bytes.Cut(text, []byte("```"))
	c, err := Parse("rules.yaml", text, Options{})
	if err != nil || !found {
		t.Fatal(err)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil || schema(t).Validate(plain(n.Content[0])) != nil {
		t.Errorf("%v, or it is not valid by the schema", err)
	}
	const want = "rule model: 10/s burst 1 for each header:X-Api-Key of /v1/*, " +
		"500 wait for at most 2s\n"
	if got := c.Report(); !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// checkErrorsOfTheDocs makes two mistakes in the first example, and compares the errors.
func checkErrorsOfTheDocs(t *testing.T, page []byte, example string) {
	t.Helper()
	text := strings.NewReplacer("key: ip", "keys: ip", "[5/m", "[5/x").Replace(example)
	_, err := Parse("rules.yaml", []byte(text), Options{})
	want := regexp.MustCompile("(?s)```text\n(rules.yaml:.*?)\n```").FindSubmatch(page)
	if want == nil || err == nil || err.Error() != string(want[1]) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
