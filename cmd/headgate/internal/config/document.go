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

	"github.com/headgate/headgate/cmd/headgate/internal/yamlnode"
)

// maxNodes bounds what a file may hold after its aliases were replaced.
const maxNodes = 1_000_000

var (
	yamlLine = regexp.MustCompile(`line (\d+): `)
	anchor   = regexp.MustCompile(`unknown anchor '(.*)' referenced`)

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
		l.fault(Place{File: f.name, Line: 1}, "",
			"the file is empty; want rules, domains or another field")
		return nil
	} else if err != nil {
		l.syntax(f, err)
		return nil
	}
	err := decoder.Decode(&second)
	switch {
	case errors.Is(err, io.EOF):
	case isDomain(n.Content[0]):
		l.warnAt(Place{File: f.name, Line: max(second.Line, n.Line)}, "",
			"has a second document, which is ignored")
	case err != nil:
		l.syntax(f, err)
		return nil
	default:
		l.fault(Place{File: f.name, Line: second.Line}, "",
			"has a second document; want one document in each file")
		return nil
	}
	return n.Content[0]
}

// expanded returns root without aliases and merge keys, or nil after a fault.
func (l *loader) expanded(f file, root *yaml.Node) *yaml.Node {
	e := yamlnode.Expander{
		Most: maxNodes, OwnFirst: true,
		TooMany: "the file has more values than " + strconv.Itoa(maxNodes) +
			", about 90,000 rules (aliases count in full); want fewer",
		InItself: "alias *%s is inside its own anchor",
		NoMerge:  "<< has no mapping to merge; want an alias of a mapping",
	}
	root, err := e.Expand(f.name, root)
	if err != nil {
		l.faults = append(l.faults, err)
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
	want := "YAML"
	switch {
	case strings.Contains(text, "cannot start any token"):
		want = "spaces instead of tabs, and quotes around text that begins with @, ` or %"
	case strings.Contains(text, "'-' indicator"), strings.Contains(text, "expected key"):
		want = "the same indentation for all parts of the list or mapping that begins here"
	}
	l.fault(Place{File: f.name, Line: line}, "", "error loading config file: "+text+"; want "+want)
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
