package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	runRequests = 1 << 21   // requests sorted by key at a time
	heldBytes   = 256 << 20 // of runs held in memory; later runs go to a file
)

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
	held    int // bytes of runs in memory
	maxHeld int
	file    *os.File // nil while all runs are in memory
	written int64
}

// run is the history of a part of the log, sorted by key.
type run struct {
	bytes    []byte // nil if it is in the file
	at, size int64  // where in the file
	base     int64  // times count from here
}

func newHistory() *history { return &history{perRun: runRequests, maxHeld: heldBytes} }

// close removes the file.
func (h *history) close() {
	if h.file != nil {
		h.file.Close()
		os.Remove(h.file.Name()) // for systems that do not remove open files
	}
}

// add adds r, which is not earlier than the record before.
func (h *history) add(r record) error {
	h.ats = append(h.ats, r.at)
	h.keys = append(h.keys, r.key)
	if len(h.ats) < h.perRun {
		return nil
	}
	return h.flush()
}

// flush makes a run of the requests that are in none.
func (h *history) flush() error {
	if len(h.ats) == 0 {
		return nil
	}
	h.sort()
	r := run{base: h.ats[0] / 1e6 * 1e6}
	r.bytes = h.encode(r.base)
	h.ats, h.keys = h.ats[:0], h.keys[:0]
	if h.held+len(r.bytes) > h.maxHeld {
		if err := h.write(&r); err != nil {
			return fmt.Errorf("replay: keep the requests in a temporary file: %w", err)
		}
	}
	h.held += len(r.bytes)
	h.runs = append(h.runs, r)
	return nil
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

// write moves r to the file.
func (h *history) write(r *run) (err error) {
	if h.file == nil {
		if h.file, err = os.CreateTemp("", "headgate-size-*"); err != nil {
			return err
		}
		os.Remove(h.file.Name()) // the open file disappears even if the process is killed
	}
	r.at, r.size = h.written, int64(len(r.bytes))
	if _, err := h.file.WriteAt(r.bytes, r.at); err != nil {
		return err
	}
	h.written += r.size
	r.bytes = nil
	return nil
}

// A walker is called with the requests of each key, in the order of keys.
type walker interface {
	begin(key uint32) (wanted bool)
	see(vs []visits) // in the order of time; more than once for a key with many
	end()
}

// walk reads the history. No request may be added after.
func (h *history) walk(ctx context.Context, w walker) error {
	if err := h.flush(); err != nil {
		return err
	}
	h.ats, h.keys, h.order, h.nextKey = nil, nil, nil, nil
	readers := make([]*runReader, 0, len(h.runs))
	for _, r := range h.runs {
		var from io.Reader = bytes.NewReader(r.bytes)
		if r.bytes == nil {
			from = io.NewSectionReader(h.file, r.at, r.size)
		}
		readers = append(readers, &runReader{from: bufio.NewReaderSize(from, 64<<10), base: r.base})
	}
	return walkRuns(ctx, readers, w)
}

func walkRuns(ctx context.Context, readers []*runReader, w walker) (err error) {
	open := readers[:0]
	for _, r := range readers {
		if r.next() {
			open = append(open, r)
		}
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
			if r.key == key {
				if err = r.read(ctx, wanted, w); err != nil {
					return err
				}
			}
			if r.key != key || r.next() {
				left = append(left, r)
			}
			if r.err != nil {
				return unreadable(r.err)
			}
		}
		open = left
		if wanted {
			w.end()
		}
	}
	return nil
}

func unreadable(err error) error { return fmt.Errorf("replay: read the temporary file: %w", err) }

// runReader reads a run.
type runReader struct {
	from  *bufio.Reader
	base  int64
	key   uint32
	size  int // of the body of key
	body  []byte
	batch []visits
	err   error
}

// next goes to the next key, and reports whether there is one.
func (r *runReader) next() bool {
	step, err := binary.ReadUvarint(r.from)
	if err != nil {
		if err != io.EOF { //nolint:errorlint // ReadUvarint returns io.EOF itself
			r.err = err
		}
		return false
	}
	size, err := binary.ReadUvarint(r.from)
	r.key, r.size, r.err = r.key+uint32(step), int(size), err
	return err == nil
}

// read gives the requests of the key to w, or skips them.
func (r *runReader) read(ctx context.Context, wanted bool, w walker) error {
	if !wanted {
		if _, err := r.from.Discard(r.size); err != nil {
			return unreadable(err)
		}
		return nil
	}
	if cap(r.body) < r.size {
		r.body = make([]byte, r.size)
	}
	r.body = r.body[:r.size]
	if _, err := io.ReadFull(r.from, r.body); err != nil {
		return unreadable(err)
	}
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
