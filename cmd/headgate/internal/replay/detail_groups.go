package replay

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Each record carries the paths, method and status of its request as numbers, in 32 bits.
const (
	pathBits   = 18
	methodBits = 7
	statusBits = 7

	longestName = 512 // bytes; longer names with the same beginning count as one
)

// facets count the requests by path, method and status.
type facets struct {
	paths, methods, statuses *groups
}

func newFacets() *facets {
	return &facets{newGroups(1 << pathBits), newGroups(1 << methodBits), newGroups(1 << statusBits)}
}

// of numbers the groups of a request.
func (f *facets) of(e *entry) uint32 {
	id := f.paths.id(path(e.target))
	id = id<<methodBits | f.methods.id(present(e.method))
	return id<<statusBits | f.statuses.id(present(e.status))
}

// add counts the request with the number that of returned. denied is by limit.
func (f *facets) add(id uint32, denied []bool) {
	f.statuses.add(id&(1<<statusBits-1), denied)
	f.methods.add(id>>statusBits&(1<<methodBits-1), denied)
	f.paths.add(id>>(statusBits+methodBits), denied)
}

// groups counts requests by a name. It has room for a number of names, 262,144 paths. Names that
// come later are in "(other)", so what it reports for a name is exact.
type groups struct {
	most int
	ids  map[string]uint32
	all  []group
	cut  []byte
}

type group struct {
	name     string
	requests int64
	denied   []int64 // by limit; nil if none was
}

// The first groups.
const (
	other = iota
	none
)

func newGroups(most int) *groups {
	return &groups{
		most: most,
		ids:  map[string]uint32{"(other)": other, "(none)": none},
		all:  []group{{name: "(other)"}, {name: "(none)"}},
	}
}

// id returns the number of the group of name.
func (g *groups) id(name []byte) uint32 {
	if len(name) == 0 {
		return none
	}
	if len(name) > longestName {
		name = g.shorten(name)
	}
	id, ok := g.ids[string(name)]
	switch {
	case ok:
		return id
	case len(g.all) == g.most:
		return other
	}
	id = uint32(len(g.all))
	g.all = append(g.all, group{name: string(name)})
	g.ids[g.all[id].name] = id
	return id
}

// shorten cuts name at the end of a character.
func (g *groups) shorten(name []byte) []byte {
	n := longestName
	for n > longestName-utf8.UTFMax && !utf8.RuneStart(name[n]) {
		n--
	}
	g.cut = append(append(g.cut[:0], name[:n]...), "…"...)
	return g.cut
}

func (k *group) merge(o group) {
	k.requests += o.requests
	for i, n := range o.denied {
		k.denied = grown(k.denied, uint32(i))
		k.denied[i] += n
	}
}

// add counts a request of a group.
func (g *groups) add(id uint32, denied []bool) {
	k := &g.all[id]
	k.requests++
	for i, d := range denied {
		if d {
			k.denied = grown(k.denied, uint32(i))
			k.denied[i]++
		}
	}
}

// list returns the groups that were denied most, by the sum of their shares of what each limit
// denied, and then those with the most requests. The last one has all others. It is nil if no
// request has a name.
func (g *groups) list(denied []int64) []Group {
	if len(g.all) == none+1 && g.all[other].requests == 0 { // no name was ever seen
		return nil
	}
	var named []group
	var rest group
	for id, k := range g.all {
		switch {
		case id == other:
			rest.merge(k)
		case k.requests > 0:
			named = append(named, k)
		}
	}
	slices.SortFunc(named, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.score(denied), a.score(denied)),
			cmp.Compare(b.requests, a.requests), cmp.Compare(a.name, b.name))
	})
	list := []Group{}
	for i, k := range named {
		if i < DetailGroups {
			list = append(list, k.group(len(denied)))
		} else {
			rest.merge(k)
		}
	}
	if rest.requests > 0 {
		rest.name = g.all[other].name
		list = append(list, rest.group(len(denied)))
	}
	return list
}

// score returns the sum of the shares of k of what each limit denied.
func (k *group) score(denied []int64) (sum float64) {
	for i, n := range k.denied {
		if n > 0 {
			sum += float64(n) / float64(denied[i])
		}
	}
	return sum
}

func (k *group) group(limits int) Group {
	denied := make([]int64, limits)
	copy(denied, k.denied)
	return Group{LogKey(k.name), k.requests, denied}
}
