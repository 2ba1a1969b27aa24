package replay

import (
	"regexp"
	"strings"
)

var (
	aTime = regexp.MustCompile(`\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?|` +
		`\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[\d.+:-]*Z?|\b1\d{9}(?:\.\d+)?\b`)
	anAddress = regexp.MustCompile(`(?:\d{1,3}\.){3}\d{1,3}|` +
		`\[?[\da-f]{1,4}:[\da-f:.]*::?[\da-f]+\]?`)

	// aWord is text that may differ in the next line, unless it ends as a name does.
	aWord = regexp.MustCompile(`"[^"]*"|[^\s"',|\[\]()=:@]+[=:]?`)
)

// suggestion returns a format that reads line, or nothing if line does not have one time and one
// address.
func suggestion(line []byte) string {
	a := aTime.FindIndex(line)
	if a == nil {
		return ""
	}
	before, after := anAddress.FindAllIndex(line[:a[0]], 2), anAddress.FindAllIndex(line[a[1]:], 2)
	first, second := "$time", "$remote_addr"
	var b []int
	switch {
	case len(before)+len(after) != 1:
		return ""
	case len(before) == 1:
		a, b, first, second = before[0], a, second, first
	default:
		b = []int{a[1] + after[0][0], a[1] + after[0][1]}
	}
	text := blanks(line[:a[0]]) + first + blanks(line[a[1]:b[0]]) + second
	if b[1] < len(line) {
		text += string(line[b[1]]) + "$_"
	}
	e := entry{}
	f, err := ParseFormat(text)
	if err != nil || newLayout(f, wanted{client: true}).parse(line, &e) != "" || e.addr == nil {
		return ""
	}
	return text
}

// blanks returns text with variables of no interest for its words.
func blanks(text []byte) string {
	return aWord.ReplaceAllStringFunc(string(text), func(word string) string {
		switch {
		case word[0] == '"':
			return `"$_"`
		case strings.HasSuffix(word, "="), strings.HasSuffix(word, ":"):
			return word
		}
		return "$_"
	})
}
