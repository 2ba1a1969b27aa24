package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// This file lets the console read and write the same JSON.

// Field is a member of a JSON object, with the function that reads its value.
type Field = field

// ReadBody reads the body of r as a JSON object of fields, of which none is required.
func ReadBody(w http.ResponseWriter, r *http.Request, fields ...Field) error {
	return readBody(w, r, maxBody, fields...)
}

// KeyField reads a key.
func KeyField(name string, to *string) Field { return text(name, to, maxKey) }

// NoteField reads a note or another short text.
func NoteField(name string, to *string) Field { return text(name, to, maxNote) }

// ByField reads the name of a person.
func ByField(name string, to *string) Field { return text(name, to, maxBy) }

// FlagField reads true or false.
func FlagField(name string, to *bool) Field { return flag(name, to) }

// SpanField reads for how many seconds a change lasts: at least 1.
func SpanField(name string, to *time.Duration) Field { return spanField(name, to) }

// LimitsField reads a list of the texts of limits.
func LimitsField(name string, to *[]string) Field {
	return field{name, func(raw json.RawMessage) string {
		if json.Unmarshal(raw, to) != nil || len(*to) == 0 {
			return `a list of limits such as ["100/m"]`
		}
		return ""
	}}
}

// Nullable accepts null for a missing field.
func Nullable(f Field) Field {
	return field{f.name, func(raw json.RawMessage) string {
		if string(raw) == "null" {
			return ""
		}
		return f.set(raw)
	}}
}

// Given appends the name of f to names if f is there, and not null.
func Given(f Field, names *[]string) Field {
	return field{f.name, func(raw json.RawMessage) string {
		if string(raw) != "null" {
			*names = append(*names, f.name)
		}
		return f.set(raw)
	}}
}

// ParseLimits parses the texts of limits without names. Its error is a [Problem].
func ParseLimits(texts []string) ([]headgate.Limit, error) { return parseLimits(texts) }

// NotAnnounced is the detail of a reset that other instances may not have received.
const NotAnnounced = "the key was reset, but other instances may deny it until its retry_after; " +
	"reset it again"

// OverrideJSON returns o as PUT /v1/overrides does.
func OverrideJSON(o *rules.Override) json.RawMessage {
	return json.RawMessage(append(appendOverride(newObject(), o), '}'))
}

// OverridesJSON returns the list of GET /v1/overrides, with notes as note shows them.
func OverridesJSON(t *overrides.Table, note func(string) string) json.RawMessage {
	return json.RawMessage(append(appendOverrides(object{'['}, t, note), ']'))
}

// ModesJSON returns the switched modes of GET /v1/overrides, with notes as note shows them.
func ModesJSON(t *overrides.Table, note func(string) string) json.RawMessage {
	return json.RawMessage(append(appendModes(object{'['}, t, note), ']'))
}
