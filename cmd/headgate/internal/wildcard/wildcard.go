// Package wildcard matches texts with patterns in which * stands for any text.
package wildcard

import "strings"

// Has reports whether pattern has a wildcard.
func Has(pattern string) bool { return strings.Contains(pattern, "*") }

// Match reports whether text is pattern, where each * stands for any text, also an empty one.
func Match[T string | []byte](pattern string, text T) bool {
	p, t := 0, 0
	star, end := -1, 0 // the last * so far, and the end of what it stands for
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, end = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0: // it stands for one byte more
			end++
			p, t = star+1, end
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
