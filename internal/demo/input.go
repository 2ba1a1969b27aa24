package demo

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
)

// readJSON reads the body, which must be one JSON object like the example, into v.
func readJSON(r *http.Request, v any, like string) error {
	if err := wantType(r, jsonType); err != nil {
		return err
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return &headgate.InvalidError{Field: "body",
			Value: "not understood (" + reason(err) + ")", Want: "JSON such as " + like}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return &headgate.InvalidError{Field: "body",
			Value: "more than one value", Want: "JSON such as " + like}
	}
	return nil
}

// reason returns the error of a JSON decoder, without the names of our types.
func reason(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return "it is a " + e.Value
		}
		return strconv.Quote(e.Field) + " is a " + e.Value
	}
	if errors.Is(err, io.EOF) {
		return "it is empty"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// wantType returns an error unless the body is of one of the types.
func wantType(r *http.Request, types ...string) error {
	got := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(got); err != nil || !slices.Contains(types, media) {
		return &headgate.InvalidError{Field: "Content-Type", Value: strconv.Quote(got),
			Want: strings.Join(types, " or ")}
	}
	return nil
}
