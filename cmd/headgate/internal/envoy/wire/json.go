package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// maxJSON bounds the body of a request.
const maxJSON = 64 << 10

// DecodeJSON reads a RateLimitRequest in the JSON form of protobuf into r, and checks its values.
func DecodeJSON(text []byte, r *envoy.Request) error {
	var m rls.RateLimitRequest
	if err := protojson.Unmarshal(text, &m); err != nil {
		// protojson sets spaces at random, and repeats values of any length.
		reason := strings.ReplaceAll(err.Error(), "\u00a0", " ")
		return fmt.Errorf("ratelimit request: %.200s", strings.TrimPrefix(reason, "proto: "))
	}
	message, err := proto.Marshal(&m)
	if err != nil {
		return fmt.Errorf("ratelimit request: %w", err)
	}
	return Decode(message, r)
}

// EncodeJSON returns r as a RateLimitResponse in the JSON form of protobuf, in one line.
func EncodeJSON(r *envoy.Response) ([]byte, error) {
	var m rls.RateLimitResponse
	if err := proto.Unmarshal(AppendResponse(nil, r), &m); err != nil {
		return nil, fmt.Errorf("ratelimit response: %w", err)
	}
	text, err := protojson.Marshal(&m)
	if err != nil {
		return nil, fmt.Errorf("ratelimit response: %w", err)
	}
	var line bytes.Buffer
	err = json.Compact(&line, text) // protojson sets spaces at random
	line.WriteByte('\n')
	return line.Bytes(), err
}

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
