package replay

import (
	"slices"
	"strings"
	"testing"
)

// drain gives the records of o that are ready, or all.
func drain(o *reorder, all bool) (out []record) {
	for o.ready() || all && o.len() > 0 {
		out = append(out, o.pop())
	}
	return out
}

func TestReorder(t *testing.T) {
	for _, c := range []struct {
		name   string
		window int64
		max    int
		in     []int64 // times, in the order of lines
		want   []record
		late   int64
	}{
		{"in order", 10, maxHeld, []int64{1, 2, 3}, []record{{at: 1, line: 0}, {at: 2, line: 1}, {at: 3, line: 2}}, 0},
		{"put in its place", 10, maxHeld, []int64{5, 20, 12}, []record{{at: 5, line: 0}, {at: 12, line: 2}, {at: 20, line: 1}}, 0},
		{"same time keeps order", 10, maxHeld, []int64{5, 9, 5, 9, 5}, []record{{at: 5, line: 0}, {at: 5, line: 2}, {at: 5, line: 4}, {at: 9, line: 1}, {at: 9, line: 3}}, 0},
		{"as late as may be", 10, maxHeld, []int64{20, 10}, []record{{at: 10, line: 1}, {at: 20, line: 0}}, 0},
		{"too late", 10, maxHeld, []int64{20, 9}, []record{{at: 10, line: 1}, {at: 20, line: 0}}, 1},
		{"no window", 0, maxHeld, []int64{5, 3, 7, 6, 7}, []record{{at: 5, line: 0}, {at: 5, line: 1}, {at: 7, line: 2}, {at: 7, line: 3}, {at: 7, line: 4}}, 2},
		{"full", 1000, 2, []int64{5, 7, 6, 9, 3}, []record{{at: 5, line: 0}, {at: 6, line: 2}, {at: 7, line: 1}, {at: 7, line: 4}, {at: 9, line: 3}}, 1},
	} {
		o := &reorder{window: c.window, max: c.max}
		var got []record
		for line, at := range c.in {
			o.push(record{at: at, line: int64(line)})
			got = append(got, drain(o, false)...)
		}
		got = append(got, drain(o, true)...)
		if !slices.Equal(got, c.want) || o.late != c.late {
			t.Errorf("%s: %v, %d late; want %v, %d late", c.name, got, o.late, c.want, c.late)
		}
	}
}

// testSource is a source of the times of text, letters standing for seconds.
func testSource(text string) *source {
	var log strings.Builder
	for _, c := range text {
		log.WriteString(`198.18.0.1 - - [17/Dec/2025:09:03:` + string([]rune{'0' + (c-'a')/10, '0' + (c-'a')%10}) + " +0000] \"GET / HTTP/1.1\" 200 1\n")
	}
	c := Reading{By: ByIP, Reorder: 2e9}
	return newSource(Log{Name: text, Reader: strings.NewReader(log.String())}, c, sink{names: newKeyIDs()}, &progress{ended: func() error { return nil }})
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ logs, want string }{
		{"", ""},
		{"abc", "abc"},
		{"abc def", "abcdef"},
		{"def abc", "abcdef"},
		{"ace bdf", "abcdef"},
		{"aab abb", "aaabbb"},
		{"acb cab  bca", "aaabbbccc"},
		{"azb bcd", "abcdxz"}, // b runs as x: z less two seconds
	} {
		var sources []*source
		for log := range strings.SplitSeq(c.logs, " ") {
			sources = append(sources, testSource(log))
		}
		m, err := newMerge(sources)
		var got []byte
		for err == nil {
			var r record
			var ok bool
			if r, ok, err = m.next(); !ok {
				break
			}
			got = append(got, byte('b'+(r.at-at0903)/1_000_000))
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s merged is %s, %v; want %s", c.logs, got, err, c.want)
		}
	}
}

// Requests of the same time come in the order of the logs, then of their lines.
func TestMergeTies(t *testing.T) {
	sources := []*source{testSource("aab"), testSource("aab")}
	m, err := newMerge(sources)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for range 6 {
		top := m.heads[0].source.index
		r, _, err := m.next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, byte('A'+top), byte('0'+r.line), ' ')
	}
	if want := "A1 A2 B1 B2 A3 B3 "; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}
