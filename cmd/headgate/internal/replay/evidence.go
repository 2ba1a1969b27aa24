package replay

import (
	"cmp"
	"maps"
)

const (
	// MaxEvidence is how many keys of [Config.Evidence] have their requests described.
	MaxEvidence = 20

	evidenceTop   = 3       // names of each kind that are listed
	evidenceNames = 1 << 16 // held at a time, for all keys and kinds
	evidenceBytes = 160     // of a name; longer ones that begin alike are one, and end in …
)

// Evidence is what a key requested, and what was denied to it.
type Evidence struct {
	Asked  []AskedFor // without kinds that the log does not have; nil after MaxEvidence keys
	Denied []int64    // by limit
}

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

// witness collects what some keys ask for while logs are read.
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

// evidence returns what w saw of keys, and what was denied to them.
func (t *tally) evidence(keys []LogKey, w *witness) (all []Evidence) {
	for i, k := range keys {
		e := Evidence{Denied: make([]int64, len(t.trials))}
		id := t.names.ids[string(k)]
		for l, trial := range t.trials {
			if int(id) < len(trial.denied) {
				e.Denied[l] = trial.denied[id]
			}
		}
		if i < len(w.list) {
			e.Asked = w.list[i].most()
		}
		all = append(all, e)
	}
	return all
}

// most returns the most frequent names of each kind.
func (a *asked) most() (all []AskedFor) {
	for kind, names := range a.names {
		if len(names) == 0 {
			continue
		}
		f := AskedFor{Kind: askedKinds[kind], Names: int64(len(names)), Unlisted: a.unlisted[kind]}
		for _, name := range top(evidenceTop, maps.Keys(names), func(a, b string) int {
			return cmp.Or(cmp.Compare(names[b], names[a]), cmp.Compare(a, b))
		}) {
			f.Top = append(f.Top, NameCount{LogKey(name), names[name]})
		}
		all = append(all, f)
	}
	return all
}
