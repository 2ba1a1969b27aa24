package replay

import (
	"cmp"
	"math/rand/v2"
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
		in     []int64 // times, in the order of lines
		want   []record
		late   int64
	}{
		{"in order", 10, []int64{1, 2, 3}, []record{{at: 1, line: 0}, {at: 2, line: 1}, {at: 3, line: 2}}, 0},
		{"put in its place", 10, []int64{5, 20, 12}, []record{{at: 5, line: 0}, {at: 12, line: 2}, {at: 20, line: 1}}, 0},
		{"same time keeps order", 10, []int64{5, 9, 5, 9, 5}, []record{{at: 5, line: 0}, {at: 5, line: 2}, {at: 5, line: 4}, {at: 9, line: 1}, {at: 9, line: 3}}, 0},
		{"as late as may be", 10, []int64{20, 10}, []record{{at: 10, line: 1}, {at: 20, line: 0}}, 0},
		{"too late", 10, []int64{20, 9}, []record{{at: 10, line: 1}, {at: 20, line: 0}}, 1},
		{"no window", 0, []int64{5, 3, 7, 6, 7}, []record{{at: 5, line: 0}, {at: 5, line: 1}, {at: 7, line: 2}, {at: 7, line: 3}, {at: 7, line: 4}}, 2},
	} {
		o := &reorder{window: c.window, max: maxHeld}
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

// Whatever comes in goes out, once, in the order of time; and what was not too
// late, as if all had been sorted.
func TestReorderSorts(t *testing.T) {
	sorted := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		o := &reorder{window: random.Int64N(120), max: maxHeld}
		if seed%3 == 0 {
			o.max = 1 + random.IntN(20)
		}
		var in, out []record
		for line := range int64(1000) {
			r := record{at: max(1, line/3+random.Int64N(60)), line: line}
			in = append(in, r)
			o.push(r)
			out = append(out, drain(o, false)...)
			if o.len() > o.max {
				t.Fatalf("seed %d: holds %d, may %d", seed, o.len(), o.max)
			}
		}
		out = append(out, drain(o, true)...)
		checkOrder(t, in, out, o.late)
		if o.late == 0 {
			sorted++
		}
	}
	if sorted < 20 {
		t.Errorf("only %d of 200 tries had no late record", sorted)
	}
}

func checkOrder(t *testing.T, in, out []record, late int64) {
	t.Helper()
	if len(out) != len(in) {
		t.Fatalf("%d in, %d out", len(in), len(out))
	}
	if !slices.IsSortedFunc(out, func(a, b record) int { return cmp.Compare(a.at, b.at) }) {
		t.Fatal("not in order")
	}
	moved := int64(0)
	seen := make(map[int64]bool)
	for _, r := range out {
		if seen[r.line] {
			t.Fatalf("line %d came twice", r.line)
		}
		seen[r.line] = true
		if was := in[r.line]; was.at > r.at {
			t.Fatalf("%v ran early at %d", was, r.at)
		} else if was.at < r.at {
			moved++
		}
	}
	if moved != late {
		t.Fatalf("%d moved, %d counted", moved, late)
	}
	if late == 0 {
		slices.SortStableFunc(in, func(a, b record) int { return cmp.Compare(a.at, b.at) })
		if !slices.Equal(in, out) {
			t.Fatal("not sorted by time and line")
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
