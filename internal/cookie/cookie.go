// Package cookie reads cookies whose values net/http drops.
package cookie

import (
	"net/http"
	"strings"
)

// Value returns the value of the first cookie of that name, and "" if there is none. Quotes around
// it are removed. net/http takes a cookie such as {"a":1} or café for none, so that its owner
// would share a key with all clients without one.
func Value(h http.Header, name string) string {
	for _, line := range h["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			n, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
			if strings.TrimRight(n, " \t") != name {
				continue
			}
			if inner, ok := strings.CutPrefix(value, `"`); ok && strings.HasSuffix(inner, `"`) {
				return inner[:len(inner)-1]
			}
			return value
		}
	}
	return ""
}
