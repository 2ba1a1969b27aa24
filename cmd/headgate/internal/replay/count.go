package replay

import (
	"iter"
	"time"
)

// count counts the requests, by key and in all.
type count struct {
	names    *names
	asked    []int64 // by key
	requests int64
	from, to int64 // the first and the last record
	second   int64 // of the last record,
	inSecond int64 // and the records in it
	peak     Peak
}

// add counts r, which is not earlier than the record before.
func (t *count) add(r record) {
	if t.requests == 0 {
		t.from = r.at
	}
	t.requests++
	t.to = r.at
	t.asked = grown(t.asked, r.key)
	t.asked[r.key]++
	if second := r.at / 1_000_000; second != t.second {
		t.second, t.inSecond = second, 0
	}
	t.inSecond++
	if t.inSecond > t.peak.Requests {
		t.peak = Peak{At: time.Unix(t.second, 0).UTC(), Requests: t.inSecond}
	}
}

// grown returns s with room for index i.
func grown[T any](s []T, i uint32) []T {
	if n := int(i) + 1 - len(s); n > 0 {
		return append(s, make([]T, n)...)
	}
	return s
}

// result adds to r, a limit and what it denied, the numbers of the logs and the keys of keys that
// it denied most.
func (t *count) result(r Result, top int, keys iter.Seq[deniedKey]) Result {
	r.Requests, r.Allowed, r.Keys = t.requests, t.requests-r.Denied, int64(len(t.asked))
	r.Top = []TopDenied{}
	for _, d := range t.names.mostDenied(top, keys) {
		r.Top = append(r.Top, TopDenied{
			Key:      LogKey(t.names.keys[d.key]),
			Requests: t.asked[d.key],
			Denied:   d.denied,
			Share:    float64(d.denied) / float64(r.Denied),
		})
	}
	return r
}
