package usage

import "unicode/utf8"

// path is the place of a value in a JSON document: the names that lead to it. An element of an
// array has no name, and a name that no provider uses is empty, or unclear.
type path [5]string

// unclear is a name with an escape or a letter beyond ASCII, which may be any name to a server, or
// one of the names in another case, which some servers read as the same.
const unclear = "\\"

// scanner reads values out of JSON that comes byte by byte, in constant memory. It is written by
// hand because jsontext and encoding/json hold a string until it ends, however long it is, and
// want to read, where a body that passes can only push. It does not validate. It reads nothing
// inside strings, and an outermost array is not part of a path.
type scanner struct {
	names map[string]string // those that providers use, by their lower case

	// value is called with each string, number, true, false and null that has one of the names. The
	// text is empty if it is too long.
	value  func(at path, text []byte, quoted bool)
	naming func(at path) // nil, or called with the place of each value that has one of them
	end    func()        // nil, or called at the end of a document

	at      path
	depth   int
	array   bool // the outermost value is an array
	quoted  bool // inside a string
	escaped bool // after a backslash
	odd     bool // the string is unclear as a name
	literal bool // inside a number or another literal
	text    [32]byte
	length  int // of text; more than fits: too long for a name or a number
}

// push reads p. If a string is too long for a name, push only looks for its end.
func (s *scanner) push(p []byte) {
	for i := 0; i < len(p); i++ {
		if s.quoted && !s.escaped && s.length > len(s.text) {
			for i < len(p)-1 && p[i] != '"' && p[i] != '\\' {
				i++
			}
		}
		s.next(p[i])
	}
}

func (s *scanner) next(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.quoted && b == '\\':
		s.escaped, s.odd = true, true
	case b == '"':
		s.quoted, s.literal = !s.quoted, false
		if s.quoted {
			s.length, s.odd = 0, false
		} else if s.named() {
			s.value(s.at, s.word(), true)
		}
	case s.quoted:
		s.keep(b)
	default:
		s.token(b)
	}
}

// named reports whether the value that is read has one of the names.
func (s *scanner) named() bool {
	return s.depth > 0 && s.depth <= len(s.at) && s.at[s.depth-1] != ""
}

// keep adds b to the text.
func (s *scanner) keep(b byte) {
	s.odd = s.odd || b >= utf8.RuneSelf
	if s.length < len(s.text) {
		s.text[s.length] = b
	}
	s.length = min(s.length+1, len(s.text)+1)
}

// word returns the text; none if it is too long.
func (s *scanner) word() []byte {
	if s.length > len(s.text) {
		return nil
	}
	return s.text[:s.length]
}

// token reads a byte outside of strings.
func (s *scanner) token(b byte) {
	switch b {
	case '{', '[', '}', ']', ',', ' ', '\t', '\r', '\n':
		if s.literal && s.named() {
			s.value(s.at, s.word(), false)
		}
		s.literal = false
	}
	switch b {
	case ' ', '\t', '\r', '\n':
	case ':':
		s.name(s.nameOf(s.word()))
		if s.naming != nil && s.named() {
			s.naming(s.at)
		}
	case ',':
		s.name("")
	case '{', '[':
		if b == '[' && s.depth == 0 && !s.array {
			s.array = true
			return
		}
		s.depth++
	case '}', ']':
		s.close()
	default:
		if !s.literal {
			s.literal, s.length = true, 0
		}
		s.keep(b)
	}
}

// nameOf returns the name that word is, or may be.
func (s *scanner) nameOf(word []byte) string {
	lower := s.text
	for i, b := range word {
		if 'A' <= b && b <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	name := s.names[string(lower[:len(word)])]
	if s.odd || name != "" && name != string(word) {
		return unclear
	}
	return name
}

// name sets the name of the next value.
func (s *scanner) name(name string) {
	if s.depth > 0 && s.depth <= len(s.at) {
		s.at[s.depth-1] = name
	}
}

// close ends an object or an array.
func (s *scanner) close() {
	if s.depth > 0 {
		s.name("")
		s.depth--
		if s.depth > 0 || s.array {
			return
		}
	} else if !s.array {
		return
	}
	if s.end != nil {
		s.end()
	}
	s.array = false
}
