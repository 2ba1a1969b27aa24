package headgate

import (
	"runtime"
	"sync"
	"weak"
)

// rules holds the rule of every Limit in use, by its terms: that makes a Limit
// one pointer, and equality of pointers equality of limits. A rule that no Limit
// points to any more is collected, so limits made at run time do not pile up.
var rules sync.Map // terms -> weak.Pointer[rule]

// newLimit gives the one Limit of terms t.
func newLimit(t terms) Limit {
	var fresh *rule
	for {
		known, ok := rules.Load(t)
		if ok {
			pointer, _ := known.(weak.Pointer[rule])
			if r := pointer.Value(); r != nil {
				return Limit{r}
			}
			rules.CompareAndDelete(t, known)
			continue
		}
		if fresh == nil {
			fresh = newRule(t)
		}
		pointer := weak.Make(fresh)
		if _, taken := rules.LoadOrStore(t, pointer); !taken {
			runtime.AddCleanup(fresh, func(t terms) { rules.CompareAndDelete(t, pointer) }, t)
			return Limit{fresh}
		}
	}
}
