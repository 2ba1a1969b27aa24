package wire

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// AppendResponse appends r to b as an envoy.service.ratelimit.v3.RateLimitResponse.
func AppendResponse(b []byte, r *envoy.Response) []byte {
	b = appendNumber(b, 1, uint64(r.Code))
	for i := range r.Statuses {
		b = appendStatus(b, &r.Statuses[i])
	}
	for i := range r.Headers {
		h := &r.Headers[i]
		var header int
		b, header = open(b, 3)
		b = appendText(b, 1, h.Key)
		b = appendText(b, 2, h.Value)
		b = closed(b, header)
	}
	if r.Metadata != nil {
		b = protowire.AppendTag(b, 6, protowire.BytesType)
		b = protowire.AppendBytes(b, encodeMetadata(r.Metadata))
	}
	return b
}

// encodeMetadata encodes fields as a google.protobuf.Struct.
func encodeMetadata(fields map[string]any) []byte {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		return nil // cannot happen: all text is UTF-8
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		return nil
	}
	return b
}

func appendStatus(b []byte, s *envoy.Status) []byte {
	b, start := open(b, 2)
	b = appendNumber(b, 1, uint64(s.Code))
	if s.HasLimit {
		var limit int
		b, limit = open(b, 2)
		b = appendNumber(b, 1, uint64(s.Limit.RequestsPerUnit))
		b = appendNumber(b, 2, uint64(s.Limit.Unit))
		b = appendText(b, 3, s.Limit.Name)
		if s.Limit.Multiplier != 0 {
			var multiplier int
			b, multiplier = open(b, 4)
			b = appendNumber(b, 1, uint64(s.Limit.Multiplier))
			b = closed(b, multiplier)
		}
		b = closed(b, limit)
	}
	b = appendNumber(b, 3, uint64(s.Remaining))
	if s.HasLimit {
		var reset int
		b, reset = open(b, 4)
		b = appendNumber(b, 1, uint64(s.Reset/time.Second))
		b = appendNumber(b, 2, uint64(s.Reset%time.Second))
		b = closed(b, reset)
	}
	return closed(b, start)
}

// open begins a message as a field of another, and leaves a byte for its length.
func open(b []byte, number protowire.Number) (_ []byte, start int) {
	b = append(protowire.AppendTag(b, number, protowire.BytesType), 0)
	return b, len(b)
}

// closed writes the length of the message that began at start. It moves a long one, whose length
// takes more than a byte.
func closed(b []byte, start int) []byte {
	n := len(b) - start
	if n < 0x80 {
		b[start-1] = byte(n)
		return b
	}
	more := protowire.SizeVarint(uint64(n)) - 1
	b = append(b, make([]byte, more)...)
	copy(b[start+more:], b[start:start+n])
	protowire.AppendVarint(b[:start-1], uint64(n))
	return b
}

// appendNumber appends a field of a number, unless it is 0, which is what is read without it.
func appendNumber(b []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}
