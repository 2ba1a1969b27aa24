package yamlnode

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Expander replaces aliases and merge keys, so that readers see a plain tree.
type Expander struct {
	// Most is how many nodes the tree may have. A file of a few lines can stand for billions.
	Most int

	// OwnFirst lets the fields of a mapping count more than those of a merge key after them.
	OwnFirst bool

	// The texts of faults.
	TooMany  string
	InItself string // an anchor, whose name replaces %s
	NoMerge  string // the value of a merge key is no mapping

	nodes int
	open  map[*yaml.Node]bool // the anchors that are being expanded
}

// Expand returns the tree of root. Its nodes keep the lines in which they were written.
func (e *Expander) Expand(file string, root *yaml.Node) (*yaml.Node, error) {
	e.nodes, e.open = 0, map[*yaml.Node]bool{}
	tree, err := e.expand(root)
	if f, ok := errors.AsType[*Fault](err); ok {
		f.File = file
	}
	return tree, err
}

func (e *Expander) expand(n *yaml.Node) (*yaml.Node, error) {
	if e.nodes++; e.nodes > e.Most {
		return nil, fault(n, e.TooMany)
	}
	if n.Kind == yaml.AliasNode {
		if e.open[n.Alias] {
			return nil, fault(n, fmt.Sprintf(e.InItself, n.Value))
		}
		n = n.Alias
	}
	if len(n.Content) == 0 {
		return n, nil
	}
	if n.Anchor != "" {
		e.open[n] = true
		defer delete(e.open, n)
	}
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		var err error
		if c.Content[i], err = e.expand(child); err != nil {
			return nil, err
		}
	}
	if c.Kind == yaml.MappingNode {
		return &c, e.merge(&c)
	}
	return &c, nil
}

// merge replaces the merge keys of mapping n by the fields that they stand for.
func (e *Expander) merge(n *yaml.Node) error {
	content := make([]*yaml.Node, 0, len(n.Content))
	have := map[string]bool{}
	if e.OwnFirst {
		note(n, have)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() != "!!merge" {
			content = append(content, key, value)
			continue
		}
		if !e.OwnFirst {
			clear(have)
		}
		var err error
		if content, err = e.merged(content, value, have); err != nil {
			return err
		}
	}
	n.Content = content
	return nil
}

// merged appends the fields of from, a mapping or a list of mappings, that are not in have.
func (e *Expander) merged(
	content []*yaml.Node, from *yaml.Node, have map[string]bool,
) (_ []*yaml.Node, err error) {
	switch from.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(from.Content); i += 2 {
			if !have[name(from.Content[i])] {
				content = append(content, from.Content[i], from.Content[i+1])
			}
		}
		note(from, have)
		return content, nil
	case yaml.SequenceNode:
		for _, item := range from.Content {
			if content, err = e.merged(content, item, have); err != nil {
				return nil, err
			}
		}
		return content, nil
	}
	return nil, fault(from, e.NoMerge)
}

func note(n *yaml.Node, have map[string]bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		have[name(n.Content[i])] = true
	}
}

// name returns what two equal keys of a mapping have in common.
func name(key *yaml.Node) string { return key.ShortTag() + key.Value }

func fault(n *yaml.Node, text string) error { return &Fault{Place{Line: n.Line}, text} }
