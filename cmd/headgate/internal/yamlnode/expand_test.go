package yamlnode

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func expander(ownFirst bool) *Expander {
	return &Expander{
		Most: 1000, OwnFirst: ownFirst, TooMany: "too many", NoMerge: "no merge",
		InItself: "%s in itself",
	}
}

// flat returns the tree of text, or its fault.
func flat(t *testing.T, e *Expander, text string) string {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	n, err := e.Expand("f", doc.Content[0])
	if err != nil {
		return err.Error()
	}
	return show(n)
}

func show(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	all := make([]string, len(n.Content))
	for i, child := range n.Content {
		all[i] = show(child)
	}
	return "(" + strings.Join(all, " ") + ")"
}

func TestExpand(t *testing.T) {
	for _, c := range []struct{ text, ownFirst, inPlace string }{
		{"[&a {k: 1}, *a]", "((k 1) (k 1))", ""},
		{"{&a k: 1, v: *a}", "(k 1 v k)", ""},
		{"{<<: {a: 1, b: 2}, a: 3}", "(b 2 a 3)", "(a 1 b 2 a 3)"},
		{"{a: 3, <<: {a: 1, b: 2}}", "(a 3 b 2)", "(a 3 a 1 b 2)"},
		{"{<<: [{a: 1}, {a: 2, b: 3}]}", "(a 1 b 3)", ""},
		{"{<<: {a: 1}, <<: {a: 2}}", "(a 1)", "(a 1 a 2)"},
		{"{a: 1, a: 2}", "(a 1 a 2)", ""},
		{"{<<: {<<: {a: 1}, b: 2}}", "(a 1 b 2)", ""},
		{"a:\n <<: 1", "f:2: no merge", ""},
		{"a: &a\n- b\n- *a", "f:3: a in itself", ""},
		{"- &a [" + strings.Repeat("x,", 100) + "]\n- [" + strings.Repeat("*a,", 10) + "]",
			"f:1: too many", ""},
	} {
		if c.inPlace == "" {
			c.inPlace = c.ownFirst
		}
		if got := flat(t, expander(true), c.text); got != c.ownFirst {
			t.Errorf("%.30s, own first: %s, want %s", c.text, got, c.ownFirst)
		}
		if got := flat(t, expander(false), c.text); got != c.inPlace {
			t.Errorf("%.30s, in place: %s, want %s", c.text, got, c.inPlace)
		}
	}
}
