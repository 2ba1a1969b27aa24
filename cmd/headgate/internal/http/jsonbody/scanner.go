package jsonbody

import (
	"bytes"
	"encoding/json"
)

// scanner walks along valid JSON without copying it. encoding/json reads what it finds; its own
// Decoder would cost more than all else of a decision.
type scanner struct{ text []byte }

// next returns the first byte after white space, 0 at the end.
func (s *scanner) next() byte {
	s.text = bytes.TrimLeft(s.text, " \t\r\n")
	if len(s.text) == 0 {
		return 0
	}
	return s.text[0]
}

// skip skips the byte that next returns.
func (s *scanner) skip() {
	s.next()
	s.text = s.text[1:]
}

// value returns the next value.
func (s *scanner) value() (raw []byte) {
	s.next()
	n, depth := 0, 0
	for n < len(s.text) {
		switch s.text[n] {
		case '"':
			n += endOfString(s.text[n:])
		case '{', '[':
			depth++
			n++
		case '}', ']':
			depth--
			n++
		default:
			n++
		}
		if depth == 0 && (n == len(s.text) || s.ends(n)) {
			break
		}
	}
	raw, s.text = s.text[:n], s.text[n:]
	return raw
}

// ends reports whether the value that begins s.text has ended before n.
func (s *scanner) ends(n int) bool {
	switch s.text[n-1] {
	case '"', '}', ']':
		return true
	}
	switch s.text[n] {
	case ',', ':', '}', ']', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// endOfString returns the length of the string that begins text, with its quotes.
func endOfString(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// unquote returns the text of a string in JSON.
func unquote(raw []byte) string {
	if !bytes.ContainsRune(raw, '\\') {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // it is a valid string
	return text
}
