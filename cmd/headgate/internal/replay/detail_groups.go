package replay

import (
	"cmp"
	"hash/fnv"
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

// of numbers the groups of a request, which is then held until add.
func (f *facets) of(e *entry) uint32 {
	id := f.paths.hold(path(e.target))
	id = id<<methodBits | f.methods.hold(present(e.method))
	return id<<statusBits | f.statuses.hold(present(e.status))
}

// add counts the request with the number that of returned. denied is by limit.
func (f *facets) add(id uint32, denied []bool) {
	f.statuses.add(id&(1<<statusBits-1), denied)
	f.methods.add(id>>statusBits&(1<<methodBits-1), denied)
	f.paths.add(id>>(statusBits+methodBits), denied)
}

// groups counts requests by a name. It holds a bounded number of names, 262,144 paths: if there are
// more, it adds the half with the fewest requests to "(other)". A name that was dropped stays
// there, so what it reports for a name is exact.
type groups struct {
	most    int
	ids     map[string]uint32
	all     []group
	free    []uint32 // of all
	dropped filter
	cut     []byte
}

type group struct {
	name     string
	held     int32 // requests that are not counted yet
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

// hold returns the number of the group of name.
func (g *groups) hold(name []byte) uint32 {
	if len(name) == 0 {
		return none
	}
	if len(name) > longestName {
		name = g.shorten(name)
	}
	id, ok := g.ids[string(name)]
	if !ok {
		if id, ok = g.insert(name); !ok {
			return other
		}
	}
	g.all[id].held++
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

// insert adds a group, unless name was dropped before or all groups are held.
func (g *groups) insert(name []byte) (id uint32, ok bool) {
	if g.dropped.has(name) {
		return other, false
	}
	if len(g.all) == g.most && len(g.free) == 0 {
		g.drop()
	}
	switch {
	case len(g.free) > 0:
		id = g.free[len(g.free)-1]
		g.free = g.free[:len(g.free)-1]
	case len(g.all) < g.most:
		id = uint32(len(g.all))
		g.all = append(g.all, group{})
	default:
		g.dropped.add(name)
		return other, false
	}
	g.all[id] = group{name: string(name)}
	g.ids[g.all[id].name] = id
	return id, true
}

// drop adds half of the groups to other: those that are not held and have the fewest requests.
func (g *groups) drop() {
	var ids []uint32
	for id := none + 1; id < len(g.all); id++ {
		if g.all[id].held == 0 {
			ids = append(ids, uint32(id))
		}
	}
	slices.SortFunc(ids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(g.all[a].requests, g.all[b].requests), cmp.Compare(a, b))
	})
	for _, id := range ids[:(len(ids)+1)/2] {
		k := g.all[id]
		g.all[other].merge(k)
		g.dropped.add([]byte(k.name))
		delete(g.ids, k.name)
		g.all[id] = group{}
		g.free = append(g.free, id)
	}
}

func (k *group) merge(o group) {
	k.requests += o.requests
	for i, n := range o.denied {
		k.denied = grown(k.denied, uint32(i))
		k.denied[i] += n
	}
}

// add counts a request of a group that hold returned.
func (g *groups) add(id uint32, denied []bool) {
	k := &g.all[id]
	k.requests++
	if id > none {
		k.held--
	}
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

// filter remembers names in 4 MiB. It may take a name for one that it remembers: one in 2,000 of a
// new name if it remembers 400,000.
type filter struct{ bits []uint64 }

const filterBits = 25

func (f *filter) add(name []byte) {
	if f.bits == nil {
		f.bits = make([]uint64, 1<<filterBits/64)
	}
	for _, bit := range f.of(name) {
		f.bits[bit/64] |= 1 << (bit % 64)
	}
}

func (f *filter) has(name []byte) bool {
	if f.bits == nil {
		return false
	}
	bits := f.of(name)
	return f.bits[bits[0]/64]>>(bits[0]%64)&1 != 0 && f.bits[bits[1]/64]>>(bits[1]%64)&1 != 0
}

// of returns the bits of a name.
func (*filter) of(name []byte) [2]uint64 {
	h := fnv.New64a()
	_, _ = h.Write(name) // it returns no error
	sum := h.Sum64()
	return [2]uint64{sum & (1<<filterBits - 1), sum >> (64 - filterBits)}
}
