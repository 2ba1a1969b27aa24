package demo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

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
			return "unexpected " + e.Value
		}
		return strconv.Quote(e.Field) + " is an unexpected " + e.Value
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

// refusal is the body of an error, in the form of the demo in the Redis documentation.
type refusal struct {
	Success bool   `json:"success"`
	Error   string `json:"error"`
}

// handle answers with what f returns within a time, as JSON.
func handle[T any](within time.Duration, f func(*http.Request) (T, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), within)
		defer stop()
		v, err := f(r.WithContext(ctx))
		if err != nil {
			fail(w, err)
			return
		}
		write(w, http.StatusOK, v)
	})
}

// refuse writes an error in one line.
func refuse(w http.ResponseWriter, status int, why string) {
	write(w, status, refusal{Error: strings.Join(strings.Fields(why), " ")})
}

// fail writes err: invalid input, or an unavailable store.
func fail(w http.ResponseWriter, err error) {
	if _, ok := errors.AsType[*headgate.InvalidError](err); ok {
		refuse(w, http.StatusBadRequest, strings.TrimPrefix(err.Error(), "headgate: "))
		return
	}
	refuse(w, http.StatusServiceUnavailable, "the store is unavailable: "+err.Error())
}

func write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // cannot happen: the values are all made here
		status = http.StatusInternalServerError
		body = []byte(`{"success":false,"error":"the response cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}
