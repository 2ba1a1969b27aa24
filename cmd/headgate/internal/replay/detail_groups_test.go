package replay

import (
	"reflect"
	"strings"
	"testing"
)

// More names than there is room for: what is listed is exact, and nothing is lost.
func TestGroupsBounded(t *testing.T) {
	g := newGroups(4)
	for _, name := range []string{"a", "b", "c", "a", "", "(none)", "d", "(other)", "c"} {
		g.add(g.id([]byte(name)), []bool{name == "c"})
	}
	want := []Group{{"(none)", 2, []int64{0}}, {"a", 2, []int64{0}}, {"b", 1, []int64{0}}, {"(other)", 4, []int64{2}}}
	if got := g.list([]int64{2}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
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
		if got := g.all[g.id([]byte(name))].name; got != want {
			t.Errorf("%q is cut to %q, want %q", name[500:], got[500:], want[500:])
		}
	}
}
