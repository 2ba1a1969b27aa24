package jsonscan

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzScanner: of valid JSON, the scanner finds the members that encoding/json finds.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : 1 , "b":[{"}":"]"}, 2] } `, `{"a\\":"\"","\u0061":null}`, `{"a":-1.5e3}`, `{"":{}}`,
		`{"a":"\ud83d\ude00\u0041\ud83d\ude00\ud83d\u0041\\u0041\/\n"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := json.NewDecoder(bytes.NewReader(text))
		if open, _ := d.Token(); !json.Valid(text) || !utf8.Valid(text) || open != json.Delim('{') {
			return
		}
		s := Of(text)
		s.Enter('{')
		for d.More() {
			key, _ := d.Token()
			var want json.RawMessage
			if err := d.Decode(&want); err != nil {
				t.Fatal(err)
			}
			name, _ := s.Name()
			if got, ok := Unquote(name); !ok || string(got) != key {
				t.Fatalf("the name is %q, want %q", got, key)
			}
			value, ok := s.Value()
			if !ok || !bytes.Equal(value, want) {
				t.Fatalf("the value is %q, want %q", value, want)
			}
			s.Enter(',')
		}
		if !s.Enter('}') || !s.AtEnd() {
			t.Fatalf("%q is left", s.text[s.at:])
		}
	})
}

func TestTextsBeyondJSON(t *testing.T) {
	for quoted, want := range map[string]string{
		`"/\x16\"a"`:                `/\x16"a`,
		"\"\xff\\u0041\\/\t\"":      "\xffA/\t",
		"\"\xff\\ud83d\\ude00\\n\"": "\xff😀\n",
		"\"\xff\\ud83d\\u0041\"":    "\xff\ufffdA",
		"\"\xff\\\\x16\"":           "\xff\\x16",
		`"\q"`:                      "not a text",
		`"\u00g0"`:                  "not a text",
		`"\x16\u1"`:                 "not a text",
	} {
		got, ok := Unquote([]byte(quoted))
		if !ok {
			got = []byte("not a text")
		}
		if string(got) != want {
			t.Errorf("%q: %q; want %q", quoted, got, want)
		}
	}
}
