package wire

import (
	"bytes"
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

	"github.com/headgate/headgate/service/internal/envoy"
)

// FuzzDecodeJSON holds DecodeJSON to protojson: what that reads, it reads with the same fields.
// What that refuses, it refuses, but for the two differences below.
func FuzzDecodeJSON(f *testing.F) {
	for i := range 40 {
		r := random{bytesFrom(i)}
		request := r.request()
		for _, o := range []protojson.MarshalOptions{{}, {UseProtoNames: true, UseEnumNumbers: true}, {EmitUnpopulated: true}} {
			b, err := o.Marshal(toGenerated(&request))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(b))
		}
	}
	for _, text := range append(refusedJSON, readJSON...) {
		f.Add(text[:min(len(text), 200)]) // the fuzzer takes minutes to make a long one short
	}
	f.Fuzz(func(t *testing.T, text string) {
		var theirs rls.RateLimitRequest
		want := protojson.Unmarshal([]byte(text), &theirs)
		var ours envoy.Request
		got := decodeJSON([]byte(text), &ours)
		if want != nil && got == nil {
			lenient := strings.Contains(text, `\u`) || strings.Contains(text, "WEEK")
			if !lenient && !strings.ContainsAny(text, "eE.") {
				t.Fatalf("%s was read; protojson: %v", text, want)
			}
			return
		}
		if want == nil && got != nil {
			if !strings.Contains(got.Error(), "unit is -") { // refused by check otherwise
				t.Fatalf("%s: %v; protojson reads it", text, got)
			}
			return
		}
		if got != nil {
			return
		}
		if a, b := normal(&ours), fromGenerated(&theirs); !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: %+v; protojson has %+v", text, a, b)
		}
	})
}

var refusedJSON = []string{
	``, `null`, `[]`, `5`, `{`, `{}x`, `{}{}`, `{,}`, `{"domain"}`, `{"domain":}`, `{"domain":"a",}`,
	`{"Domain":"a"}`, `{"other":1}`, `{"domain":"a","domain":"b"}`, `{"domain":null,"domain":"b"}`,
	`{"hitsAddend":1,"hits_addend":1}`, `{"domain":5}`, `{"domain":"` + "\xff" + `"}`,
	`{"descriptors":{}}`, `{"descriptors":[null]}`, `{"descriptors":[{"entries":[null]}]}`, `{"descriptors":[{}`,
	`{"descriptors":[{"entries":[{"key":5}]}]}`, `{"descriptors":[{"entries":[{"key":"a","x":1}]}]}`,
	`{"hitsAddend":-1}`, `{"hitsAddend":4294967296}`, `{"hitsAddend":1.5}`, `{"hitsAddend":"x"}`, `{"hitsAddend":" 1"}`,
	`{"hitsAddend":"01"}`, `{"hitsAddend":""}`, `{"hitsAddend":"0x1"}`, `{"hitsAddend":"+1"}`, `{"hitsAddend":true}`,
	`{"hitsAddend":1e10}`, `{"hitsAddend":1e99999}`, `{"hitsAddend":1e99999999999999999999}`, `{"hitsAddend":1e-1}`,
	`{"hitsAddend":-5e1}`, `{"hitsAddend":"null"}`, `{"hitsAddend":"[1]"}`,
	`{"descriptors":[{"limit":5}]}`, `{"descriptors":[{"limit":{"unit":"minute"}}]}`, `{"descriptors":[{"limit":{"unit":"2"}}]}`,
	`{"descriptors":[{"limit":{"unit":1.5}}]}`, `{"descriptors":[{"limit":{"unitMultiplier":{"value":1}}}]}`,
	`{"descriptors":[{"isNegativeHits":"true"}]}`, `{"descriptors":[{"isNegativeHits":1}]}`,
	`{"descriptors":[{"hitsAddend":18446744073709551616}]}`, `{"descriptors":[{"hitsAddend":{"value":1}}]}`,
	strings.Repeat(`{"descriptors":[`, 5000),
}

