package wire

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/headgate/headgate/service/internal/envoy"
)

// maxJSON bounds the body of a request.
const maxJSON = 64 << 10

// JSONHandler answers requests in JSON as upstream's /json does, with any method.
//
// The status is 200 for OK, 429 for OVER_LIMIT and 500 for UNKNOWN. It is 400, with a text, for a
// request that cannot be read and also, as upstream has it, if the Decider returns an error.
func JSONHandler(d Decider) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJSON))
		var out []byte
		var code envoy.Code
		if err == nil {
			out, code, err = answerJSON(d, r, body)
		} else if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
			err = errors.New("ratelimit request: the body has more than " +
				strconv.Itoa(maxJSON) + " bytes; send fewer descriptors")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(statusOf(code))
		w.Write(out) //nolint:errcheck // there is no one left to tell
	})
}

func answerJSON(d Decider, r *http.Request, body []byte) ([]byte, envoy.Code, error) {
	var request envoy.Request
	var response envoy.Response
	if err := DecodeJSON(body, &request); err != nil {
		return nil, 0, err
	}
	if err := d.Decide(r.Context(), &request, &response); err != nil {
		return nil, 0, err
	}
	out, err := EncodeJSON(&response)
	return out, response.Code, err
}

func statusOf(code envoy.Code) int {
	switch code {
	case envoy.OK:
		return http.StatusOK
	case envoy.OverLimit:
		return http.StatusTooManyRequests
	default:
		return http.StatusInternalServerError
	}
}
