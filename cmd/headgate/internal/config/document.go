package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds what a file may hold after its aliases were replaced. A file of a few lines can
// otherwise stand for billions of nodes.
const maxNodes = 1_000_000

var (
	yamlLine = regexp.MustCompile(`line (\d+): `)
	anchor   = regexp.MustCompile(`unknown anchor '(.*)' referenced`)

	indentedByTab = regexp.MustCompile(`^ *\t`)
	unquoted      = regexp.MustCompile(`mapping values are not allowed|cannot start any token|` +
		`unknown anchor|did not find expected (alphabetic|key)`)

	// The library counts the lines of these errors from 0, and those of all others from 1.
	misplaced = regexp.MustCompile(`did not find expected (<|'|key|node)|` +
		`found (undefined tag|duplicate %|incompatible)`)
)

// document parses the first YAML document of f. It returns nil after a fault. A second document is
// a fault, except in a file of envoyproxy/ratelimit, which ignores it.
func (l *loader) document(f file) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(f.text))
	var n, second yaml.Node
	if err := decoder.Decode(&n); errors.Is(err, io.EOF) {
		l.fault(place{f.name, 1}, "", "the file is empty; want rules, domains or another field")
		return nil
	} else if err != nil {
		l.syntax(f, err)
		return nil
	}
	err := decoder.Decode(&second)
	switch {
	case errors.Is(err, io.EOF):
	case isDomain(n.Content[0]):
		l.warnAt(place{f.name, max(second.Line, n.Line)}, "", "has a second document, which is ignored")
	case err != nil:
		l.syntax(f, err)
		return nil
	default:
		l.fault(place{f.name, second.Line}, "", "has a second document; want one document in each file")
		return nil
	}
	return n.Content[0]
}

// expanded returns root without aliases and merge keys, or nil after a fault.
func (l *loader) expanded(f file, root *yaml.Node) *yaml.Node {
	e := expander{file: f.name, loader: l, open: map[*yaml.Node]bool{}}
	root = e.expand(root)
	if e.failed {
		return nil
	}
	return root
}

// syntax reports an error of the YAML parser, in the words of envoyproxy/ratelimit.
func (l *loader) syntax(f file, err error) {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	line := lineWithout(f.text, text)
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = strings.Replace(text, m[0], "", 1)
		line, _ = strconv.Atoi(m[1])
		if misplaced.MatchString(text) {
			line++
		}
	}
	l.fault(place{f.name, line}, "",
		"error loading config file: "+text+"; want "+wantedInstead(f, line, text))
}

// wantedInstead says what to write instead of the line that has an error of the YAML parser.
func wantedInstead(f file, line int, message string) string {
	lines := bytes.Split(f.text, []byte("\n"))
	switch {
	case line <= len(lines) && indentedByTab.Match(lines[line-1]):
		return "spaces instead of the tab at the start of the line"
	case strings.Contains(message, "'-' indicator"):
		return "one indent for all lines of the list that begins here"
	case unquoted.MatchString(message):
		return "YAML, with quotes around a value that has a colon at an end, or * or { in it"
	}
	return "YAML"
}

// lineWithout returns the line of an error that the library gives none: it is in the first line,
// names an anchor, or is about a character that is not text.
func lineWithout(text []byte, message string) int {
	at := bytes.IndexFunc(text, func(c rune) bool {
		return c == utf8.RuneError || unicode.IsControl(c) && c != '\t' && c != '\n' && c != '\r'
	})
	if m := anchor.FindStringSubmatch(message); m != nil {
		at = bytes.Index(text, []byte("*"+m[1]))
	}
	return 1 + bytes.Count(text[:max(at, 0)], []byte("\n"))
}

// expander replaces aliases and merge keys, so that all others see a plain tree.
type expander struct {
	*loader
	file   string
	nodes  int
	open   map[*yaml.Node]bool // the anchors that are being expanded
	failed bool
}

func (e *expander) expand(n *yaml.Node) *yaml.Node {
	if e.failed {
		return n
	}
	if e.nodes++; e.nodes > maxNodes {
		e.fail(n, "the file has more values than "+strconv.Itoa(maxNodes)+
			", also through aliases, which is about 90,000 rules; want fewer")
		return n
	}
	if n.Kind == yaml.AliasNode {
		if e.open[n.Alias] {
			e.fail(n, "alias *"+n.Value+" is inside its own anchor")
			return n
		}
		n = n.Alias
	}
	if len(n.Content) == 0 {
		return n
	}
	if n.Anchor != "" {
		e.open[n] = true
		defer delete(e.open, n)
	}
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = e.expand(child)
	}
	if c.Kind == yaml.MappingNode {
		e.merge(&c)
	}
	return &c
}

// merge replaces the merge keys << of mapping n by the fields they stand for.
func (e *expander) merge(n *yaml.Node) {
	var own, merged []*yaml.Node
	have := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		have[key.Value] = true
		own = append(own, key, value)
	}
	for len(merged) > 0 {
		from := merged[0]
		merged = merged[1:]
		if from.Kind == yaml.SequenceNode {
			merged = append(append([]*yaml.Node(nil), from.Content...), merged...)
			continue
		}
		if from.Kind != yaml.MappingNode {
			e.fail(from, "<< has no mapping to merge; want an alias of a mapping")
			return
		}
		for i := 0; i+1 < len(from.Content); i += 2 {
			if key := from.Content[i]; !have[key.Value] {
				have[key.Value] = true
				own = append(own, key, from.Content[i+1])
			}
		}
	}
	n.Content = own
}

func (e *expander) fail(n *yaml.Node, text string) {
	if !e.failed {
		e.fault(place{e.file, n.Line}, "", text)
	}
	e.failed = true
}
