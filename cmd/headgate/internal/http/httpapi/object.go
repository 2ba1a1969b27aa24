package httpapi

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

	"github.com/headgate/headgate/cmd/headgate/internal/http/problem"
)

// The largest bodies and texts that are read.
const (
	maxBody    = 64 << 10
	maxBodyAll = 512 << 10 // of take-all
	maxKey     = 4096
	maxNote    = 500
	maxCost    = 1<<53 - 1 // what all languages count exactly
)

// field is one member of a JSON object, and what reads its value.
type field struct {
	name string
	set  func(raw json.RawMessage) (want string) // empty: it was read
}

// readBody reads the body of r as an object of fields.
func readBody(w http.ResponseWriter, r *http.Request, most int64, fields ...field) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &problem.Problem{Status: http.StatusRequestEntityTooLarge,
			Detail: "the body is too large; want at most " + strconv.FormatInt(e.Limit, 10) + " bytes"}
	}
	if err != nil {
		return problem.BadField("body", "incomplete", "a whole JSON object")
	}
	if !utf8.Valid(body) {
		return problem.BadField("body", "not UTF-8", "JSON in UTF-8")
	}
	return readObject(body, "", fields...)
}

// readObject reads text as a JSON object that has no other members than fields, and none twice.
// where is put before the names of fields in errors.
func readObject(text []byte, where string, fields ...field) error {
	name := cmp.Or(strings.TrimSuffix(where, "."), "body")
	if !json.Valid(text) {
		return malformed(name, text)
	}
	members := scanner{text}
	if members.next() != '{' {
		return problem.BadField(name, "not a JSON object", "an object with "+names(fields))
	}
	members.skip()
	var seen uint64
	for members.next() != '}' {
		key := unquote(members.value())
		members.skip() // the colon
		raw := members.value()
		if members.next() == ',' {
			members.skip()
		}
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
		switch {
		case at < 0:
			return unknownField(where+key, fields)
		case seen&(1<<at) != 0:
			return problem.BadField(where+key, "given twice", "it once")
		}
		seen |= 1 << at
		if want := fields[at].set(raw); want != "" {
			return problem.BadField(where+key, shorten(raw), want)
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

func unknownField(name string, fields []field) error {
	return &problem.Problem{
		Status: http.StatusBadRequest, Field: name,
		Detail: name + " is an unknown field; want " + names(fields),
	}
}

func names(fields []field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return strings.Join(list, ", ")
}

// shorten returns a JSON value for an error text.
func shorten(raw json.RawMessage) string {
	const most = 60
	if len(raw) <= most {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:most]), "") + "…"
}

func quote(text string) string {
	if len(text) > maxNote {
		text = strings.ToValidUTF8(text[:maxNote], "") + "…"
	}
	return strconv.Quote(text)
}

// text reads a string of at most size bytes.
func text(name string, to *string, size int) field {
	return field{name, func(raw json.RawMessage) string {
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
	return strings.Contains(text, replacement) && !bytes.Contains(raw, []byte(replacement)) &&
		!bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`))
}

// flag reads a boolean.
func flag(name string, to *bool) field {
	return field{name, func(raw json.RawMessage) string {
		if json.Unmarshal(raw, to) != nil || raw[0] == 'n' {
			return "true or false"
		}
		return ""
	}}
}

// number reads a whole number of at least least.
func number(name string, to *int64, least int64) field {
	return field{name, func(raw json.RawMessage) string {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n < least || n > maxCost {
			return "a whole number from " + strconv.FormatInt(least, 10) + " to " +
				strconv.FormatInt(maxCost, 10)
		}
		*to = n
		return ""
	}}
}

// seconds reads a duration: a number of seconds, rounded to microseconds.
func seconds(name string, to *time.Duration, most time.Duration) field {
	return field{name, func(raw json.RawMessage) string {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || !(f >= 0 && f <= most.Seconds()) || raw[0] == '"' {
			return "a number of seconds from 0 to " + strconv.FormatFloat(most.Seconds(), 'f', -1, 64)
		}
		*to = time.Duration(math.Round(f*1e6)) * time.Microsecond
		return ""
	}}
}
