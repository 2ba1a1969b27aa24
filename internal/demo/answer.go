package demo

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/headgate/headgate"
)

// refusal is every answer that is no: the form that the documentation of Redis
// gives it.
type refusal struct {
	Success bool   `json:"success"`
	Error   string `json:"error"`
}

func answer(w http.ResponseWriter, v any) { write(w, http.StatusOK, v) }

// refuse says why not, in one line.
func refuse(w http.ResponseWriter, status int, why string) {
	write(w, status, refusal{Error: strings.Join(strings.Fields(why), " ")})
}

// fail answers what err means: input that is wrong, or a store that could not say.
func fail(w http.ResponseWriter, err error) {
	if _, ok := errors.AsType[*headgate.InvalidError](err); ok {
		refuse(w, http.StatusBadRequest, strings.TrimPrefix(err.Error(), "headgate: "))
		return
	}
	refuse(w, http.StatusServiceUnavailable, "the store could not say: "+err.Error())
}

func write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // of values that are all made here
		status, body = http.StatusInternalServerError, []byte(`{"success":false,"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // whoever went away needs no answer
}
