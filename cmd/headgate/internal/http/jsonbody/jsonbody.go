// Package jsonbody reads the bodies of requests strictly: JSON objects of known fields, none twice.
package jsonbody

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/headgate/internal/http/bodies"
	"github.com/headgate/headgate/cmd/headgate/internal/jsonscan"
	"github.com/headgate/headgate/internal/problem"
)

// maxNumber is the largest whole number, which all languages count exactly.
const maxNumber = 1<<53 - 1

// Field is one member of a JSON object, and what reads its value.
type Field struct {
	Name string
	Set  func(raw json.RawMessage) (want string) // empty: it was read
}

// Nullable accepts null for a missing field.
func Nullable(f Field) Field {
	return Field{f.Name, func(raw json.RawMessage) string {
		if string(raw) == "null" {
			return ""
		}
		return f.Set(raw)
	}}
}

// Given appends the name of f to names if f is there, and not null.
func Given(f Field, names *[]string) Field {
	return Field{f.Name, func(raw json.RawMessage) string {
		if string(raw) != "null" {
			*names = append(*names, f.Name)
		}
		return f.Set(raw)
	}}
}

// Read reads the body of r as an object of fields.
func Read(w http.ResponseWriter, r *http.Request, most int64, fields ...Field) error {
	from := bodies.New(http.MaxBytesReader(w, r.Body, most))
	defer from.Release()
	body, err := io.ReadAll(from)
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &problem.Problem{Status: http.StatusRequestEntityTooLarge,
			Detail: "the body is too large; want at most " + strconv.FormatInt(e.Limit, 10) +
				" bytes"}
	}
	if errors.Is(err, bodies.ErrFull) {
		return &problem.Problem{Status: http.StatusServiceUnavailable, RetryAfter: time.Second,
			Detail: "the body is slow, or many large bodies are read; want it again later"}
	}
	if err != nil {
		return problem.BadField("body", "incomplete", "a whole JSON object")
	}
	if !utf8.Valid(body) {
		return problem.BadField("body", "not UTF-8", "JSON in UTF-8")
	}
	return Object(body, "", fields...)
}

// Object reads text as a JSON object that has no other members than fields, and none twice.
// where is put before the names of fields in errors.
func Object(text []byte, where string, fields ...Field) error {
	name := cmp.Or(strings.TrimSuffix(where, "."), "body")
	if !json.Valid(text) {
		return malformed(name, text)
	}
	s := jsonscan.Of(text)
	if !s.Enter('{') {
		return problem.BadField(name, "not a JSON object", "an object with "+names(fields))
	}
	var seen uint64
	for s.Peek() != '}' {
		quoted, _ := s.Name()
		key := unquote(quoted)
		raw, _ := s.Value()
		s.Enter(',')
		at := slices.IndexFunc(fields, func(f Field) bool { return f.Name == key })
		switch {
		case at < 0:
			return unknownField(where+key, fields)
		case seen&(1<<at) != 0:
			return problem.BadField(where+key, "given twice", "it once")
		}
		seen |= 1 << at
		if want := fields[at].Set(raw); want != "" {
			return problem.BadField(where+key, Shorten(raw), want)
		}
	}
	return nil
}

// malformed says why text is not JSON.
func malformed(name string, text []byte) error {
	var all json.RawMessage
	why := ""
	if err := json.Unmarshal(text, &all); err != nil {
		why = err.Error()
	}
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return problem.BadField(name, "empty", "a JSON object")
	case strings.HasSuffix(why, "after top-level value"):
		return problem.BadField(name, "followed by more text", "one JSON object")
	case strings.HasPrefix(why, "unexpected end"):
		why = "it ends too early"
	}
	return problem.BadField(name, "not JSON ("+why+")", "a JSON object")
}

func unknownField(name string, fields []Field) error {
	return &problem.Problem{
		Status: http.StatusBadRequest, Field: name,
		Detail: name + " is an unknown field; want " + names(fields),
	}
}

func names(fields []Field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.Name
	}
	return strings.Join(list, ", ")
}

// Shorten returns a JSON value for an error text.
func Shorten(raw json.RawMessage) string {
	const most = 60
	if len(raw) <= most {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:most]), "") + "…"
}

// Quote returns text, or its beginning, in quotes.
func Quote(text string) string {
	const most = 500
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

// unquote returns the text of a string in JSON.
func unquote(raw []byte) string {
	text, _ := jsonscan.Unquote(raw) // it is a valid string
	return string(text)
}

// Text reads a string of at most size bytes.
func Text(name string, to *string, size int) Field {
	return Field{name, func(raw json.RawMessage) string {
		if raw[0] == '"' {
			*to = unquote(raw)
		}
		if raw[0] != '"' || len(*to) > size {
			return "a text of at most " + strconv.Itoa(size) + " bytes"
		}
		if hasLoneSurrogate(raw, *to) {
			return "a text without lone surrogates"
		}
		return ""
	}}
}

// hasLoneSurrogate reports whether raw, the JSON form of text, has half a character. It was read as
// U+FFFD, so that different keys would become one.
func hasLoneSurrogate(raw json.RawMessage, text string) bool {
	const replacement = "\uFFFD"
	read := strings.Count(text, replacement)
	if read == 0 {
		return false
	}
	written := bytes.ToLower(bytes.ReplaceAll(raw, []byte(`\\`), nil))
	return read > bytes.Count(written, []byte(replacement))+bytes.Count(written, []byte(`\ufffd`))
}

// Flag reads a boolean.
func Flag(name string, to *bool) Field {
	return Field{name, func(raw json.RawMessage) string {
		if json.Unmarshal(raw, to) != nil || raw[0] == 'n' {
			return "true or false"
		}
		return ""
	}}
}

// Number reads a whole number of at least least.
func Number(name string, to *int64, least int64) Field {
	return Field{name, func(raw json.RawMessage) string {
		f, err := strconv.ParseFloat(string(raw), 64) // 250.0, too, is whole in JSON
		if err != nil || f != math.Trunc(f) || f < float64(least) || f > maxNumber {
			return "a whole number from " + strconv.FormatInt(least, 10) + " to " +
				strconv.FormatInt(maxNumber, 10)
		}
		*to = int64(f)
		return ""
	}}
}

// Seconds reads a duration from least to most: a number of seconds, rounded to microseconds.
func Seconds(name string, to *time.Duration, least, most time.Duration) Field {
	return Field{name, func(raw json.RawMessage) string {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || !(f >= least.Seconds() && f <= most.Seconds()) || raw[0] == '"' {
			return "a number of seconds from " + decimal(least.Seconds()) + " to " +
				decimal(most.Seconds())
		}
		*to = time.Duration(math.Round(f*1e6)) * time.Microsecond
		return ""
	}}
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
