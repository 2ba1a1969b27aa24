package xds

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// request is a DiscoveryRequest.
type request struct {
	version string // of the last configuration that was accepted
	nonce   string // of the response that is answered
	node    []byte // an encoded Node, in the first request only
	err     error  // why the response is refused
}

func (r *request) encode() []byte {
	b := appendText(nil, 1, r.version)
	if r.node != nil {
		b = appendBytes(b, 2, r.node)
	}
	b = appendText(b, 4, typeURL)
	b = appendText(b, 5, r.nonce)
	if r.err != nil {
		status := protowire.AppendTag(nil, 1, protowire.VarintType)
		status = protowire.AppendVarint(status, uint64(codes.InvalidArgument))
		b = appendBytes(b, 6, appendText(status, 2, r.err.Error()))
	}
	return b
}

// encodeNode encodes a Node.
func encodeNode(id string, metadata map[string]string) ([]byte, error) {
	b := appendText(nil, 1, id)
	if len(metadata) == 0 {
		return b, nil
	}
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value)}
	for name, value := range metadata {
		s.Fields[name] = structpb.NewStringValue(value)
	}
	encoded, err := protobuf.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("xds: the metadata of the node: %w", err)
	}
	return appendBytes(b, 3, encoded), nil
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return appendBytes(b, number, []byte(text))
}

func appendBytes(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}

// response is a DiscoveryResponse.
type response struct {
	version   string
	nonce     string
	typeURL   string
	resources [][]byte // encoded Any
}

func decodeResponse(message []byte) (r response, err error) {
	err = fields(message, func(f field) error {
		switch f.number {
		case 1:
			r.version = string(f.bytes)
		case 2:
			r.resources = append(r.resources, f.bytes)
		case 4:
			r.typeURL = string(f.bytes)
		case 5:
			r.nonce = string(f.bytes)
		}
		return nil
	})
	return r, err
}

// decodeAny decodes an Any.
func decodeAny(message []byte) (kind string, value []byte, err error) {
	err = fields(message, func(f field) error {
		switch f.number {
		case 1:
			kind = string(f.bytes)
		case 2:
			value = f.bytes
		}
		return nil
	})
	return kind, value, err
}

// codec passes messages through as they are.
type codec struct{}

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("xds: cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("xds: cannot receive a %T", v)
	}
	*b = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (codec) Name() string { return proto.Name }
