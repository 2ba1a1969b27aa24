package wire

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// FuzzDecodeJSON holds DecodeJSON to protojson: what that reads, it reads with the same fields.
// What that refuses, it refuses, unless it matches readByUsOnly.
func FuzzDecodeJSON(f *testing.F) {
	for i := range 40 {
		r := random{bytesFrom(i)}
		request := r.request()
		for _, o := range []protojson.MarshalOptions{
			{}, {UseProtoNames: true, UseEnumNumbers: true}, {EmitUnpopulated: true},
		} {
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
			if !readByUsOnly.MatchString(text) {
				t.Fatalf("%s was read; protojson: %v", text, want)
			}
			return
		}
		if want == nil && got != nil {
			// A negative unit is refused when it is read, and not only by check. And protojson
			// reads numbers that are none in JSON, such as 8E.
			if !strings.Contains(got.Error(), "unit is -") && !emptyExponent.MatchString(text) {
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

var (
	readByUsOnly  = regexp.MustCompile(`(?i)\\ud[89a-f]|"week"`)
	emptyExponent = regexp.MustCompile(`[0-9][eE][^0-9+-]|[0-9][eE][+-][^0-9]`)
)

// refusedJSON are texts that protojson refuses.
var refusedJSON = append(lines(`
null
[]
5
{
{}x
{}{}
{,}
{"domain"}
{"domain":}
{"domain":"a",}
{"Domain":"a"}
{"other":1}
{"domain":"a","domain":"b"}
{"domain":null,"domain":"b"}
{"hitsAddend":1,"hits_addend":1}
{"domain":5}
{"descriptors":{}}
{"descriptors":[null]}
{"descriptors":[{"entries":[null]}]}
{"descriptors":[{}
{"descriptors":[{"entries":[{"key":5}]}]}
{"descriptors":[{"entries":[{"key":"a","x":1}]}]}
{"hitsAddend":-1}
{"hitsAddend":4294967296}
{"hitsAddend":1.5}
{"hitsAddend":"x"}
{"hitsAddend":" 1"}
{"hitsAddend":"01"}
{"hitsAddend":""}
{"hitsAddend":"0x1"}
{"hitsAddend":"+1"}
{"hitsAddend":"null"}
{"hitsAddend":"[1]"}
{"hitsAddend":true}
{"hitsAddend":1e10}
{"hitsAddend":1e99999}
{"hitsAddend":1e99999999999999999999}
{"hitsAddend":1e-1}
{"hitsAddend":-5e1}
{"hitsAddend":0.00000000000000000000005e23}
{"hitsAddend":5e-99999999}
{"hitsAddend":1.5e-1}
{"descriptors":[{"limit":{"unit":2147483648}}]}
{"descriptors":[{"limit":5}]}
{"descriptors":[{"limit":{"unit":"minute"}}]}
{"descriptors":[{"limit":{"unit":"2"}}]}
{"descriptors":[{"limit":{"unit":1.5}}]}
{"descriptors":[{"limit":{"unitMultiplier":{"value":1}}}]}
{"descriptors":[{"isNegativeHits":"true"}]}
{"descriptors":[{"isNegativeHits":1}]}
{"descriptors":[{"hitsAddend":18446744073709551616}]}
{"descriptors":[{"hitsAddend":{"value":1}}]}
`), "", "{\"domain\":\"\xff\"}", strings.Repeat(`{"descriptors":[`, 5000))

// readJSON are texts that protojson reads.
var readJSON = lines(`
{}
 { }
{"domain":null,"descriptors":null,"hitsAddend":null}
{"descriptors":[]}
{"domain":"\u00e9\n\"","descriptors":[{"limit":null,"hitsAddend":null}]}
{"descriptors":[{"entries":[{"key":"a","value":"b"},{}]}]}
{"hitsAddend":"5"}
{"hits_addend":5.0}
{"hitsAddend":5e1}
{"hitsAddend":"1.5e1"}
{"hitsAddend":500e-2}
{"hitsAddend":0}
{"hitsAddend":4294967295}
{"hitsAddend":0.0}
{"hitsAddend":0e5}
{"hitsAddend":-0}
{"hitsAddend":0e99999999999}
{"hitsAddend":"10.00E+1"}
{"hitsAddend":100000000000000000000000000e-25}
{"descriptors":[{"limit":{"requestsPerUnit":"7","unit":"MINUTE","unitMultiplier":5}}]}
{"descriptors":[{"limit":{"requests_per_unit":7,"unit":2,"unit_multiplier":"5"}}]}
{"descriptors":[{"is_negative_hits":true}]}
{"descriptors":[{"hitsAddend":"18446744073709551615"}]}
{"descriptors":[{"hits_addend":0}]}
{"descriptors":[{"limit":{"unit":99}}]}
`)

func lines(text string) []string { return strings.Split(strings.Trim(text, "\n"), "\n") }

func TestJSONThatIsRead(t *testing.T) {
	for _, text := range readJSON {
		var theirs rls.RateLimitRequest
		if err := protojson.Unmarshal([]byte(text), &theirs); err != nil {
			t.Errorf("%s: protojson: %v", text, err)
		}
		var r envoy.Request
		if err := decodeJSON([]byte(text), &r); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestJSONThatIsRefused(t *testing.T) {
	for _, text := range refusedJSON {
		var theirs rls.RateLimitRequest
		if protojson.Unmarshal([]byte(text), &theirs) == nil {
			t.Errorf("%.60s: protojson reads it", text)
		}
		var r envoy.Request
		err := DecodeJSON([]byte(text), &r)
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit request: ") {
			t.Errorf("%.60s: %v, want an error", text, err)
		} else if len(err.Error()) > 300 {
			t.Errorf("%.60s: a long error: %v", text, err)
		}
	}
}

func TestErrorsInJSONNameTheField(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{
			`{"descriptors":[{},{"entries":[{"key":5}]}]}`,
			"descriptors[1].entries[0].key is 5; want a string",
		},
		{
			`{"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}`,
			`descriptors[0].limit.unit is "FORTNIGHT"; want one of ` +
				"[SECOND MINUTE HOUR DAY MONTH YEAR WEEK] or its number",
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
			`hits_addend is "many"; want a whole number from 0 to 4294967295`,
		},
		{
			`{"domian":"a"}`,
			`the message has no field "domian"; want domain, descriptors, hitsAddend`,
		},
		{`{"domain":"a"`, "the message is truncated; want one JSON object"},
	} {
		var r envoy.Request
		err := DecodeJSON([]byte(test.text), &r)
		if err == nil || err.Error() != "ratelimit request: "+test.want {
			t.Errorf("%s: %v, want %s", test.text, err, test.want)
		}
	}
}
