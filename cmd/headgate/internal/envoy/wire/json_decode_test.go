package wire

import (
	"reflect"
	"strings"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// FuzzDecodeJSON holds DecodeJSON to protojson: it refuses what that refuses, and values that check
// refuses. All else it reads with the same fields.
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
		got := DecodeJSON([]byte(text), &ours)
		request := fromGenerated(&theirs)
		if want == nil {
			want = check(&request)
		}
		if (want != nil) != (got != nil) {
			t.Fatalf("%s: %v; want %v", text, got, want)
		}
		if got == nil && !reflect.DeepEqual(normal(&ours), request) {
			t.Fatalf("%s: %+v; protojson has %+v", text, normal(&ours), request)
		}
	})
}

// refusedJSON are texts that protojson or check refuses.
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
{"descriptors":[{"hitsAddend":"18446744073709551615"}]}
{"descriptors":[{"limit":{"unit":99}}]}
{"descriptors":[{"hitsAddend":18446744073709551616}]}
{"descriptors":[{"hitsAddend":{"value":1}}]}
`), "", "{\"domain\":\"\xff\"}", strings.Repeat(`{"descriptors":[`, 5000))

// readJSON are texts that are read.
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
{"descriptors":[{"hits_addend":0}]}
`)

func lines(text string) []string { return strings.Split(strings.Trim(text, "\n"), "\n") }

func TestJSONThatIsRead(t *testing.T) {
	for _, text := range readJSON {
		var r envoy.Request
		if err := DecodeJSON([]byte(text), &r); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestJSONThatIsRefused(t *testing.T) {
	for _, text := range refusedJSON {
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
	} {
		var r envoy.Request
		err := DecodeJSON([]byte(test.text), &r)
		if err == nil || err.Error() != "ratelimit request: "+test.want {
			t.Errorf("%s: %v, want %s", test.text, err, test.want)
		}
	}
}
