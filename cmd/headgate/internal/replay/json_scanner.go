package replay

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScanner reads one JSON text without copying it. It accepts a little more than JSON, such
// as control bytes in strings, because loggers write them.
type jsonScanner struct {
	b     []byte
	at    int
	plain []byte // strings that had escapes, without them
}

func (s *jsonScanner) begin(b []byte) { s.b, s.at, s.plain = b, 0, s.plain[:0] }

// peek returns the next byte that is not white space, or 0 at the end.
func (s *jsonScanner) peek() byte {
	for ; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (s *jsonScanner) atEnd() bool { return s.peek() == 0 && s.at == len(s.b) }

// enter skips c, if it is next.
func (s *jsonScanner) enter(c byte) bool {
	if s.peek() != c || s.at == len(s.b) {
		return false
	}
	s.at++
	return true
}

// key reads a member's name, as written, and the colon after it.
func (s *jsonScanner) key() (raw []byte, ok bool) {
	raw, ok = s.quoted()
	return raw, ok && s.enter(':')
}

// text reads a string and returns it without escapes.
func (s *jsonScanner) text() (v []byte, ok bool) {
	raw, ok := s.quoted()
	if !ok || bytes.IndexByte(raw, '\\') < 0 {
		return raw, ok
	}
	return s.unescape(raw)
}

// quoted reads a string as it is written, without its quotes.
func (s *jsonScanner) quoted() (raw []byte, ok bool) {
	if !s.enter('"') {
		return nil, false
	}
	begin := s.at
	for i := begin; ; i++ {
		j := bytes.IndexByte(s.b[i:], '"')
		if j < 0 {
			return nil, false
		}
		if i += j; s.b[i-1] != '\\' || !escaped(s.b[begin:], i-begin) {
			s.at = i + 1
			return s.b[begin:i], true
		}
	}
}

// bare reads a number, true, false or null.
func (s *jsonScanner) bare() (v []byte, ok bool) {
	s.peek()
	begin := s.at
	for s.at < len(s.b) {
		c := s.b[s.at]
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '+' && c != '.' {
			break
		}
		s.at++
	}
	return s.b[begin:s.at], s.at > begin
}

// skip skips a value of any kind.
func (s *jsonScanner) skip() bool {
	switch s.peek() {
	case '"':
		_, ok := s.quoted()
		return ok
	case '{', '[':
		return s.skipNested()
	default:
		_, ok := s.bare()
		return ok
	}
}

// skipNested skips an object or array by counting brackets outside of strings.
func (s *jsonScanner) skipNested() bool {
	for depth := 0; s.at < len(s.b); {
		switch s.b[s.at] {
		case '"':
			if _, ok := s.quoted(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at++
				return true
			}
		}
		s.at++
	}
	return false
}

// unescape returns raw without its escapes, in s.plain, where it stays until begin.
func (s *jsonScanner) unescape(raw []byte) (v []byte, ok bool) {
	begin := len(s.plain)
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			s.plain = append(s.plain, c)
			continue
		}
		i++
		switch c = raw[i]; c {
		case '"', '\\', '/':
			s.plain = append(s.plain, c)
		case 'b', 'f', 'n', 'r', 't':
			s.plain = append(s.plain, "\b\f\n\r\t"[strings.IndexByte("bfnrt", c)])
		case 'u':
			r, n := codePoint(raw[i+1:])
			if n == 0 {
				return nil, false
			}
			s.plain = utf8.AppendRune(s.plain, r)
			i += n
		case 'x': // not JSON, but what nginx writes without escape=json
			s.plain = append(s.plain, '\\', 'x')
		default:
			return nil, false
		}
	}
	return s.plain[begin:len(s.plain):len(s.plain)], true
}

// codePoint reads the hex digits of \uXXXX, and of the second half of a pair. n is the number of
// bytes read, or 0.
func codePoint(b []byte) (r rune, n int) {
	hi, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(hi) {
		return hi, 4
	}
	if len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		lo, _ := hex4(b[6:])
		if r := utf16.DecodeRune(hi, lo); r != utf8.RuneError {
			return r, 10
		}
	}
	return utf8.RuneError, 4
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}
