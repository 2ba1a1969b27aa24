package forwardauth

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/answer"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// NewExtAuthz makes Envoy's service envoy.service.auth.v3.Authorization. All rules that match a
// request are asked, or the one that the context_extensions of the route name as "rule". Host, path
// and method are those that Envoy has parsed, so that no field of the client can replace them.
func NewExtAuthz(
	e *rules.Engine, client func(*http.Request) netip.Addr,
) authv3.AuthorizationServer {
	return &extAuthz{engine: e, client: client}
}

type extAuthz struct {
	authv3.UnimplementedAuthorizationServer

	engine *rules.Engine
	client func(*http.Request) netip.Addr
}

// Check implements authv3.AuthorizationServer. Its errors are for Envoy's failure_mode_allow.
func (s *extAuthz) Check(
	ctx context.Context, in *authv3.CheckRequest,
) (*authv3.CheckResponse, error) {
	question, err := s.ask(in.GetAttributes())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	question.DoNotHold() // for longer than Envoy waits
	v, err := question.Decide(ctx)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	w := &recorder{header: make(http.Header)}
	if v.Allowed {
		answer.SetFields(w.header, &v)
		return allowed(w, &v), nil
	}
	call := &http.Request{Header: headerOf(in.GetAttributes().GetRequest().GetHttp())}
	if isCall(call) {
		answer.DenyCall(w, call, &v)
		w.asCall()
	} else {
		answer.Deny(w, http.StatusTooManyRequests, &v)
	}
	return denied(w, &v), nil
}

// ask asks one rule, or all that match, about the request that the attributes describe.
func (s *extAuthz) ask(a *authv3.AttributeContext) (*rules.Question, error) {
	described := a.GetRequest().GetHttp()
	if described == nil {
		return nil, errors.New("the attributes have no HTTP request; want those of the HTTP filter")
	}
	header := headerOf(described)
	sender := a.GetSource().GetAddress().GetSocketAddress()
	q := rules.Request{
		Method: described.GetMethod(),
		Host:   described.GetHost(),
		Path:   rules.TargetPath(described.GetPath()),
		Query:  rules.TargetQuery(described.GetPath()),
		Header: header,
		Body:   header.Get("Content-Length") > "0" || len(header["Transfer-Encoding"]) > 0,
		Client: s.client(&http.Request{
			Header:     header,
			RemoteAddr: sender.GetAddress(), // empty: a Unix socket
		}),
	}
	if name := a.GetContextExtensions()["rule"]; name != "" {
		return s.engine.MatchRule(name, &q)
	}
	return s.engine.Match(&q), nil
}

// headerOf returns the header fields of a request. Only with encode_raw_headers, Envoy sends the
// values of a field one by one, and bytes that are not UTF-8.
func headerOf(r *authv3.AttributeContext_HttpRequest) http.Header {
	header := make(http.Header, len(r.GetHeaders()))
	for name, value := range r.GetHeaders() {
		addField(header, name, value)
	}
	for _, field := range r.GetHeaderMap().GetHeaders() {
		value := field.GetValue()
		if raw := field.GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		addField(header, field.GetKey(), value)
	}
	return header
}

// addField adds a field, unless it is a pseudo header such as :path.
func addField(header http.Header, name, value string) {
	if !strings.HasPrefix(name, ":") {
		header.Add(name, value)
	}
}

// recorder is a response in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// asCall makes r an answer to a call over gRPC as Envoy wants it: the message is the body.
func (r *recorder) asCall() {
	r.status = http.StatusTooManyRequests
	r.body.WriteString(r.header.Get("Grpc-Message"))
	r.header.Del("Grpc-Message")
}

// isCall reports whether r is a call over gRPC.
func isCall(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

func (r *recorder) fields() (fields []*corev3.HeaderValueOption) {
	for name := range r.header {
		fields = append(fields, &corev3.HeaderValueOption{
			Header:       &corev3.HeaderValue{Key: name, Value: r.header.Get(name)},
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return fields
}

func allowed(w *recorder, v *rules.Verdict) *authv3.CheckResponse {
	return &authv3.CheckResponse{
		Status:          &rpcstatus.Status{Code: int32(codes.OK)},
		DynamicMetadata: metadata(v),
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			ResponseHeadersToAdd: w.fields(),
		}},
	}
}

func denied(w *recorder, v *rules.Verdict) *authv3.CheckResponse {
	response := &authv3.DeniedHttpResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode(w.status)},
		Headers: w.fields(),
		Body:    w.body.String(),
	}
	return &authv3.CheckResponse{
		Status:          &rpcstatus.Status{Code: int32(codes.PermissionDenied)},
		DynamicMetadata: metadata(v),
		HttpResponse:    &authv3.CheckResponse_DeniedResponse{DeniedResponse: response},
	}
}

// metadata is what Envoy's access log can show of a verdict.
func metadata(v *rules.Verdict) *structpb.Struct {
	fields := map[string]*structpb.Value{"allowed": structpb.NewBoolValue(v.Allowed)}
	if v.Rule != "" {
		fields["rule"] = structpb.NewStringValue(v.Rule)
	}
	if len(v.Decisions) > 0 {
		d := headgate.Strictest(v.Decisions)
		fields["limit"] = structpb.NewStringValue(d.Limit.Name())
		fields["remaining"] = structpb.NewNumberValue(float64(d.Remaining))
	}
	return &structpb.Struct{Fields: fields}
}
