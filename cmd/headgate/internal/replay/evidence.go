package replay

import (
	"cmp"
	"maps"
)

const (
	// MaxEvidence is the maximum number of keys of [Config.Evidence] that are described.
	MaxEvidence = 20

	evidenceTop   = 3       // names of each kind that are listed
	evidenceNames = 1 << 16 // held at a time, for all keys and kinds
	evidenceBytes = 160     // of a name; longer ones that begin alike are one, and end in …
)

// Evidence is what a key requested. Kinds of names that the log does not have are left out.
type Evidence []AskedFor

// askedKinds are the kinds of names, one and several.
var askedKinds = [...][2]string{
	{"path", "paths"}, {"method", "methods"}, {"status", "statuses"}, {"user agent", "user agents"},
}

// AskedFor is the names of one kind in the requests of a key. The counts of names are exact. Names
// that first came when there was room for no more, which takes thousands, are only in Unlisted.
type AskedFor struct {
	Kind     [2]string   // such as path, paths
	Top      []NameCount // the most frequent first
	Names    int64       // different ones, without those that had no room
	Unlisted int64       // requests whose name had no room
}

// NameCount is how many requests have a name.
type NameCount struct {
	Name     LogKey
	Requests int64
}

// witness collects the Evidence of some keys while logs are read.
type witness struct {
	keys map[string]*asked
	room int // names of a kind
	list []*asked
	long []byte // a name that is cut
}

// asked counts the names of a key: paths, methods, statuses and user agents.
type asked struct {
	names    [len(askedKinds)]map[string]int64
	unlisted [len(askedKinds)]int64
}

// newWitness returns a witness of keys, or nil without any.
func newWitness(keys []LogKey) *witness {
	if len(keys) == 0 {
		return nil
	}
	keys = keys[:min(len(keys), MaxEvidence)]
	w := &witness{keys: map[string]*asked{}, room: evidenceNames / len(keys) / len(asked{}.names)}
	for _, k := range keys {
		a := &asked{}
		for i := range a.names {
			a.names[i] = map[string]int64{}
		}
		w.keys[string(k)] = a
		w.list = append(w.list, a)
	}
	return w
}

// see counts a request of key.
func (w *witness) see(key []byte, e *entry, agent []byte) {
	a := w.keys[string(key)]
	if a == nil {
		return
	}
	names := [...][]byte{path(e.target), present(e.method), present(e.status), present(agent)}
	for i, name := range names {
		if len(name) == 0 {
			continue
		}
		if len(name) > evidenceBytes {
			w.long = append(append(w.long[:0], name[:evidenceBytes]...), "…"...)
			name = w.long
		}
		if _, ok := a.names[i][string(name)]; ok || len(a.names[i]) < w.room {
			a.names[i][string(name)]++
		} else {
			a.unlisted[i]++
		}
	}
}

// evidence returns what was seen, in the order of the keys.
func (w *witness) evidence() (all []Evidence) {
	if w == nil {
		return nil
	}
	for _, a := range w.list {
		var e Evidence
		for kind, names := range a.names {
			if len(names) > 0 {
				e = append(e, AskedFor{
					askedKinds[kind], mostAsked(names), int64(len(names)), a.unlisted[kind],
				})
			}
		}
		all = append(all, e)
	}
	return all
}

func mostAsked(names map[string]int64) (all []NameCount) {
	for _, name := range top(evidenceTop, maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(names[b], names[a]), cmp.Compare(a, b))
	}) {
		all = append(all, NameCount{LogKey(name), names[name]})
	}
	return all
}
