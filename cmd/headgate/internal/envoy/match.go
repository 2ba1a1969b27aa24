package envoy

import (
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/wildcard"
)

// step is what one entry of a descriptor matched.
type step struct {
	node *node
	by   matchKind
}

type matchKind uint8

const (
	byValue    matchKind = iota // key_value
	byWildcard                  // a name with *
	byKey                       // key alone
)

// match walks the entries of d from root, and returns the steps; none if no node matches, or if
// there are more entries than levels. A limit applies only where the entries end, so the last
// step has it. Each level is looked up without going back: the first match counts, though what is
// below it may not fit.
func match(root *node, d *Descriptor, steps []step, buf []byte) ([]step, []byte) {
	n := root
	for i := range d.Entries {
		e := &d.Entries[i]
		buf = append(append(append(buf[:0], e.Key...), '_'), e.Value...)
		s := n.child(e, buf)
		if s.node == nil {
			return steps[:0], buf
		}
		steps = append(steps, s)
		n = s.node
	}
	return steps, buf
}

// limitOf is the limit that applies to a descriptor that matched steps, or nil.
func limitOf(steps []step) *rule {
	if len(steps) == 0 {
		return nil
	}
	return steps[len(steps)-1].node.rule
}

// Found is the limit that applies to a descriptor.
type Found struct {
	Limit     Limit
	Unlimited bool
	Shadow    bool
	Quota     bool
	Replaces  []string
	Path      string // of its statistics, below the domain
	Key       string // of its counter, without the prefix
}

// Find returns the limit of c that applies to d, which brings none of its own. It is for the
// comparison with upstream.
func (c *Config) Find(domain string, d *Descriptor) (Found, bool) {
	root := c.domains[domain]
	if root == nil {
		return Found{}, false
	}
	steps, _ := match(root, d, nil, nil)
	r := limitOf(steps)
	if r == nil {
		return Found{}, false
	}
	f := Found{r.shown, r.unlimited, r.shadow, r.quota, r.replaces, r.key, ""}
	if !ownPath(r, d, steps) {
		f.Path = string(appendPath(nil, r, d, steps))
	}
	f.Key = string(appendKey(nil, domain, d, steps))
	return f, true
}

// child is the child of n for entry e, whose key and value glued are in glued. The gluing is
// upstream's: key a_b matches the entry a, b.
func (n *node) child(e *Entry, glued []byte) step {
	if c := n.children[string(glued)]; c != nil {
		return step{c, byValue}
	}
	for _, c := range n.wildcards {
		if wildcard.Match(c.name, glued) {
			return step{c, byWildcard}
		}
	}
	return step{n.children[e.Key], byKey}
}

// pattern is the value that stands for the value of e in the key of a shared counter.
func (s step) pattern(e *Entry) (value string, shared bool) {
	if s.by != byWildcard || !s.node.share {
		return "", false
	}
	return withoutKey(s.node.name, e.Key), true
}

// withoutKey is name without key and the underscore after it, if it begins with them.
func withoutKey(name, key string) string {
	if rest, ok := strings.CutPrefix(name, key); ok && strings.HasPrefix(rest, "_") {
		return rest[1:]
	}
	return name
}

// appendKey appends the key of the counter for d: domain|key=value|key=value. A backslash
// precedes |, = and backslashes inside of them, so that different descriptors never share a key.
func appendKey(b []byte, domain string, d *Descriptor, steps []step) []byte {
	b = appendEscaped(b, domain)
	for i := range d.Entries {
		e := &d.Entries[i]
		b = appendEscaped(append(b, '|'), e.Key)
		value := e.Value
		if i < len(steps) {
			if pattern, shared := steps[i].pattern(e); shared {
				value = pattern
			}
		}
		b = appendEscaped(append(b, '='), value)
	}
	return b
}

// DescriptorText returns the key of a counter without its domain: key=value|key=value.
func DescriptorText(key string) string {
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '\\':
			i++
		case '|':
			return key[i+1:]
		}
	}
	return ""
}

// CounterKey returns the key of a counter from its domain and the text of its descriptor.
func CounterKey(domain, text string) string {
	return string(appendEscaped(nil, domain)) + "|" + text
}

func appendEscaped(b []byte, s string) []byte {
	from := 0
	for i := range len(s) {
		if c := s[i]; c == '|' || c == '=' || c == '\\' {
			b = append(append(b, s[from:i]...), '\\')
			from = i
		}
	}
	return append(b, s[from:]...)
}
