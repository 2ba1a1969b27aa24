package wire

import (
	"reflect"
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/service/internal/envoy"
)

// normal makes requests comparable: an empty slice that is used again is as good as none.
func normal(r *envoy.Request) envoy.Request {
	out := envoy.Request{Domain: r.Domain, HitsAddend: r.HitsAddend}
	for _, d := range r.Descriptors {
		if len(d.Entries) == 0 {
			d.Entries = nil
		}
		out.Descriptors = append(out.Descriptors, d)
	}
	return out
}

// usedBefore returns a request with what another has left in its memory, as in a server.
func usedBefore() *envoy.Request {
	r := &envoy.Request{Domain: "old", HitsAddend: 1}
	for range 2 {
		r.Descriptors = append(r.Descriptors, envoy.Descriptor{
			Entries:  []envoy.Entry{{Key: "old", Value: "old"}, {Key: "old", Value: "old"}},
			Override: &envoy.Override{RequestsPerUnit: 1, Unit: 1, Multiplier: 1},
			Hits:     1, HasHits: true, Negative: true,
		})
	}
	return r
}

// FuzzDecode holds Decode to the generated type: the same messages, the same fields.
func FuzzDecode(f *testing.F) {
	for i := range 40 {
		r := random{bytesFrom(i)}
		request := r.request()
		b, err := proto.Marshal(toGenerated(&request))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(b, 0x5a, 1, 'x', 0xa3, 0x06, 0x08, 1, 0xa4, 0x06))
		f.Add(b[:len(b)/2])
	}
	for _, text := range malformed {
		f.Add([]byte(text)[:min(len(text), 100)]) // the fuzzer takes minutes to make a long one short
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ours := usedBefore()
		var theirs rls.RateLimitRequest
		want := proto.Unmarshal(b, &theirs)
		got := decodeRequest(b, ours)
		if (want == nil) != (got == nil) {
			t.Fatalf("%x: %v; the generated type: %v", b, got, want)
		}
		if got != nil {
			return
		}
		if a, b := normal(ours), fromGenerated(&theirs); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v; the generated type has %+v", a, b)
		}
	})
}

// FuzzAppendResponse reads what is written by the generated type.
func FuzzAppendResponse(f *testing.F) {
	for i := range 40 {
		f.Add(bytesFrom(i))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := random{b}
		response := r.response(t)
		out := AppendResponse([]byte("before"), &response)
		var theirs rls.RateLimitResponse
		if err := proto.Unmarshal(out[len("before"):], &theirs); err != nil {
			t.Fatalf("%+v: %v", response, err)
		}
		if got := responseFromGenerated(t, &theirs); !reflect.DeepEqual(got, response) {
			t.Fatalf("%+v was read as %+v", response, got)
		}
		if size := proto.Size(&theirs); size != len(out)-len("before") {
			t.Errorf("%d bytes; the generated type needs %d", len(out)-len("before"), size)
		}
	})
}

// malformed are messages that no generated type reads.
var malformed = []string{
	"\x0a",                     // no length
	"\x0a\x05ab",               // shorter than its length
	"\x0a\x02\xff\xfe",         // not UTF-8
	"\x00",                     // field 0
	"\x07",                     // no such type
	"\x0c",                     // the end of a group that did not begin
	"\x0b\x14",                 // a group that ends as another
	"\x12\x03\x0a\x05a",        // an entry longer than its descriptor
	"\x12\x04\x0a\x02\x0a\x05", // a key longer than its entry
	"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", // a number of more than 64 bits
	"\xf8\xff\xff\xff\x7f\x00",                     // field 2^32 - 1
	strings.Repeat("\x0b", 20_000),                 // groups in groups
}

func TestMalformedMessages(t *testing.T) {
	for _, message := range malformed {
		var r envoy.Request
		err := Decode([]byte(message), &r)
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit request: ") {
			t.Errorf("%.20q: %v, want an error", message, err)
		}
	}
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	request := envoy.Request{Domain: "edge", Descriptors: []envoy.Descriptor{
		{Entries: []envoy.Entry{{Key: "a", Value: "b"}}},
	}}
	b, err := proto.Marshal(toGenerated(&request))
	if err != nil {
		t.Fatal(err)
	}
	extra := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	extra = protowire.AppendString(protowire.AppendTag(extra, 1000, protowire.BytesType), "new")
	extra = protowire.AppendFixed64(protowire.AppendTag(extra, 1, protowire.Fixed64Type), 1)
	extra = protowire.AppendFixed32(protowire.AppendTag(extra, 2, protowire.Fixed32Type), 1)
	extra = protowire.AppendGroup(protowire.AppendTag(extra, 3, protowire.StartGroupType), 3, []byte{8, 1})
	var got envoy.Request
	if err := Decode(append(extra, append(b, extra...)...), &got); err != nil {
		t.Fatal(err)
	}
	if got := normal(&got); !reflect.DeepEqual(got, request) {
		t.Errorf("%+v, want %+v", got, request)
	}
}

