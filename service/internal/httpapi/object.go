package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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
		return &problem{Status: http.StatusRequestEntityTooLarge,
			Detail: "the body is too large; want at most " + strconv.FormatInt(e.Limit, 10) + " bytes"}
	}
	if err != nil {
		return badField("body", "incomplete", "a whole JSON object")
	}
	if !utf8.Valid(body) {
		return badField("body", "not UTF-8", "JSON in UTF-8")
	}
	return readObject(body, "", fields...)
}

// readObject reads text as a JSON object that has no other members than fields, and none twice.
// where is put before the names of fields in errors.
func readObject(text []byte, where string, fields ...field) error {
	d := json.NewDecoder(bytes.NewReader(text))
	name := strings.TrimSuffix(where, ".")
	if name == "" {
		name = "body"
	}
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return badField(name, "no JSON object", "an object with "+names(fields))
	}
	var seen uint64
	for d.More() {
		member, err := d.Token()
		if err != nil {
			return malformed(name, err)
		}
		key, _ := member.(string) // in an object it is always one
		at := indexOf(fields, key)
		if at < 0 {
			return &problem{Status: http.StatusBadRequest, Field: where + key,
				Detail: where + key + " is an unknown field; want " + names(fields)}
		}
		if seen&(1<<at) != 0 {
			return badField(where+key, "given twice", "it once")
		}
		seen |= 1 << at
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return malformed(name, err)
		}
		if want := fields[at].set(raw); want != "" {
			return badField(where+key, shorten(raw), want)
		}
	}
	if _, err := d.Token(); err != nil {
		return malformed(name, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badField(name, "followed by more text", "one JSON object")
	}
	return nil
}

func malformed(name string, err error) error {
	why := err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		why = "it ends too early"
	}
	return badField(name, "not JSON ("+why+")", "a JSON object")
}

func indexOf(fields []field, name string) int {
	for i := range fields {
		if fields[i].name == name {
			return i
		}
	}
	return -1
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
		if raw[0] != '"' || json.Unmarshal(raw, to) != nil || len(*to) > size {
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