var readJSON = []string{
	`{}`, ` { } `, `{"domain":null,"descriptors":null,"hitsAddend":null}`, `{"descriptors":[]}`,
	`{"domain":"\u00e9\n\"","descriptors":[{"entries":[{"key":"a","value":"b"},{}],"limit":null,"hitsAddend":null}]}`,
	`{"hitsAddend":"5"}`, `{"hits_addend":5.0}`, `{"hitsAddend":5e1}`, `{"hitsAddend":"1.5e1"}`, `{"hitsAddend":500e-2}`,
	`{"hitsAddend":0}`, `{"hitsAddend":4294967295}`, `{"hitsAddend":0.0}`, `{"hitsAddend":0e5}`,
	`{"descriptors":[{"limit":{"requestsPerUnit":"7","unit":"MINUTE","unitMultiplier":5}}]}`,
	`{"descriptors":[{"limit":{"requests_per_unit":7,"unit":2,"unit_multiplier":"5"},"is_negative_hits":true}]}`,
	`{"descriptors":[{"hitsAddend":"18446744073709551615"}]}`, `{"descriptors":[{"hits_addend":0}]}`,
	`{"descriptors":[{"limit":{"unit":99}}]}`,
}

func TestJSONThatIsRefused(t *testing.T) {
	for _, text := range refusedJSON {
		var theirs rls.RateLimitRequest
		if protojson.Unmarshal([]byte(text), &theirs) == nil {
			t.Errorf("%.60s: protojson reads it", text)
		}
		var r envoy.Request
		err := DecodeJSON([]byte(text), &r)
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit request: ") || len(err.Error()) > 300 {
			t.Errorf("%.60s: %v, want a short error", text, err)
		}
	}
}

func TestErrorsInJSONNameTheField(t *testing.T) {
	for text, want := range map[string]string{
		`{"descriptors":[{},{"entries":[{"key":5}]}]}`: "descriptors[1].entries[0].key is 5; want a string",
		`{"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}`: `descriptors[0].limit.unit is "FORTNIGHT"; want one of ` +
			"[SECOND MINUTE HOUR DAY MONTH YEAR WEEK] or its number",
		`{"descriptors":[{"limit":{}}]}`:                          "descriptors[0].limit.unit is 0; want 1 (SECOND) to 7 (WEEK)",
		`{"descriptors":[{"hitsAddend":"18446744073709551615"}]}`: "descriptors[0].hits_addend is 18446744073709551615; want at most 9007199254740991",
		`{"hitsAddend":"many"}`:                                   `hits_addend is "many"; want a whole number from 0 to 4294967295`,
		`{"domian":"a"}`:                                          `the message has no field "domian"; want domain, descriptors, hitsAddend`,
		`{"domain":"a"`:                                           "the message is cut short; want one JSON object",
	} {
		var r envoy.Request
		if err := DecodeJSON([]byte(text), &r); err == nil || err.Error() != "ratelimit request: "+want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

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

func (f deciderFunc) Decide(_ context.Context, request *envoy.Request, response *envoy.Response) error {
	return f(request, response)
}

func TestJSONHandler(t *testing.T) {
	handler := JSONHandler(deciderFunc(func(request *envoy.Request, response *envoy.Response) error {
		switch request.Domain {
		case "":
			return errors.New("rate limit domain must not be empty")
		case "over":
			response.Code = envoy.OverLimit
		case "ok":
			response.Code = envoy.OK
		}
		return nil
	}))
	for _, test := range []struct {
		method, body string
		status       int
		want         string
	}{
		{http.MethodPost, `{"domain":"ok"}`, 200, `{"overallCode":"OK"}`},
		{http.MethodGet, `{"domain":"ok"}`, 200, `{"overallCode":"OK"}`},
		{"PURGE", `{"domain":"over"}`, 429, `{"overallCode":"OVER_LIMIT"}`},
		{http.MethodPut, `{"domain":"other"}`, 500, `{}`},
		{http.MethodPost, `{}`, 400, "rate limit domain must not be empty"},
		{http.MethodPost, `{"domain"`, 400, "ratelimit request: the message is cut short; want one JSON object"},
		{http.MethodPost, ``, 400, "ratelimit request: the message is cut short; want one JSON object"},
		{http.MethodPost, strings.Repeat(" ", maxJSON+1), 400, "ratelimit request: the body has more than 65536 bytes; send fewer descriptors"},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(test.method, "/json", strings.NewReader(test.body)))
		if got := string(bytes.TrimSpace(w.Body.Bytes())); w.Code != test.status || got != test.want {
			t.Errorf("%s %.40s: %d %s, want %d %s", test.method, test.body, w.Code, got, test.status, test.want)
		}
	}
}
