package grpcserver

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec passes the messages of rate limit requests through as they are, and leaves the others, of
// grpc.health.v1, to the codec of protobuf.
type codec struct{ protobuf encoding.CodecV2 }

func newCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal gives a call its message. Decoding it is left to the handler, which can answer with a
// better code than INTERNAL.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if v, ok := v.(*call); ok {
		v.free() // a client may send a second message, which grpc-go refuses afterwards
		v.message = data.MaterializeToBuffer(mem.DefaultBufferPool())
		return nil
	}
	if err := c.protobuf.Unmarshal(data, v); err != nil {
		return fmt.Errorf("grpc: %w", err)
	}
	return nil
}

// Marshal returns the message of an answer, which was encoded by the handler.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if v, ok := v.(*answer); ok {
		return v[:], nil
	}
	b, err := c.protobuf.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("grpc: %w", err)
	}
	return b, nil
}

// Name returns the content subtype, which is that of protobuf.
func (c codec) Name() string { return proto.Name }
