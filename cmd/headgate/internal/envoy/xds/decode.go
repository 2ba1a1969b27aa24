package xds

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// typeURL is that of the resources: ratelimit.config.ratelimit.v3.RateLimitConfig.
const typeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// maxDepth bounds how deep descriptors are nested.
const maxDepth = 100

var errTooDeep = errors.New("descriptors are nested too deep; want at most 100 levels")

// field is one field of a message: bytes or number, by its type.
type field struct {
	number protowire.Number
	bytes  []byte
	value  uint64
}

// fields calls f for each field of a message that has bytes or a varint. Others are skipped, as
// those of later versions.
func fields(message []byte, f func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		found := field{number: number}
		switch kind {
		case protowire.BytesType:
			found.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			found.value, n = protowire.ConsumeVarint(message)
		default:
			if n = protowire.ConsumeFieldValue(number, kind, message); n >= 0 {
				message = message[n:]
				continue
			}
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := f(found); err != nil {
			return err
		}
	}
	return nil
}

// decodeDomain decodes a RateLimitConfig.
func decodeDomain(message []byte) (*envoy.Domain, error) {
	d := &envoy.Domain{File: "xds"}
	err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			d.File = "xds resource " + string(f.bytes)
		case 2:
			d.Name = string(f.bytes)
		case 3:
			spec, err := decodeSpec(f.bytes, 1)
			d.Descriptors = append(d.Descriptors, spec)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.File, err)
	}
	return d, nil
}

// decodeSpec decodes a RateLimitDescriptor.
func decodeSpec(message []byte, depth int) (s envoy.Spec, err error) {
	if depth > maxDepth {
		return s, errTooDeep
	}
	err = fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			s.Key = string(f.bytes)
		case 2:
			s.Value = string(f.bytes)
		case 3:
			s.RateLimit, err = decodeRateLimit(f.bytes)
		case 4:
			var inner envoy.Spec
			inner, err = decodeSpec(f.bytes, depth+1)
			s.Descriptors = append(s.Descriptors, inner)
		case 5:
			s.ShadowMode = f.value != 0
		case 6:
			s.DetailedMetric = f.value != 0
		case 7:
			s.QuotaMode = f.value != 0
		case 8:
			s.Metadata, err = decodeStruct(f.bytes)
		}
		return err
	})
	return s, err
}

// decodeRateLimit decodes a RateLimitPolicy.
func decodeRateLimit(message []byte) (*envoy.RateLimit, error) {
	l := new(envoy.RateLimit)
	var unit envoy.Unit
	err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			unit = envoy.Unit(int32(f.value)) // as protobuf decodes it
		case 2:
			l.RequestsPerUnit = uint32(f.value) // as protobuf decodes it
		case 3:
			l.Unlimited = f.value != 0
		case 4:
			l.Name = string(f.bytes)
		case 5:
			return fields(f.bytes, func(f field) error {
				if f.number == 1 {
					l.Replaces = append(l.Replaces, string(f.bytes))
				}
				return nil
			})
		}
		return nil
	})
	if unit != envoy.UnitUnknown || !l.Unlimited {
		l.Unit = unit.String()
	}
	return l, err
}

func decodeStruct(message []byte) (map[string]any, error) {
	var s structpb.Struct
	if err := proto.Unmarshal(message, &s); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return s.AsMap(), nil
}
