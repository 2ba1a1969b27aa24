package algorithm

import (
	"runtime"
	"sync"
	"weak"
)

// rules holds the rule of every limit in use, by its terms: equal limits share one
// pointer, so comparing pointers compares limits. A rule that no limit points to any more
// is collected, so limits that are made at run time do not pile up.
var rules sync.Map // Terms -> weak.Pointer[Rule]

// Intern returns the one rule of terms t, which create makes if there is none.
func Intern(t Terms, create func(Terms) *Rule) *Rule {
	var fresh *Rule
	for {
		known, ok := rules.Load(t)
		if ok {
			pointer, _ := known.(weak.Pointer[Rule])
			if r := pointer.Value(); r != nil {
				return r
			}
			rules.CompareAndDelete(t, known)
			continue
		}
		if fresh == nil {
			fresh = create(t)
		}
		pointer := weak.Make(fresh)
		if _, taken := rules.LoadOrStore(t, pointer); !taken {
			runtime.AddCleanup(fresh, func(t Terms) { rules.CompareAndDelete(t, pointer) }, t)
			return fresh
		}
	}
}
