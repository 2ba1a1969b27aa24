package answer

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// DenyCall answers a call of gRPC with RESOURCE_EXHAUSTED and, if a wait helps, a RetryInfo. If no
// limit was checked, clients read UNAVAILABLE from the status 503.
func DenyCall(w http.ResponseWriter, r *http.Request, v *rules.Verdict) {
	if Unchecked(v) {
		Deny(w, http.StatusTooManyRequests, v)
		return
	}
	SetFields(w.Header(), v)
	s := status.New(codes.ResourceExhausted, "The rule "+v.Rule+" denies this call.")
	if v.RetryAfter != headgate.Never && showsWait(v) {
		s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(v.RetryAfter)})
	}
	details, _ := proto.Marshal(s.Proto()) // fails only for text that is not UTF-8
	for name, value := range map[string]string{
		"Content-Type":            r.Header.Get("Content-Type"),
		"Grpc-Status":             strconv.Itoa(int(s.Code())),
		"Grpc-Message":            s.Message(),
		"Grpc-Status-Details-Bin": base64.RawStdEncoding.EncodeToString(details),
	} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(http.StatusOK)
}
