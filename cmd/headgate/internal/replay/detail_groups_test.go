package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// More names than there is room for: what is listed is exact, and nothing is lost.
func TestGroupsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := newGroups(64)
	requests, denied := map[string]int64{}, map[string]int64{}
	total := int64(0)
	type held struct {
		id   uint32
		name string
	}
	var queue []held
	for i := range 30_000 {
		name := fmt.Sprintf("/%d", int(r.ExpFloat64()*40))
		if i > 20_000 && r.IntN(3) == 0 {
			name = "/late" // dropped names must not keep it out
		}
		if r.IntN(5) == 0 {
			name = fmt.Sprintf("/once/%d", i)
		}
		queue = append(queue, held{g.hold([]byte(name)), name})
		if len(queue) > 20 {
			h := queue[0]
			queue = queue[1:]
			d := r.IntN(4) == 0
			g.add(h.id, []bool{d})
			requests[h.name]++
			if d {
				denied[h.name]++
				total++
			}
		}
	}
	if len(g.all) > 64 || len(g.ids) > 64 {
		t.Fatalf("%d groups of %d names, want at most 64", len(g.all), len(g.ids))
	}
	list := g.list([]int64{total})
	var listed, listedDenied, exact int64
	for _, k := range list {
		listed += k.Requests
		listedDenied += k.Denied[0]
		if k.Name == "(other)" {
			continue
		}
		exact++
		if k.Requests != requests[string(k.Name)] || k.Denied[0] != denied[string(k.Name)] {
			t.Errorf("%s: %d of %d denied, want %d of %d", k.Name, k.Denied[0], k.Requests,
				denied[string(k.Name)], requests[string(k.Name)])
		}
	}
	if listed != 30_000-20 || listedDenied != total {
		t.Errorf("%d of %d denied, want %d of %d", listedDenied, listed, total, 30_000-20)
	}
	if exact < 10 || list[0].Name != "/late" {
		t.Errorf("%d names, the first %q; want more, and /late", exact, list[0].Name)
	}
}

// Groups that are all held make way for none.
func TestGroupsHeld(t *testing.T) {
	g := newGroups(4)
	a, b, c := g.hold([]byte("a")), g.hold([]byte("b")), g.hold([]byte("c"))
	if a == b || a <= none || b <= none || c != other {
		t.Errorf("numbers %d, %d, %d; want two, and other", a, b, c)
	}
	g.add(a, nil)
	if d := g.hold([]byte("d")); d != a {
		t.Errorf("the number is %d, want the free %d", d, a)
	}
	if again := g.hold([]byte("a")); again != other {
		t.Errorf("a name that was dropped has number %d, want other", again)
	}
	for name, want := range map[string]uint32{"": none, "(none)": none, "(other)": other} {
		if got := g.hold([]byte(name)); got != want {
			t.Errorf("%q has number %d, want %d", name, got, want)
		}
	}
}

func TestGroupNamesAreCut(t *testing.T) {
	g := newGroups(100)
	long := strings.Repeat("x", longestName-1)
	for name, want := range map[string]string{
		long + "y":                   long + "y",
		long + "yz":                  long + "y…",
		long + "äz":                  long + "…",
		long + "\xff":                long + "\xff",
		strings.Repeat("\x80", 2000): strings.Repeat("\x80", longestName-4) + "…",
	} {
		if got := g.all[g.hold([]byte(name))].name; got != want {
			t.Errorf("%q is cut to %q, want %q", name[500:], got[500:], want[500:])
		}
	}
}
