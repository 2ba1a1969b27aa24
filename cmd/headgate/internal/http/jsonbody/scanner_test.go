package jsonbody

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzScanner: the scanner finds the members that encoding/json finds.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : 1 , "b":[{"}":"]"}, 2] } `, `{"a\\":"\"","\u0061":null}`, `{"a":-1.5e3}`, `{"":{}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := json.NewDecoder(bytes.NewReader(text))
		if !json.Valid(text) {
			return
		}
		s := scanner{text}
		if open, _ := d.Token(); open != json.Delim('{') {
			return
		}
		s.skip()
		for d.More() {
			key, _ := d.Token()
			var want json.RawMessage
			if err := d.Decode(&want); err != nil {
				t.Fatal(err)
			}
			if got := unquote(s.value()); got != key && bytes.Equal(text, bytes.ToValidUTF8(text, nil)) {
				t.Fatalf("the key is %q, want %q", got, key)
			}
			s.skip()
			if got := s.value(); !bytes.Equal(got, want) {
				t.Fatalf("the value is %q, want %q", got, want)
			}
			if s.next() == ',' {
				s.skip()
			}
		}
		if s.next() != '}' {
			t.Fatalf("%q is left", s.text)
		}
	})
}
