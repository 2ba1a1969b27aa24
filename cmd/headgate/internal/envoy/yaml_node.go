package envoy

import (
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxAliased bounds how many nodes aliases may add to a document.
const maxAliased = 1_000_000

// reader walks the nodes of one file. It reads values as YAML 1.1 has them, as upstream's library
// does: yes and off are booleans, and a later duplicate of a key sets its field again.
type reader struct {
	file    string
	errs    []error
	warned  []string
	aliased int
	inAlias int
	open    []*yaml.Node // aliases that are being followed
}

func (r *reader) failf(n *yaml.Node, format string, args ...any) {
	r.errs = append(r.errs, &FileError{File: r.file, Line: n.Line, Text: fmt.Sprintf(format, args...)})
}

func (r *reader) warnf(n *yaml.Node, format string, args ...any) {
	f := FileError{File: r.file, Line: n.Line, Text: fmt.Sprintf(format, args...)}
	r.warned = append(r.warned, f.Error())
}

// FileError is an error in a file of configuration.
type FileError struct {
	File string
	Line int // 0: not known
	Text string
}

// Error returns the place and the text.
func (f *FileError) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return f.File + ":" + strconv.Itoa(f.Line) + ": " + f.Text
}

// enter follows an alias. The caller must call leave with what it returns, if that is not nil.
func (r *reader) enter(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.AliasNode {
		if r.inAlias > 0 {
			r.aliased++
		}
		if r.aliased == maxAliased {
			r.failf(n, "error loading config file: yaml: document contains excessive aliasing")
		}
		if r.aliased >= maxAliased {
			return nil
		}
		return n
	}
	if slices.Contains(r.open, n.Alias) {
		r.failf(n, "error loading config file: yaml: anchor '%s' value contains itself", n.Value)
		return nil
	}
	r.open = append(r.open, n.Alias)
	r.inAlias++
	return n.Alias
}

func (r *reader) leave(n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		r.inAlias--
		r.open = r.open[:len(r.open)-1]
	}
}

// pair is a key of a mapping, a scalar, and its value, which may be an alias.
type pair struct{ key, value *yaml.Node }

// pairs returns what mapping n holds, with merge keys resolved. Of equal keys, the last one
// counts.
func (r *reader) pairs(n *yaml.Node) []pair {
	ps := r.allPairs(nil, n)
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

func (r *reader) allPairs(ps []pair, n *yaml.Node) []pair {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			r.failf(key, "error loading config file: yaml: invalid map key: %s", show(key))
		case key.ShortTag() == "!!merge":
			ps = r.merge(ps, value)
		default:
			ps = append(ps, pair{key, value})
		}
	}
	return ps
}

// merge adds the pairs of the mapping, or of the list of mappings, that a merge key names.
func (r *reader) merge(ps []pair, value *yaml.Node) []pair {
	n := r.enter(value)
	if n == nil {
		return ps
	}
	defer r.leave(value)
	switch n.Kind {
	case yaml.MappingNode:
		return r.allPairs(ps, n)
	case yaml.SequenceNode:
		for _, item := range slices.Backward(n.Content) { // the first one counts most
			ps = r.merge(ps, item)
		}
		return ps
	}
	r.failf(value, "error loading config file: yaml: "+
		"map merge requires map or sequence of maps as the value")
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
