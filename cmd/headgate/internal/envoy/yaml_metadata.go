package envoy

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// metadata reads any mapping as JSON would hold it.
func (r *reader) metadata(n *yaml.Node) map[string]any {
	v, err := r.anything(n)
	if err != nil {
		r.failf(n, "error parsing metadata: %s", err.Error())
		return nil
	}
	if v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		r.mismatch(n, "map[string]interface {}")
	}
	return m
}

func (r *reader) anything(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for _, p := range r.allPairs(n) {
			v, err := r.anything(p.value)
			if err != nil {
				return nil, err
			}
			m[show(p.key)] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			v, err := r.anything(item)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	}
	return scalarValue(n)
}

func scalarValue(n *yaml.Node) (any, error) {
	switch kind(n) {
	case "!!null":
		return nil, nil //nolint:nilnil // null is a value
	case "!!bool":
		return boolean(n), nil
	case "!!int", "!!float":
		var f float64
		if err := n.Decode(&f); err != nil {
			return nil, fmt.Errorf("%s: %s", n.Value, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		return f, nil
	}
	return n.Value, nil
}
