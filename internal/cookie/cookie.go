// Package cookie reads cookies whose values net/http drops.
package cookie

import "strings"

// Value returns the value of the first cookie of that name in the lines of the field Cookie, and ""
// if there is none. Quotes around it are removed. net/http takes a cookie such as {"a":1} or café
// for none, so that its owner would share a key with all clients without one.
func Value(lines []string, name string) string {
	for _, line := range lines {
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
