package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// TestJSON reads and writes every field.
func TestJSON(t *testing.T) {
	const text = `{"domain":"d","hits_addend":"5","descriptors":[{"entries":[{"key":"a","value":"\u00e9"}],` +
		`"limit":{"requestsPerUnit":7,"unit":"MINUTE","unit_multiplier":5},"hitsAddend":3,"isNegativeHits":true}]}`
	want := envoy.Request{Domain: "d", HitsAddend: 5, Descriptors: []envoy.Descriptor{{
		Entries:  []envoy.Entry{{Key: "a", Value: "é"}},
		Override: &envoy.Override{RequestsPerUnit: 7, Unit: envoy.Minute, Multiplier: 5},
		Hits:     3, HasHits: true, Negative: true,
	}}}
	var got envoy.Request
	if err := DecodeJSON([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	const answer = `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OK","currentLimit":{"name":"n",` +
		`"requestsPerUnit":5,"unit":"MINUTE","unitMultiplier":15},"limitRemaining":4,"durationUntilReset":"1.500s"}],` +
		`"responseHeadersToAdd":[{"key":"k","value":"v"}]}` + "\n"
	out, err := EncodeJSON(&envoy.Response{
		Code: envoy.OverLimit, Headers: []envoy.Header{{Key: "k", Value: "v"}}, Statuses: []envoy.Status{{
			Code: envoy.OK, HasLimit: true, Remaining: 4, Reset: 1500 * time.Millisecond,
			Limit: envoy.Limit{RequestsPerUnit: 5, Unit: envoy.Minute, Multiplier: 15, Name: "n"},
		}},
	})
	if err != nil || string(out) != answer {
		t.Errorf("%s, %v; want %s", out, err, answer)
	}
}

func TestErrorsInJSONNameTheField(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{
			`{"descriptors":[{},{"entries":[{"key":5}]}]}`,
			"(line 1:39): invalid value for string field key: 5",
		},
		{
			`{"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}`,
			`(line 1:34): invalid value for enum field unit: "FORTNIGHT"`,
		},
		{
			`{"descriptors":[{"limit":{}}]}`,
			"descriptors[0].limit.unit is 0; want 1 (SECOND) to 7 (WEEK)",
		},
		{
			`{"descriptors":[{"hitsAddend":"18446744073709551615"}]}`,
			"descriptors[0].hits_addend is 18446744073709551615; want at most 9007199254740991",
		},
		{
			`{"hitsAddend":"many"}`,
			`(line 1:15): invalid value for uint32 field hitsAddend: "many"`,
		},
		{`{"domian":"a"}`, `(line 1:2): unknown field "domian"`},
		{`{"domain":"a"`, "unexpected EOF"},
		{
			`{"hitsAddend":"` + strings.Repeat("x", 1000) + `"}`,
			`(line 1:15): invalid value for uint32 field hitsAddend: "` + strings.Repeat("x", 143),
		},
	} {
		var r envoy.Request
		err := DecodeJSON([]byte(test.text), &r)
		if err == nil || err.Error() != "ratelimit request: "+test.want {
			t.Errorf("%s: %v, want %s", test.text, err, test.want)
		}
	}
}

type deciderFunc func(*envoy.Request, *envoy.Response) error

func (f deciderFunc) Decide(_ context.Context, r *envoy.Request, out *envoy.Response) error {
	return f(r, out)
}

func TestJSONHandler(t *testing.T) {
	const (
		noText  = "ratelimit request: syntax error (line 1:1): unexpected token"
		tooLong = "ratelimit request: the body has more than 65536 bytes; send fewer descriptors"
	)
	handler := JSONHandler(deciderFunc(func(r *envoy.Request, out *envoy.Response) error {
		switch r.Domain {
		case "":
			return errors.New("rate limit domain must not be empty")
		case "over":
			out.Code = envoy.OverLimit
		case "ok":
			out.Code = envoy.OK
		}
		return nil
	}), func(http.Handler) http.Handler { return http.NotFoundHandler() })
	for _, test := range []struct {
		method, body string
		status       int
		want         string
	}{
		{http.MethodPost, `{"domain":"ok"}`, 200, `{"overallCode":"OK"}`},
		{http.MethodGet, `{"domain":"ok"}`, 200, `{"overallCode":"OK"}`},
		{http.MethodPost, `{"domain":"ok","descriptors":[{},{"is_negative_hits":true}]}`, 404, "404 page not found"},
		{http.MethodPost, `{"domain":"ok","descriptors":[{"is_negative_hits":false}]}`, 200, `{"overallCode":"OK"}`},
		{"PURGE", `{"domain":"over"}`, 429, `{"overallCode":"OVER_LIMIT"}`},
		{http.MethodPut, `{"domain":"other"}`, 500, `{}`},
		{http.MethodPost, `{}`, 400, "rate limit domain must not be empty"},
		{http.MethodPost, `{"domain"`, 400, "ratelimit request: unexpected EOF"},
		{http.MethodPost, ``, 400, noText},
		{http.MethodPost, strings.Repeat(" ", maxJSON+1), 400, tooLong},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), test.method, "/json",
			strings.NewReader(test.body))
		handler.ServeHTTP(w, r)
		got := strings.TrimSpace(w.Body.String())
		if w.Code != test.status || got != test.want {
			t.Errorf("%s %.40s: %d %s, want %d %s", test.method, test.body, w.Code, got,
				test.status, test.want)
		}
	}
}
