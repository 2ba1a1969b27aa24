package replay

import (
	"cmp"
	"iter"
	"slices"
)

// keyIDs numbers the keys in the order of their first occurrence.
type keyIDs struct {
	ids  map[string]uint32
	keys []string
}

func newKeyIDs() *keyIDs { return &keyIDs{ids: map[string]uint32{}} }

func (n *keyIDs) id(key []byte) uint32 {
	if id, ok := n.ids[string(key)]; ok {
		return id
	}
	id, name := uint32(len(n.keys)), string(key)
	n.ids[name] = id
	n.keys = append(n.keys, name)
	return id
}

// deniedKey is how many requests of a key were denied.
type deniedKey struct {
	key    uint32
	denied int64
}

// mostDenied returns the most of keys that were denied most, then by name.
func (n *keyIDs) mostDenied(most int, keys iter.Seq[deniedKey]) []deniedKey {
	return top(most, keys, func(a, b deniedKey) int {
		return cmp.Or(cmp.Compare(b.denied, a.denied), cmp.Compare(n.keys[a.key], n.keys[b.key]))
	})
}

// top returns the first n of all in an order. It holds at most 2n of them, because sorting millions
// would take longer than the replay.
func top[T any](n int, all iter.Seq[T], order func(a, b T) int) []T {
	var first []T
	full := false // first[n-1] is the last that counts
	for v := range all {
		if n == 0 || full && order(v, first[n-1]) > 0 {
			continue
		}
		first = append(first, v)
		if len(first)/2 >= n {
			slices.SortFunc(first, order)
			first, full = first[:n], true
		}
	}
	slices.SortFunc(first, order)
	return first[:min(n, len(first))]
}
