package replay

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
)

// runRequests is how many requests are sorted by key at a time.
const runRequests = 1 << 21

// visits are the requests of a key at one time.
type visits struct {
	at int64
	n  int64
}

// history keeps the time and key of each request, so that the requests of one key can be read
// together, in the order of time. It sorts them by key in runs of limited size, and reads the runs
// side by side. Most requests take 1 to 4 bytes.
type history struct {
	ats     []int64 // requests that are in no run yet
	keys    []uint32
	nextKey []uint32 // scratch of a sort
	order   []uint32
	runs    []run
	perRun  int
}

// run is the history of a part of the log, sorted by key.
type run struct {
	bytes []byte
	base  int64 // times count from here
}

func newHistory() *history { return &history{perRun: runRequests} }

// add adds r, which is not earlier than the record before.
func (h *history) add(r record) {
	h.ats = append(h.ats, r.at)
	h.keys = append(h.keys, r.key)
	if len(h.ats) == h.perRun {
		h.flush()
	}
}

// flush makes a run of the requests that are in none.
func (h *history) flush() {
	if len(h.ats) == 0 {
		return
	}
	h.sort()
	base := h.ats[0] / 1e6 * 1e6
	h.runs = append(h.runs, run{h.encode(base), base})
	h.ats, h.keys = h.ats[:0], h.keys[:0]
}

// sort fills order with the requests by key, those of a key in the order of time.
func (h *history) sort() {
	last := slices.Max(h.keys)
	h.nextKey = append(h.nextKey[:0], make([]uint32, int(last)+2)...)
	for _, k := range h.keys {
		h.nextKey[k+1]++
	}
	for k := range last {
		h.nextKey[k+1] += h.nextKey[k]
	}
	h.order = append(h.order[:0], make([]uint32, len(h.keys))...)
	for i, k := range h.keys {
		h.order[h.nextKey[k]] = uint32(i)
		h.nextKey[k]++
	}
}

// encode returns the requests of a run: for each key the difference from the key before, the length
// of what follows, and its visits.
func (h *history) encode(base int64) []byte {
	var out, body []byte
	before := uint32(0)
	for i := 0; i < len(h.order); {
		key, last := h.keys[h.order[i]], base
		body = body[:0]
		for i < len(h.order) && h.keys[h.order[i]] == key {
			v := visits{h.ats[h.order[i]], 0}
			for i < len(h.order) && h.keys[h.order[i]] == key && h.ats[h.order[i]] == v.at {
				v.n++
				i++
			}
			body = appendVisits(body, v, last)
			last = v.at
		}
		out = binary.AppendUvarint(out, uint64(key-before))
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
		before = key
	}
	return bytes.Clone(out)
}

// appendVisits writes v as the time since last, in seconds if it is whole seconds, and its number
// if that is not 1. The two lowest bits say so.
func appendVisits(b []byte, v visits, last int64) []byte {
	since, flags := uint64(v.at-last), uint64(1)
	if since%1e6 == 0 {
		since, flags = since/1e6, 0
	}
	if v.n > 1 {
		flags |= 2
	}
	b = binary.AppendUvarint(b, since<<2|flags)
	if v.n > 1 {
		b = binary.AppendUvarint(b, uint64(v.n))
	}
	return b
}

// nextVisits reads what appendVisits wrote, and returns the rest of b.
func nextVisits(b []byte, last int64) (visits, []byte) {
	word, size := binary.Uvarint(b)
	b = b[size:]
	v := visits{last + int64(word>>2), 1}
	if word&1 == 0 {
		v.at = last + int64(word>>2)*1e6
	}
	if word&2 != 0 {
		n, size := binary.Uvarint(b)
		v.n, b = int64(n), b[size:]
	}
	return v, b
}

// A walker is called with the requests of each key, in the order of keys.
type walker interface {
	begin(key uint32) (wanted bool)
	see(vs []visits) // in the order of time; more than once for a key with many
	end()
}

// walk reads the history. No request may be added after.
func (h *history) walk(ctx context.Context, w walker) error {
	h.flush()
	h.ats, h.keys, h.order, h.nextKey = nil, nil, nil, nil
	open := make([]*runReader, 0, len(h.runs))
	for _, run := range h.runs {
		r := &runReader{rest: run.bytes, base: run.base}
		r.next()
		open = append(open, r)
	}
	for keys := 0; len(open) > 0; keys++ {
		if keys%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key := open[0].key
		for _, r := range open {
			key = min(key, r.key)
		}
		wanted := w.begin(key)
		left := open[:0]
		for _, r := range open {
			if r.key == key && wanted {
				if err := r.read(ctx, w); err != nil {
					return err
				}
			}
			if r.key != key || r.next() {
				left = append(left, r)
			}
		}
		open = left
		if wanted {
			w.end()
		}
	}
	return nil
}

// runReader reads a run.
type runReader struct {
	rest  []byte // after body
	base  int64
	key   uint32
	body  []byte // of key
	batch []visits
}

// next goes to the next key, and reports whether there is one.
func (r *runReader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	step, n := binary.Uvarint(r.rest)
	size, m := binary.Uvarint(r.rest[n:])
	r.key += uint32(step)
	r.body = r.rest[n+m:][:size]
	r.rest = r.rest[n+m:][size:]
	return true
}

// read gives the requests of the key to w.
func (r *runReader) read(ctx context.Context, w walker) error {
	const batch = 4096
	last := r.base
	for rest := r.body; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.batch = r.batch[:0]
		for len(rest) > 0 && len(r.batch) < batch {
			var v visits
			v, rest = nextVisits(rest, last)
			r.batch = append(r.batch, v)
			last = v.at
		}
		w.see(r.batch)
	}
	return nil
}
