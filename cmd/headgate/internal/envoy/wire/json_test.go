package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// FuzzEncodeJSON reads what is written by protojson.
func FuzzEncodeJSON(f *testing.F) {
	for i := range 40 {
		f.Add(bytesFrom(i))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := random{b}
		response := r.response(t)
		out, err := EncodeJSON(&response)
		if err != nil {
			t.Fatal(err)
		}
		var theirs rls.RateLimitResponse
		if err := protojson.Unmarshal(out, &theirs); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if got := responseFromGenerated(t, &theirs); !reflect.DeepEqual(got, response) {
			t.Fatalf("%+v was read as %+v", response, got)
		}
		text, err := protojson.Marshal(&theirs)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := compact(t, out), compact(t, text); a != b {
			t.Errorf("%s; protojson writes %s", a, b)
		}
	})
}

// compact removes the blanks, which protojson sets at random.
func compact(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
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
