package headgate

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// TestDenyCacheIsBounded floods it: it remembers as many as it has room for, the latest
// of them, and nothing grows. Long keys are not kept.
func TestDenyCacheIsBounded(t *testing.T) {
	const keys = 1000
	c := must(NewDenyCache(NewMemory(0), DenyCacheOptions{Keys: keys, MaxTrust: time.Hour}))
	sets := len(c.sets)
	l, at := FixedWindow(1, 24*time.Hour), time.Unix(4e9, 0)
	deny := func(key string) (served bool) {
		before := c.Stats().Served
		for range 2 {
			must(c.Take(t.Context(), Request{Key: key, Limit: l, Cost: 1, At: at}))
		}
		return c.Stats().Served == before+2
	}
	deny(strings.Repeat("long", 1000))
	for i := range 20 * keys {
		key := strconv.Itoa(i)
		deny(key)
		if !deny(key) {
			t.Fatalf("key %s was forgotten at once", key)
		}
	}
	kept, newest := 0, 0
	for i := range c.sets {
		for _, e := range c.sets[i].of {
			if len(e.key) > longestDenied {
				t.Errorf("a key of %d bytes is kept", len(e.key))
			}
			if e.l == nil {
				continue
			}
			kept++
			if n := must(strconv.Atoi(e.key)); n >= 19*keys {
				newest++
			}
		}
	}
	if len(c.sets) != sets || kept != keys || newest < keys/3 {
		t.Errorf("%d kept in %d sets, %d of them new; want %d in %d", kept, len(c.sets), newest, keys, sets)
	}
	if size := unsafe.Sizeof(denials{}) / places; size > 170 {
		t.Errorf("%d bytes each; want at most 170", size)
	}
}

// TestDenialsCompareInFull: keys whose hashes are alike are apart, and so are limits.
func TestDenialsCompareInFull(t *testing.T) {
	day, other := FixedWindow(1, 24*time.Hour), FixedWindow(2, 24*time.Hour)
	q := question{denials: new(denials), tag: 7, key: "k", l: day.rule, cost: 1, asked: instant{own: 1, at: 1}}
	q.learn(Decision{Limit: day, RetryAfter: time.Hour, ResetAfter: time.Hour}, 1, 0)
	for _, c := range []struct {
		key   string
		l     Limit
		known bool
	}{{"k", day, true}, {"kk", day, false}, {"k", other, false}} {
		q.key, q.l = c.key, c.l.rule
		if _, known := q.answer(1000); known != c.known {
			t.Errorf("%s, %s: known is %v", c.key, c.l, known)
		}
		if e := q.find(); (e != nil) != c.known {
			t.Errorf("%s, %s: found %v", c.key, c.l, e != nil)
		}
	}
}
