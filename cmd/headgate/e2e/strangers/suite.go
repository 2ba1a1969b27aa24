package strangers

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	shouldRateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
	checkHealth     = "/grpc.health.v1.Health/Check"
)

// task is what a client has to do.
type task struct {
	Address  string `json:"address"`
	Channels int    `json:"channels"`
	Together bool   `json:"together"` // all calls at once, and not one after another
	Calls    []call `json:"calls"`
}

type call struct {
	Path    string `json:"path"`
	Message string `json:"message"` // in hexadecimal digits
}

// result is how a call ended.
type result struct {
	Code    int    `json:"code"` // of gRPC
	Details string `json:"details"`
	Message string `json:"message"`
}

// Run tests the server with a client: a command and its program, which does the task that its
// standard input has in JSON, and prints a list of results.
func Run(t *testing.T, command ...string) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, []string){
		"answers":          testAnswers,
		"errors":           testErrorsAreOfTheCallOnly,
		"many connections": testManyConnections,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, command)
		})
	}
}

func run(t *testing.T, command []string, of task) []result {
	t.Helper()
	in, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	// So that go test runs again when the file has changed.
	if _, err := os.Stat(command[1]); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(in)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: see scripts/deps\n%s", command, err, stderr.String())
	}
	var results []result
	if err := json.Unmarshal(out, &results); err != nil || len(results) != len(of.Calls) {
		t.Fatalf("%v: %s", err, out)
	}
	return results
}

func request(domain, key, value string) *rls.RateLimitRequest {
	return &rls.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}},
	}}}
}

func decide(t *testing.T, m *rls.RateLimitRequest) call {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return call{shouldRateLimit, hex.EncodeToString(b)}
}

func response(t *testing.T, r result) *rls.RateLimitResponse {
	t.Helper()
	b, err := hex.DecodeString(r.Message)
	if err != nil {
		t.Fatal(err)
	}
	var m rls.RateLimitResponse
	if err := proto.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return &m
}

func testAnswers(t *testing.T, command []string) {
	limit := &rls.RateLimitResponse_RateLimit{
		RequestsPerUnit: 3,
		Unit:            rls.RateLimitResponse_RateLimit_MINUTE,
		UnitMultiplier:  wrapperspb.UInt32(1_000_000),
	}
	few := decide(t, request("edge", "few", "a"))
	of := task{Address: startServer(t).grpc, Channels: 1, Calls: []call{few, few, few, few}}
	for i, r := range run(t, command, of) {
		m := response(t, r)
		code, remaining := rls.RateLimitResponse_OK, uint32(2-i)
		if i == 3 {
			code, remaining = rls.RateLimitResponse_OVER_LIMIT, 0
		}
		if r.Code != 0 || m.GetOverallCode() != code || len(m.GetStatuses()) != 1 {
			t.Fatalf("call %d: %+v %v, want %v", i, r, m, code)
		}
		s := m.GetStatuses()[0]
		if s.GetCode() != code || s.GetLimitRemaining() != remaining ||
			s.GetDurationUntilReset().GetSeconds() <= 0 {
			t.Errorf("call %d: %v, want %v and %d remaining", i, s, code, remaining)
		}
		if !proto.Equal(s.GetCurrentLimit(), limit) {
			t.Errorf("call %d: %v, want %v", i, s.GetCurrentLimit(), limit)
		}
	}
}

func testErrorsAreOfTheCallOnly(t *testing.T, command []string) {
	override := request("edge", "few", "a")
	override.Descriptors[0].Limit = &common.RateLimitDescriptor_RateLimitOverride{Unit: 99}
	hits := request("edge", "few", "a")
	hits.Descriptors[0].HitsAddend = wrapperspb.UInt64(1<<64 - 1)
	tests := []struct {
		call    call
		code    int
		details string
	}{
		{call{checkHealth, ""}, 0, ""},
		{call{checkHealth, "0a09" + hex.EncodeToString([]byte("ratelimit"))}, 0, ""},
		{call{checkHealth, "0a05" + hex.EncodeToString([]byte("other"))}, 5, "unknown service"},
		{call{shouldRateLimit, "0aff"}, 3, "is truncated or not protobuf"},
		{call{shouldRateLimit, "0a02fffe"}, 2, "descriptor list must not be empty"}, // any bytes
		{decide(t, override), 3, "descriptors[0].limit.unit is 99"},
		{decide(t, hits), 3, "descriptors[0].hits_addend is 18446744073709551615"},
		{decide(t, request("", "few", "a")), 2, "rate limit domain must not be empty"},
		{decide(t, request(strings.Repeat("a", 1<<16+1), "few", "a")), 3, "want at most 65536"},
		{decide(t, request("edge", "few", strings.Repeat("a", 1<<16))), 0, ""},
		{call{"/envoy.service.ratelimit.v3.RateLimitService/Other", ""}, 12, "Other"},
		{decide(t, request("edge", "few", "a")), 0, ""},
	}
	of := task{Address: startServer(t).grpc, Channels: 1}
	for _, test := range tests {
		of.Calls = append(of.Calls, test.call)
	}
	for i, got := range run(t, command, of) {
		want := tests[i]
		if got.Code != want.code || !strings.Contains(got.Details, want.details) {
			t.Errorf("%.40v: code %d %q, want %d %q",
				want.call, got.Code, got.Details, want.code, want.details)
		}
		if want.call.Path == checkHealth && want.code == 0 && got.Message != "0801" {
			t.Errorf("health: %q, want SERVING", got.Message)
		}
	}
}

// Of 64 connections that call at once, as many calls are granted as the limit has tokens.
func testManyConnections(t *testing.T, command []string) {
	of := task{Address: startServer(t).grpc, Channels: 64, Together: true}
	for range 256 {
		of.Calls = append(of.Calls, decide(t, request("edge", "many", "a")))
	}
	granted := 0
	for _, r := range run(t, command, of) {
		if r.Code != 0 {
			t.Fatalf("code %d: %s", r.Code, r.Details)
		}
		if response(t, r).GetOverallCode() == rls.RateLimitResponse_OK {
			granted++
		}
	}
	if granted != 100 {
		t.Errorf("%d were granted, want 100", granted)
	}
}