func TestValuesThatMakeNoSense(t *testing.T) {
	for _, test := range []struct {
		descriptor envoy.Descriptor
		want       string // in the error; empty: none
	}{
		{envoy.Descriptor{Override: &envoy.Override{Unit: 0}}, "descriptors[1].limit.unit is 0; want 1 (SECOND)"},
		{envoy.Descriptor{Override: &envoy.Override{Unit: 8}}, "descriptors[1].limit.unit is 8"},
		{envoy.Descriptor{Override: &envoy.Override{Unit: -1}}, "descriptors[1].limit.unit is -1"},
		{envoy.Descriptor{Override: &envoy.Override{Unit: envoy.Week}}, ""},
		{envoy.Descriptor{HasHits: true, Hits: 1 << 53}, "descriptors[1].hits_addend is 9007199254740992; want at most"},
		{envoy.Descriptor{HasHits: true, Hits: 1<<64 - 1}, "descriptors[1].hits_addend is 18446744073709551615"},
		{envoy.Descriptor{HasHits: true, Hits: 1<<53 - 1}, ""},
		{envoy.Descriptor{HasHits: true}, ""},
	} {
		request := envoy.Request{Domain: "edge", Descriptors: []envoy.Descriptor{{}, test.descriptor}}
		b, err := proto.Marshal(toGenerated(&request))
		if err != nil {
			t.Fatal(err)
		}
		var r envoy.Request
		err = Decode(b, &r)
		if test.want == "" && err != nil {
			t.Errorf("%+v: %v", test.descriptor, err)
		}
		if test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "ratelimit request: "+test.want)) {
			t.Errorf("%+v: %v, want %q", test.descriptor, err, test.want)
		}
	}
}

// What is decoded, decided and encoded with memory that was used before needs no new memory.
func TestNoAllocations(t *testing.T) {
	message, err := proto.Marshal(toGenerated(&envoy.Request{
		Domain: "edge",
		Descriptors: []envoy.Descriptor{
			{Entries: []envoy.Entry{{Key: "remote_address", Value: "192.0.2.1"}}},
			{Entries: []envoy.Entry{{Key: "route", Value: "/v1/x"}, {Key: "user", Value: "42"}}, HasHits: true, Hits: 3},
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	var request envoy.Request
	var response envoy.Response
	var out []byte
	allocs := testing.AllocsPerRun(100, func() {
		if err := Decode(message, &request); err != nil {
			t.Fatal(err)
		}
		response.Reset()
		grant(&request, &response)
		out = AppendResponse(out[:0], &response)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
	if len(out) == 0 {
		t.Error("an empty response")
	}
}

func grant(request *envoy.Request, response *envoy.Response) {
	response.Code = envoy.OK
	for range request.Descriptors {
		response.Statuses = append(response.Statuses, envoy.Status{
			Code: envoy.OK, HasLimit: true, Remaining: 99, Reset: 12 * time.Second,
			Limit: envoy.Limit{RequestsPerUnit: 100, Unit: envoy.Minute, Multiplier: 5, Name: "100/5m"},
		})
	}
}

func BenchmarkDecodeEncode(b *testing.B) {
	message, err := proto.Marshal(toGenerated(&envoy.Request{Domain: "edge", Descriptors: []envoy.Descriptor{
		{Entries: []envoy.Entry{{Key: "remote_address", Value: "192.0.2.1"}}},
	}}))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("by hand", func(b *testing.B) {
		var request envoy.Request
		var response envoy.Response
		var out []byte
		b.ReportAllocs()
		for b.Loop() {
			if err := Decode(message, &request); err != nil {
				b.Fatal(err)
			}
			response.Reset()
			grant(&request, &response)
			out = AppendResponse(out[:0], &response)
		}
	})
	b.Run("generated", func(b *testing.B) {
		var granted envoy.Response
		grant(&envoy.Request{Descriptors: make([]envoy.Descriptor, 1)}, &granted)
		var response rls.RateLimitResponse
		if err := proto.Unmarshal(AppendResponse(nil, &granted), &response); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			var request rls.RateLimitRequest
			if err := proto.Unmarshal(message, &request); err != nil {
				b.Fatal(err)
			}
			if _, err := proto.Marshal(&response); err != nil {
				b.Fatal(err)
			}
		}
	})
}
