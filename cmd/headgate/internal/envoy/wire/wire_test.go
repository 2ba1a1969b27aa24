package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
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
		f.Add(append(b, "\x09\x00\x00\x00\x00\x00\x00\x00\x00\x15\x00\x00\x00\x00\x1b\x08\x01\x1c"...)) // other types
		f.Add(b[:len(b)/2])
	}
	f.Add([]byte("\x12\x08\x12\x02\x08\x05\x12\x02\x10\x01")) // a limit in two parts
	f.Add([]byte("\x12\x06\x1a\x02\x08\x05\x1a\x00"))         // a number of hits in two
	for _, text := range malformed {
		// The fuzzer takes minutes to make a long one short.
		f.Add([]byte(text)[:min(len(text), 100)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ours := usedBefore()
		var theirs rls.RateLimitRequest
		want := proto.Unmarshal(b, &theirs)
		got := decodeRequest(b, ours)
		if want != nil && got == nil && strings.Contains(want.Error(), "invalid UTF-8") {
			return // ours may hold any bytes
		}
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

// TestLargeMessages: a message may be large if its parts are not.
func TestLargeMessages(t *testing.T) {
	field := func(number protowire.Number, n int) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), make([]byte, n))
	}
	descriptor := func(part []byte, times int) []byte {
		b := protowire.AppendTag(nil, 2, protowire.BytesType)
		return protowire.AppendBytes(b, bytes.Repeat(part, times))
	}
	entry := append([]byte{0x0a, 0x82, 0x1f}, field(1, 3967)...)
	for name, c := range map[string]struct {
		message []byte
		want    string
	}{
		"1,000 descriptors of 4,000 bytes": {bytes.Repeat(descriptor(entry, 1), 1000), ""},
		"1,001 descriptors": {
			bytes.Repeat(descriptor(entry, 1), 1001), "the message has 1001 descriptors; want at most 1000",
		},
		"a long domain": {field(1, 65537), "domain has 65537 bytes; want at most 65536"},
		"a long descriptor": {
			descriptor(protowire.AppendBytes([]byte{0x0a}, field(1, 100_000)), 1), "",
		},
		"not UTF-8": {[]byte("\x0a\x02\xff\xfe"), ""},
		"many entries": {
			bytes.Repeat(descriptor([]byte{0x0a, 0}, 26000), 4),
			"the message has 104000 entries; want at most 100000",
		},
		"many entries behind numbers": {
			slices.Concat([]byte{0x18, 1}, bytes.Repeat(
				slices.Concat([]byte{0x18, 1}, descriptor([]byte{0x20, 0, 0x0a, 0}, 16000)), 7)),
			"the message has 112000 entries; want at most 100000",
		},
		"a part":  {[]byte("\x12\x05"), "descriptors[0] is truncated"},
		"another": {[]byte("\x12\x00\x12\x05"), "descriptors[1] is truncated"},
	} {
		var r envoy.Request
		err := Decode(c.message, &r)
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %.200v; want %q", name, err, c.want)
		}
	}
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

func TestValuesThatMakeNoSense(t *testing.T) {
	withUnit := func(unit envoy.Unit) envoy.Descriptor {
		return envoy.Descriptor{Override: &envoy.Override{Unit: unit}}
	}
	withHits := func(hits uint64) envoy.Descriptor {
		return envoy.Descriptor{HasHits: true, Hits: hits}
	}
	for _, test := range []struct {
		descriptor envoy.Descriptor
		want       string // in the error; empty: none
	}{
		{withUnit(0), "limit.unit is 0; want 1 (SECOND) to 7 (WEEK)"},
		{withUnit(8), "limit.unit is 8; want 1 (SECOND) to 7 (WEEK)"},
		{withUnit(-1), "limit.unit is -1; want 1 (SECOND) to 7 (WEEK)"},
		{withUnit(envoy.Week), ""},
		{withHits(1 << 53), "hits_addend is 9007199254740992; want at most 9007199254740991"},
		{withHits(1<<64 - 1), "hits_addend is 18446744073709551615; want at most 9007199254740991"},
		{withHits(1<<53 - 1), ""},
		{withHits(0), ""},
	} {
		b, err := proto.Marshal(toGenerated(&envoy.Request{
			Domain: "edge", Descriptors: []envoy.Descriptor{{}, test.descriptor},
		}))
		if err != nil {
			t.Fatal(err)
		}
		var r envoy.Request
		text := ""
		if err := Decode(b, &r); err != nil {
			text = err.Error()
		}
		want := test.want
		if want != "" {
			want = "ratelimit request: descriptors[1]." + want
		}
		if text != want {
			t.Errorf("%+v: %q, want %q", test.descriptor, text, want)
		}
	}
}
