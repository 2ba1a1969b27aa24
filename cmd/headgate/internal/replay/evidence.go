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

// Evidence is what a key requested. Kinds that the log does not have are empty.
type Evidence struct {
	Key      LogKey   `json:"key"`
	Requests int64    `json:"requests"`
	Paths    AskedFor `json:"paths"`
	Methods  AskedFor `json:"methods"`
	Statuses AskedFor `json:"statuses"`
	Agents   AskedFor `json:"agents"`
}

// AskedFor is the names of one kind in the requests of a key. The counts of names are exact. Names
// that first came when there was room for no more, which takes thousands, are only in Unlisted.
type AskedFor struct {
	Top      []NameCount `json:"top"`      // the most frequent first
	Names    int64       `json:"names"`    // different ones, without those that had no room
	Unlisted int64       `json:"unlisted"` // requests whose name had no room
}

// NameCount is how many requests have a name.
type NameCount struct {
	Name     LogKey `json:"name"`
	Requests int64  `json:"requests"`
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
	key      string
	requests int64
	names    [4]map[string]int64
	unlisted [4]int64
}

// newWitness returns a witness of keys, or nil without any.
func newWitness(keys []LogKey) *witness {
	if len(keys) == 0 {
		return nil
	}
	keys = keys[:min(len(keys), MaxEvidence)]
	w := &witness{keys: map[string]*asked{}, room: evidenceNames / len(keys) / len(asked{}.names)}
	for _, k := range keys {
		a := &asked{key: string(k)}
		for i := range a.names {
			a.names[i] = map[string]int64{}
		}
		w.keys[a.key] = a
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
	a.requests++
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
func (w *witness) evidence() []Evidence {
	all := []Evidence{}
	if w == nil {
		return all
	}
	for _, a := range w.list {
		all = append(all, Evidence{
			LogKey(a.key), a.requests, a.askedFor(0), a.askedFor(1), a.askedFor(2), a.askedFor(3),
		})
	}
	return all
}

func (a *asked) askedFor(kind int) AskedFor {
	names := a.names[kind]
	most := top(evidenceTop, maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(names[b], names[a]), cmp.Compare(a, b))
	})
	found := AskedFor{[]NameCount{}, int64(len(names)), a.unlisted[kind]}
	for _, name := range most {
		found.Top = append(found.Top, NameCount{LogKey(name), names[name]})
	}
	return found
}
