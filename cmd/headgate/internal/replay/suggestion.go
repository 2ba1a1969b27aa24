package replay

import "regexp"

var (
	aTime = regexp.MustCompile(`\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?|` +
		`\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[\d.+:-]*(?:Z| [+-]\d\d:?\d\d)?`)
	anEpoch     = regexp.MustCompile(`\b1[4-9]\d{8}(?:\d{3}|\.\d+)?\b`)
	likeAddress = regexp.MustCompile(`(?:\d{1,3}\.){3}\d{1,3}|` +
		`\[?[\da-f]{1,4}:[\da-f:.]*::?[\da-f]+\]?`)

	// noClient is before an address in a version or a name, or one of a server.
	noClient = regexp.MustCompile(`(?:[\w.-]|\w/|` +
		`(?i:upstream|backend|server|target|dest|dst|local)[\w.-]*["=:\[ ]{1,3})$`)
	goesOn = regexp.MustCompile(`^(?:[\w-]|\.\w)`)

	aWord = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"',|\[\]()]+`)
	aName = regexp.MustCompile(`(?:^|[\s"',|\[(])[A-Za-z_][\w.-]*[=:]$`)
)

// longestSuggestion is the length of a format that is worth typing.
const longestSuggestion = 300

// suggestion returns a format that reads line, or nothing if line does not have one time and one
// address.
func suggestion(line []byte) string {
	a := aTime.FindIndex(line)
	if a == nil {
		a = anEpoch.FindIndex(line)
	}
	if a == nil {
		return ""
	}
	before, after := addresses(line[:a[0]]), addresses(line[a[1]:])
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
	if err != nil || len(text) > longestSuggestion ||
		newLayout(f, wanted{client: true}).parse(line, &e) != "" || !isAddress(e.addr) {
		return ""
	}
	return text
}

// addresses returns where text has addresses that may be a client.
func addresses(text []byte) (found [][]int) {
	for _, at := range likeAddress.FindAllIndex(text, -1) {
		if isAddress(text[at[0]:at[1]]) && !goesOn.Match(text[at[1]:]) &&
			!noClient.Match(text[max(0, at[0]-40):at[0]]) {
			found = append(found, at)
		}
	}
	return found
}

// blanks returns text with variables of no interest for its words, which may differ in the next
// line, but not for a name at its end.
func blanks(text []byte) string {
	name := aName.Find(text)
	words := string(text[:len(text)-len(name)])
	words = aWord.ReplaceAllStringFunc(words, func(word string) string {
		if quote := word[:1]; quote == `"` || quote == "'" {
			return quote + "$_" + quote
		}
		return "$_"
	})
	return words + string(name)
}
