package wire

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// maxJSON bounds the body of a request.
const maxJSON = 64 << 10

// JSONHandler answers requests in JSON as upstream's /json does, with any method.
//
// The status is 200 for OK, 429 for OVER_LIMIT and 500 for UNKNOWN. It is 400, with a text, for a
// request that cannot be read and also, as upstream has it, if the Decider returns an error. guard
// wraps the handler of requests that refund hits.
func JSONHandler(d Decider, guard func(http.Handler) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJSON))
		if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
			err = errors.New("ratelimit request: the body has more than " +
				strconv.Itoa(maxJSON) + " bytes; send fewer descriptors")
		}
		var request envoy.Request
		if err == nil {
			err = DecodeJSON(body, &request)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := answerJSON(d, &request)
		if slices.ContainsFunc(request.Descriptors, refunds) {
			answer = guard(answer)
		}
		answer.ServeHTTP(w, r)
	})
}

func refunds(d envoy.Descriptor) bool { return d.Negative }

func answerJSON(d Decider, request *envoy.Request) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var response envoy.Response
		var out []byte
		err := d.Decide(r.Context(), request, &response)
		if err == nil {
			out, err = EncodeJSON(&response)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(statusOf(response.Code))
		w.Write(out) //nolint:errcheck // it is JSON, and a client that is gone needs none
	})
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
