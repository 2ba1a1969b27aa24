package config

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// This file shows the text of a file without its secrets. Whole fields are hidden, from the line of
// their names to the line of the next field: all but those that are known to hold no secrets, so
// that a field with a misspelled name is hidden, too.

// Hidden stands for a value that is not shown.
const Hidden = "(hidden)"

// Text is a file without its secrets.
type Text struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Texts returns the files at paths and in o.Runtime as they are now, without secrets.
func Texts(paths []string, o Options) ([]Text, error) {
	files, err := readAll(paths, o)
	if err != nil {
		return nil, err
	}
	texts := make([]Text, len(files))
	for i, f := range files {
		texts[i] = Text{f.name, Shown(f.text)}
	}
	return texts, nil
}

// ExampleText is the text of [Example].
func ExampleText() Text { return Text{"built-in example", Shown(example)} }

const notShown = "# This file is not shown: its secrets cannot be found, because it is not valid " +
	"YAML or has an unusual form.\n"

// Shown returns the text of a file without its secrets. It has the same lines.
func Shown(text []byte) string {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	documents, err := parseAll(text)
	if err != nil || !utf8.Valid(text) || len(documents) > 1 || otherBreak.Match(text) {
		return notShown
	}
	h := hider{lines: strings.Split(string(text), "\n")}
	for _, d := range documents {
		h.document(d)
	}
	if h.failed {
		return notShown
	}
	return h.mask(strings.Join(h.lines, "\n"))
}

// otherBreak matches what also ends a line in YAML 1.1.
var otherBreak = regexp.MustCompile("[\r\u0085\u2028\u2029]")

func parseAll(text []byte) (documents []*yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		n := new(yaml.Node)
		if err := decoder.Decode(n); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, err
		}
		documents = append(documents, n)
	}
}

// open are the fields of a file that hold no secrets, with those of a file in Envoy's dialect.
var open = []string{
	"when_store_fails", "instances", "trust", "listen", "rules", "overrides", "domains", "domain",
	"descriptors",
}

// secret are the fields that are hidden at any place: in another field they are by mistake, as by a
// wrong indentation.
var secret = []string{"store", "key_secret", "tls", "api", "tokens"}

// hider hides lines.
type hider struct {
	lines   []string
	secrets []string
	failed  bool
}

func (h *hider) document(d *yaml.Node) {
	root := d.Content[0]
	if root.Kind != yaml.MappingNode {
		h.failed = root.Tag != "!!null" // a file of comments has nothing to hide
		return
	}
	h.fields(root, len(h.lines)+1, func(name string) bool { return !slices.Contains(open, name) })
}

// fields hides fields of a mapping that ends before a line.
func (h *hider) fields(n *yaml.Node, end int, isSecret func(name string) bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value, next := n.Content[i], n.Content[i+1], nextLine(n, i+2, end)
		switch {
		case name.Kind != yaml.ScalarNode || strings.Contains(name.Value, "\n"):
			h.failed = true
		case isSecret(name.Value):
			h.hide(name, value, next)
		case name.Value == "cost" && hasOnlyNumbers(value):
		default:
			h.below(value, next)
		}
	}
}

// hasOnlyNumbers reports whether a cost is tokens that are numbers, and no bearer tokens.
func hasOnlyNumbers(cost *yaml.Node) bool {
	if cost.Kind != yaml.MappingNode || len(cost.Content) != 2 ||
		cost.Content[0].Value != "tokens" || cost.Content[1].Kind != yaml.MappingNode {
		return false
	}
	tokens := cost.Content[1].Content
	for i := 0; i+1 < len(tokens); i += 2 {
		switch tokens[i].Value {
		case "estimate", "input", "output", "cached":
		default:
			return false
		}
		if tokens[i+1].Tag != "!!int" {
			return false
		}
	}
	return true
}

// below hides what is secret at any place below n, which ends before a line.
func (h *hider) below(n *yaml.Node, end int) {
	switch n.Kind {
	case yaml.MappingNode:
		h.fields(n, end, func(name string) bool { return slices.Contains(secret, name) })
	case yaml.SequenceNode:
		for i, c := range n.Content {
			h.below(c, nextLine(n, i+1, end))
		}
	}
}

// nextLine returns the line of the child i of n, which ends before a line. Between [] or {}, the
// child before may end on the same line: the rest of n is then treated as one part.
func nextLine(n *yaml.Node, i, end int) int {
	if i >= len(n.Content) || n.Style&yaml.FlowStyle != 0 {
		return end
	}
	return n.Content[i].Line
}

var variable = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// hide hides a field up to a line. A value that is one variable is shown.
func (h *hider) hide(name, value *yaml.Node, end int) {
	shown := Hidden
	if value.Kind == yaml.ScalarNode && variable.MatchString(value.Value) {
		shown = value.Value
	} else {
		h.remember(value)
	}
	first := &h.lines[name.Line-1]
	indent := len(*first) - len(strings.TrimLeft(*first, " -"))
	*first = (*first)[:indent] + name.Value + ": " + shown
	for i := name.Line; i < end-1; i++ {
		h.lines[i] = ""
	}
}

// remember notes the values of n. What stands elsewhere, behind an alias, is not hidden there.
func (h *hider) remember(n *yaml.Node) {
	switch n.Kind {
	case yaml.AliasNode:
		h.failed = true
	case yaml.ScalarNode:
		h.secrets = append(h.secrets, strings.Split(n.Value, "\n")...)
	}
	for _, c := range n.Content {
		h.remember(c)
	}
}

var password = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)\S*@`)

// minSecret is the length from which on a secret is hidden wherever it is, as in comments.
const minSecret = 8

// mask hides secrets in the rest of the text, such as comments.
func (h *hider) mask(text string) string { return masked(text, h.secrets) }

// masked hides secrets in text. All are looked for at once: a field with a misspelled name may have
// thousands of values.
func masked(text string, secrets []string) string {
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= minSecret {
			pairs = append(pairs, s, Hidden)
		}
	}
	return strings.NewReplacer(pairs...).Replace(WithoutPasswords(text))
}

// Masked returns a text, such as a note of an override, without the values of c that [Shown] hides
// in the files.
func (c *Config) Masked(text string) string {
	secrets := []string{c.Store, c.KeySecret, c.TLS.Cert, c.TLS.Key, c.TLS.ClientCA}
	return masked(text, append(secrets, c.API.Tokens...))
}

// WithoutPasswords returns text without the users and passwords of URLs.
func WithoutPasswords(text string) string {
	return password.ReplaceAllString(text, "${1}"+Hidden+"@")
}
