package sample

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Part has the recent decisions of a rule on one instance. The history of each of its keys is
// complete between From and To.
type Part struct {
	Name     string // of the instance
	From, To time.Time

	class   uint32 // of all keys, those of at least this class are in
	entries []entry
}

// Part returns what s knows of a rule.
func (s *Sample) Part(name string) Part {
	p := s.copied(name)
	p.raise(p.class) // without the lock, for which decisions wait
	return p
}

// copied returns all entries of a rule.
func (s *Sample) copied(name string) Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.dropOld(now)
	p := Part{From: later(s.started, now.Add(-Window)), To: now}
	if r := (*s.rules.Load())[name]; r != nil && len(r.keys) > 0 {
		p.class = r.complete(now)
		p.From = later(p.From, r.since[p.class])
		p.entries = slices.Clone(r.entries[r.head:]) // decisions go on meanwhile
	}
	return p
}

// KeyShare is the share of all keys of the rule that p has.
func (p *Part) KeyShare() float64 { return share(p.class) }

// raise drops the keys below a class.
func (p *Part) raise(class uint32) {
	p.class = class
	p.entries = slices.DeleteFunc(p.entries, func(e entry) bool { return e.key.class < class })
}

// cut drops what is before a time.
func (p *Part) cut(from time.Time) {
	p.From = later(p.From, from)
	p.entries = slices.DeleteFunc(p.entries, func(e entry) bool { return e.at < from.UnixMicro() })
}

// encoded is a Part as it is sent to another instance. Times are in Unix microseconds.
type encoded struct {
	Name  string   `json:"name"`
	From  int64    `json:"from"`
	To    int64    `json:"to"`
	Class uint32   `json:"class"`
	Keys  [][]byte `json:"keys"`

	// Of each entry:
	At   []int64  `json:"at"` // after the one before
	Key  []int    `json:"key"`
	Cost []int64  `json:"cost"`
	N    []uint32 `json:"n"`
	Kind []int    `json:"kind"` // outcome and cause
}

// causes is how many kinds of each outcome there are.
const causes = 8

// fewKeys is the number of keys below which time is halved instead of keys: a single one may fill a
// sample.
const fewKeys = 16

// Encode returns p as a text of at most the given number of bytes. If it is larger, it drops half of
// the keys, or of few keys the older half of the time, until it fits.
func (p *Part) Encode(most int) []byte {
	kept := *p
	kept.entries = slices.Clone(p.entries)
	for {
		text, keys := kept.encode()
		if len(text) <= most || len(kept.entries) == 0 {
			return text
		}
		if keys > fewKeys && kept.class < maxLevel {
			kept.raise(kept.class + 1)
		} else {
			kept.cut(time.UnixMicro(kept.entries[len(kept.entries)/2].at + 1))
		}
	}
}

func (p *Part) encode() (text []byte, keys int) {
	w := encoded{
		Name: p.Name, From: p.From.UnixMicro(), To: p.To.UnixMicro(), Class: p.class,
	}
	places := map[*key]int{}
	last := w.From
	for _, e := range p.entries {
		place, known := places[e.key]
		if !known {
			place = len(places)
			places[e.key] = place
			w.Keys = append(w.Keys, []byte(e.key.text)) // which may be no valid UTF-8
		}
		w.At, last = append(w.At, e.at-last), e.at
		w.Key, w.Cost, w.N = append(w.Key, place), append(w.Cost, e.cost), append(w.N, e.n)
		w.Kind = append(w.Kind, int(e.outcome)*causes+int(e.cause))
	}
	var packed bytes.Buffer
	to, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err == nil {
		err = errors.Join(json.NewEncoder(to).Encode(&w), to.Close())
	}
	if err != nil {
		panic(err) // cannot happen: texts and numbers, into memory
	}
	return packed.Bytes(), len(places)
}

// maxDecoded bounds what a text of [Part.Encode] is unpacked to.
const maxDecoded = 64 << 20

// Decode returns the Part that was encoded as text.
func Decode(text []byte) (Part, error) {
	from := flate.NewReader(bytes.NewReader(text))
	var w encoded
	if err := json.NewDecoder(io.LimitReader(from, maxDecoded)).Decode(&w); err != nil {
		return Part{}, fmt.Errorf("sample: part of another instance: %w", err)
	}
	n := len(w.At)
	if len(w.Key) != n || len(w.Cost) != n || len(w.N) != n || len(w.Kind) != n || w.Class > maxLevel {
		return Part{}, errOther
	}
	p := Part{
		Name: w.Name, From: time.UnixMicro(w.From), To: time.UnixMicro(w.To), class: w.Class,
	}
	keys := make([]*key, len(w.Keys))
	for i, text := range w.Keys {
		keys[i] = &key{text: string(text), class: classOf(string(text))}
	}
	at := w.From
	for i := range n {
		at += w.At[i]
		kind := w.Kind[i]
		if w.Key[i] < 0 || w.Key[i] >= len(keys) || w.Cost[i] < 1 || w.N[i] > maxEqual ||
			kind < 0 || kind >= causes*int(rules.Failed) || kind%causes > int(rules.ByPermits) {
			return Part{}, errOther
		}
		p.entries = append(p.entries, entry{
			at: at, key: keys[w.Key[i]], cost: w.Cost[i], n: w.N[i],
			outcome: rules.Outcome(kind / causes), cause: rules.Cause(kind % causes),
		})
	}
	return p, nil
}

var errOther = errors.New("sample: part of another instance: from another version")

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
