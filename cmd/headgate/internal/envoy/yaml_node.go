package envoy

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/cmd/headgate/internal/yamlnode"
)

// maxAliased bounds how many nodes aliases may add to a document.
const maxAliased = 1_000_000

// expanded returns the tree of doc. Later fields count more, as in upstream's library.
func expanded(file string, doc *yaml.Node) (*yaml.Node, error) {
	const failed = "error loading config file: yaml: "
	e := yamlnode.Expander{
		Most:     maxAliased + count(doc),
		TooMany:  failed + "document contains excessive aliasing",
		InItself: failed + "anchor '%s' value contains itself",
		NoMerge:  failed + "map merge requires map or sequence of maps as the value",
	}
	return e.Expand(file, doc)
}

func count(n *yaml.Node) int {
	nodes := 1
	for _, child := range n.Content {
		nodes += count(child)
	}
	return nodes
}

// reader walks the nodes of one file. It reads values as YAML 1.1 has them, as upstream's library
// does: yes and off are booleans, and a later duplicate of a key sets its field again.
type reader struct {
	file   string
	errs   []error
	warned []string
}

func (r *reader) failf(n *yaml.Node, format string, args ...any) {
	r.errs = append(r.errs, faultf(r.file, n.Line, format, args...))
}

func (r *reader) warnf(n *yaml.Node, format string, args ...any) {
	r.warned = append(r.warned, faultf(r.file, n.Line, format, args...).Error())
}

func faultf(file string, line int, format string, args ...any) error {
	return &yamlnode.Fault{
		Place: yamlnode.Place{File: file, Line: line}, Text: fmt.Sprintf(format, args...),
	}
}

// pair is a key of a mapping, a scalar, and its value.
type pair struct{ key, value *yaml.Node }

// pairs returns what mapping n holds. Of equal keys, the last one counts.
func (r *reader) pairs(n *yaml.Node) []pair {
	ps := r.allPairs(n)
	last := make(map[string]int, len(ps))
	for i, p := range ps {
		last[p.key.Value+p.key.ShortTag()] = i
	}
	kept := ps[:0]
	for i, p := range ps {
		if last[p.key.Value+p.key.ShortTag()] == i {
			kept = append(kept, p)
		}
	}
	return kept
}

func (r *reader) allPairs(n *yaml.Node) (ps []pair) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind == yaml.ScalarNode {
			ps = append(ps, pair{key, n.Content[i+1]})
		} else {
			r.failf(key, "error loading config file: yaml: invalid map key: %s", show(key))
		}
	}
	return ps
}

// kind is what a scalar is: !!int, !!float, !!bool, !!null, or else !!str. A date is a string here.
func kind(n *yaml.Node) string {
	switch tag := n.ShortTag(); tag {
	case "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
		return tag
	case "!!str":
		if _, ok := oldBool(n.Value); ok && n.Style == 0 {
			return "!!bool"
		}
	}
	return "!!str"
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && kind(n) == "!!null" }

// oldBool is the value of a word that only YAML 1.1 has as a boolean.
func oldBool(s string) (value, ok bool) {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// boolean is the value of a scalar whose kind is !!bool.
func boolean(n *yaml.Node) bool {
	if v, ok := oldBool(n.Value); ok {
		return v
	}
	return n.Value[0]|0x20 == 't'
}

// show is the value of n as a message has it.
func show(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && kind(n) == "!!bool" {
		return strconv.FormatBool(boolean(n))
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return n.Value
	}
	return fmt.Sprint(v)
}
