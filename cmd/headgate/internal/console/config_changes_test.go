package console

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// The first load is no change, nor is one of the same lines. The last ten changes are known.
func TestChanges(t *testing.T) {
	at, l := time.UnixMilli(1000), &loaded{}
	load := func(lines ...string) {
		l = &loaded{at: at, lines: lines, changes: l.changedBy(lines, at)}
	}
	load("rule a: 1/s", "rule b: 2/s")
	load("rule a: 1/s", "rule b: 2/s")
	if len(l.changes) != 0 {
		t.Errorf("%+v", l.changes)
	}
	load("rule a: 1/s", "rule b: 3/s", "rule c: 1/s")
	c := l.changes[0]
	if c.At != 1000 || !slices.Equal(c.Removed, []string{"rule b: 2/s"}) ||
		!slices.Equal(c.Added, []string{"rule b: 3/s", "rule c: 1/s"}) {
		t.Errorf("%+v", c)
	}
	var many []string
	for i := range 15 {
		many = append(many, "rule "+strconv.Itoa(i)+": 1/s", "rule x"+strconv.Itoa(i)+": 1/s")
		load(many...)
	}
	load()
	c = l.changes[len(l.changes)-1]
	if len(l.changes) != maxChanges || len(c.Removed) != maxChangedLines || c.Added == nil {
		t.Errorf("%d changes, the last %+v", len(l.changes), c)
	}
}
