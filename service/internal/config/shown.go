package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// This file shows the text of a file without its secrets. Everything is hidden but the fields that
// are known to hold none, so that a field with a misspelled name is hidden, too. Values are replaced
// at the positions of their YAML nodes. The result is parsed again: unless it is the same file with
// only these values replaced, nothing is shown.

// Hidden stands for a value that is not shown.
const Hidden = "(hidden)"

// Text is a file as operators may see it.
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

// Shown returns the text of a file without its secrets.
func Shown(text []byte) string {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	documents, err := parseAll(text)
	if err != nil || !utf8.Valid(text) {
		return notShown
	}
	h := hider{leaves: map[*yaml.Node]bool{}, seen: map[*yaml.Node]bool{}}
	for _, d := range documents {
		h.document(d)
	}
	if h.failed {
		return notShown
	}
	shown := h.replace(text, documents)
	again, err := parseAll(shown)
	if err != nil || len(again) != len(documents) {
		return notShown
	}
	for i := range documents {
		if !h.same(documents[i], again[i], 0) {
			return notShown
		}
	}
	return h.mask(string(shown))
}

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
	"when_store_fails", "trust", "listen", "rules", "overrides", "domains", "domain", "descriptors",
}

// secret are the fields that are hidden at any place.
var secret = []string{"store", "tls", "api", "tokens"}

// known are the names of fields that may hold secrets, and those below them.
var known = []string{"store", "tls", "api", "cert", "key", "client_ca", "tokens", "<<"}

// hider finds the scalars to hide.
type hider struct {
	leaves  map[*yaml.Node]bool
	seen    map[*yaml.Node]bool
	secrets []string
	failed  bool
}

func (h *hider) document(n *yaml.Node) {
	if len(n.Content) != 1 {
		return
	}
	root := n.Content[0]
	if root.Kind != yaml.MappingNode {
		h.hide(root)
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			h.failed = true
		case key.Value == "api" && value.Kind == yaml.MappingNode:
			h.api(value)
		case slices.Contains(open, key.Value):
			h.misplaced(value)
		default:
			h.hide(value)
		}
	}
}

// misplaced hides secrets that are in another field by mistake, as by a wrong indentation.
func (h *hider) misplaced(n *yaml.Node) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && slices.Contains(secret, n.Content[i-1].Value) {
			h.hide(c)
		} else {
			h.misplaced(c)
		}
	}
}

func (h *hider) api(n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		isFlag := key.Value == "allow_inline_limits" && value.Tag == "!!bool"
		if key.Kind != yaml.ScalarNode {
			h.failed = true
		} else if !isFlag {
			h.hide(value)
		}
	}
}

var variable = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// hide hides the scalars of n. Names of fields that are not known may be secrets: then it fails.
func (h *hider) hide(n *yaml.Node) {
	if h.seen[n] {
		return
	}
	h.seen[n] = true
	switch n.Kind {
	case yaml.AliasNode:
		h.hide(n.Alias)
	case yaml.ScalarNode:
		if n.Tag != "!!null" && !variable.MatchString(n.Value) {
			h.leaves[n] = true
			h.secrets = append(h.secrets, n.Value)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !slices.Contains(known, n.Content[i].Value) {
				h.failed = true
				return
			}
			h.hide(n.Content[i+1])
		}
	default:
		for _, c := range n.Content {
			h.hide(c)
		}
	}
}

// replace returns text without the scalars to hide. Each reaches to the next node.
func (h *hider) replace(text []byte, documents []*yaml.Node) []byte {
	starts := lineStarts(text)
	var all []located
	for _, d := range documents {
		all = locate(all, text, starts, d, false)
	}
	slices.SortStableFunc(all, func(a, b located) int { return a.at - b.at })
	var shown []byte
	done := 0
	for i, l := range all {
		if !h.leaves[l.node] || l.at < done {
			continue
		}
		end := len(text)
		for _, next := range all[i+1:] {
			if next.at > l.at {
				end = next.at
				break
			}
		}
		shown = append(shown, text[done:l.at]...)
		if l.node.Anchor != "" {
			shown = append(shown, "&"+l.node.Anchor+" "...)
		}
		shown = append(shown, Hidden...)
		shown = append(shown, tail(text[l.at:end], l.flow)...)
		done = end
	}
	return append(shown, text[done:]...)
}

// located is a node at a place in the text.
type located struct {
	node *yaml.Node
	at   int
	flow bool // inside of [] or {}
}

func locate(all []located, text []byte, lines []int, n *yaml.Node, flow bool) []located {
	if n.Kind != yaml.DocumentNode {
		at := len(text)
		if n.Line >= 1 && n.Line <= len(lines) {
			at = lines[n.Line-1]
			for column := 1; column < n.Column && at < len(text); column++ {
				_, size := utf8.DecodeRune(text[at:])
				at += size
			}
		}
		all = append(all, located{n, at, flow})
	}
	flow = flow || n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0
	for _, c := range n.Content {
		all = locate(all, text, lines, c, flow)
	}
	return all
}

// lineBreak matches what ends a line in YAML 1.1.
var lineBreak = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]")

func lineStarts(text []byte) []int {
	starts := []int{0}
	for _, at := range lineBreak.FindAllIndex(text, -1) {
		starts = append(starts, at[1])
	}
	return starts
}

// tail returns what follows the value at the beginning of text: what closes and separates, or the
// ends of lines, and the indentation of what comes next. Comments there may hold secrets.
func tail(text []byte, flow bool) string {
	if flow {
		rest := comment.ReplaceAll(text[len(flowScalar.Find(text)):], nil)
		return string(bytes.Map(func(c rune) rune {
			if strings.ContainsRune(" \t\r\n,]}:-?", c) {
				return c
			}
			return -1
		}, rest))
	}
	breaks := lineBreak.FindAllIndex(text, -1)
	if len(breaks) == 0 {
		return ""
	}
	last := text[breaks[len(breaks)-1][1]:]
	return strings.Repeat("\n", len(breaks)) + string(last[:len(last)-len(bytes.TrimLeft(last, " -?"))])
}

var (
	// flowScalar matches a scalar between [] or {}, and of a plain one the first line.
	flowScalar = regexp.MustCompile(`^("(?s:[^"\\]|\\.)*"|'([^']|'')*'|[^"',\]}\r\n][^,\]}\r\n]*)`)
	comment    = regexp.MustCompile(`#[^\r\n]*`)
)

// same reports whether b is a, with hidden values.
func (h *hider) same(a, b *yaml.Node, depth int) bool {
	switch {
	case h.leaves[a]:
		return b.Kind == yaml.ScalarNode && b.Value == Hidden && a.Anchor == b.Anchor
	case a.Kind != b.Kind || a.Value != b.Value || a.Tag != b.Tag || a.Anchor != b.Anchor ||
		len(a.Content) != len(b.Content) || depth > 1000:
		return false
	}
	for i := range a.Content {
		if !h.same(a.Content[i], b.Content[i], depth+1) {
			return false
		}
	}
	return true
}

var password = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)\S*@`)

// minSecret is the length from which on a secret is hidden wherever it is, as in comments.
const minSecret = 8

// mask hides secrets in the rest of the text, such as comments.
func (h *hider) mask(text string) string {
	text = WithoutPasswords(text)
	for _, s := range h.secrets {
		if len(s) >= minSecret {
			text = strings.ReplaceAll(text, s, Hidden)
		}
	}
	return text
}

// WithoutPasswords returns text without the users and passwords of URLs.
func WithoutPasswords(text string) string {
	return password.ReplaceAllString(text, "${1}"+Hidden+"@")
}
