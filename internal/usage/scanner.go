package usage

// path is the place of a value in a JSON document: the names that lead to it. An element of an
// array has no name, and a name that no provider uses is empty.
type path [4]string

// scanner reads values out of JSON that comes byte by byte, in constant memory. It does not
// validate. It reads nothing inside strings, and an outermost array is not part of a path.
type scanner struct {
	names map[string]string // those that providers use

	// value is called with each number, true, false and null that has one of the names.
	value func(at path, text []byte)
	end   func() // of a document

	at      path
	depth   int
	array   bool // the outermost value is an array
	quoted  bool // inside a string
	escaped bool // after a backslash
	literal bool // inside a number or another literal
	text    [32]byte
	length  int // of text; more than fits: too long for a name or a number
}

func (s *scanner) next(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.quoted && b == '\\':
		s.escaped, s.length = true, len(s.text) // no name that providers use has an escape
		s.keep(b)
	case b == '"':
		s.quoted, s.literal = !s.quoted, false
		if s.quoted {
			s.length = 0
		}
	case s.quoted:
		s.keep(b)
	default:
		s.token(b)
	}
}

// keep adds b to the text.
func (s *scanner) keep(b byte) {
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
		if s.literal && s.depth > 0 && s.depth <= len(s.at) && s.at[s.depth-1] != "" {
			s.value(s.at, s.word())
		}
		s.literal = false
	}
	switch b {
	case ' ', '\t', '\r', '\n':
	case ':':
		s.name(s.names[string(s.word())])
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
	}
	s.end()
	s.array = false
}
