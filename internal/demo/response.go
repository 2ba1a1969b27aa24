package demo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

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
