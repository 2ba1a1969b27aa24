package envoy

import "go.yaml.in/yaml/v3"

// knownKeys are the keys of the dialect. Like upstream, the check accepts each of them anywhere;
// where one has no effect, the decoder warns. ours are Headgate's additions, which the decoder
// refuses where they have no effect.
var knownKeys = map[string]bool{
	"domain": true, "descriptors": true,
	"key": true, "value": true, "rate_limit": true,
	"shadow_mode": true, "quota_mode": true, "detailed_metric": true, "value_to_metric": true,
	"share_threshold": true, "metadata": true,
	"unit": true, "requests_per_unit": true, "unlimited": true, "name": true, "replaces": true,
	"unit_multiplier": true, "limit": true, "charge_always": true,
}

var ours = map[string]bool{"unit_multiplier": true, "limit": true, "charge_always": true}

// check reports keys that are not known and values of kinds that the dialect does not have.
func (r *reader) check(n *yaml.Node) {
	for _, p := range r.pairs(n) {
		switch {
		case !r.decodes(p.key):
		case kind(p.key) != "!!str":
			r.failf(p.key, "config error, key is not of type string: %s", show(p.key))
		case !knownKeys[p.key.Value]:
			r.failf(p.key, "config error, unknown key '%s'", p.key.Value)
		case p.key.Value != "metadata":
			r.checkValue(p.value)
		}
	}
}

func (r *reader) checkValue(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		r.check(n)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			r.checkItem(item)
		}
	default:
		r.checkLeaf(n)
	}
}

func (r *reader) checkLeaf(n *yaml.Node) {
	if r.decodes(n) && !leaf(n) {
		r.failf(n, "error checking config")
	}
}

// decodes reports a scalar that is not what its tag says.
func (r *reader) decodes(n *yaml.Node) bool {
	var v any
	err := n.Decode(&v)
	if err != nil {
		r.failf(n, "error loading config file: %s", err.Error())
	}
	return err == nil
}

// checkItem is checkValue for the items of a list, which must be maps.
func (r *reader) checkItem(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.failf(n, "config error, yaml file contains list of type other than map: %s", show(n))
		return
	}
	r.check(n)
}

// leaf reports whether scalar n is a string, an int, a bool or null.
func leaf(n *yaml.Node) bool {
	switch kind(n) {
	case "!!str", "!!bool", "!!null":
		return true
	case "!!int":
		var i int64
		return n.Decode(&i) == nil
	}
	return false
}
