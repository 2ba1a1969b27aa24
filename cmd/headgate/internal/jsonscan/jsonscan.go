// Package jsonscan reads JSON without copying it: bodies of requests and lines of logs.
//
// It accepts a little more than JSON, such as control bytes in strings, \x16 and a bare dash,
// because loggers write them. json.Valid reports whether a text is JSON.
//
// It is written by hand because of the logs. With gjson, replay reads 0.45 times as many lines of
// JSON a second (0.52 million, not 1.16 million), and reading their tokens alone takes jsontext
// longer than all of a line takes here; jsontext refuses what loggers write, and gjson neither
// reports that a line is cut off nor reads \x16. internal/usage has a scanner of another kind: it
// gets its text in pieces, whose strings may have any length, and keeps 32 bytes of them.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"regexp"
	"unicode/utf8"
)

// Scanner reads one text.
type Scanner struct {
	text []byte
	at   int
}

// Of returns a scanner at the beginning of text.
func Of(text []byte) Scanner { return Scanner{text: text} }

// Peek returns the next byte that is not white space, or 0 at the end.
func (s *Scanner) Peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// Enter skips c, if it is next.
func (s *Scanner) Enter(c byte) bool {
	if s.Peek() != c || s.at == len(s.text) {
		return false
	}
	s.at++
	return true
}

// EnterText skips text, if it is next.
func (s *Scanner) EnterText(text []byte) bool {
	s.Peek()
	if !bytes.HasPrefix(s.text[s.at:], text) {
		return false
	}
	s.at += len(text)
	return true
}

// AtEnd reports whether only white space is left.
func (s *Scanner) AtEnd() bool { return s.Peek() == 0 && s.at == len(s.text) }

// Name reads the name of a member, as it is written, and the colon after it.
func (s *Scanner) Name() (quoted []byte, ok bool) {
	quoted, ok = s.quoted()
	return quoted, ok && s.Enter(':')
}

// Value reads a value of any kind, as it is written.
func (s *Scanner) Value() (raw []byte, ok bool) {
	switch s.Peek() {
	case '"':
		return s.quoted()
	case '{', '[':
		return s.nested()
	}
	begin := s.at
	for s.at < len(s.text) && isBare(s.text[s.at]) {
		s.at++
	}
	return s.text[begin:s.at], s.at > begin
}

// isBare reports whether c may be a part of a number, true, false or null.
func isBare(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' ||
		c == '-' || c == '+' || c == '.'
}

func (s *Scanner) quoted() (raw []byte, ok bool) {
	if s.Peek() != '"' {
		return nil, false
	}
	begin := s.at
	for i := begin + 1; ; i++ {
		n := bytes.IndexByte(s.text[i:], '"')
		if n < 0 {
			return nil, false
		}
		i += n
		if s.text[i-1] != '\\' || !endsInEscape(s.text[begin:i]) {
			s.at = i + 1
			return s.text[begin:s.at], true
		}
	}
}

// endsInEscape reports whether the last backslash of b escapes what comes after b.
func endsInEscape(b []byte) bool { return (len(b)-len(bytes.TrimRight(b, `\`)))%2 == 1 }

// nested reads an object or array by counting brackets outside of strings.
func (s *Scanner) nested() (raw []byte, ok bool) {
	begin := s.at
	for depth := 0; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '"':
			if _, ok := s.quoted(); !ok {
				return nil, false
			}
			s.at--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at++
				return s.text[begin:s.at], true
			}
		}
	}
	return nil, false
}

// escapes are those of a string. A character beyond \uFFFF takes two.
var escapes = regexp.MustCompile(`(?s)(\\u[0-9a-fA-F]{4})+|\\.`)

// Unquote returns the text of a string. It lies in quoted, unless that has escapes.
func Unquote(quoted []byte) (text []byte, ok bool) {
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, true
	}
	var decoded string
	if utf8.Valid(inside) && json.Unmarshal(quoted, &decoded) == nil {
		return []byte(decoded), true
	}
	ok = true
	text = escapes.ReplaceAllFunc(inside, func(escape []byte) []byte {
		if string(escape) == `\x` { // what nginx writes without escape=json
			return escape
		}
		ok = ok && json.Unmarshal([]byte(`"`+string(escape)+`"`), &decoded) == nil
		return []byte(decoded)
	})
	return text, ok
}
