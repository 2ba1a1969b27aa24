// Package wire encodes and decodes the messages of Envoy's rate limit protocol, version 3.
//
// The binary form is written by hand, because the generated types allocate for every entry and
// every status: with them, a decision costs 1.2 times the server's CPU (docs/design/grpc.md). Fuzz
// tests compare both: they accept the same messages with the same fields, except text that is not
// UTF-8. The JSON form is read and written with the generated types, because it is not used for
// speed.
package wire

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"google.golang.org/protobuf/encoding/protowire"
)

// Decider decides requests of the protocol.
//
// It fills the response, which is empty. Strings in the request are valid until Decide returns,
// because they point into the buffer of the message, which is reused. A Decider must copy each
// string that it keeps, also if it returns early because ctx has ended.
type Decider interface {
	Decide(ctx context.Context, request *envoy.Request, response *envoy.Response) error
}

// Decode reads an envoy.service.ratelimit.v3.RateLimitRequest into r, and checks its values.
//
// The text in r lies in message, and the slices of r are used again: it allocates only if r has
// never been as large, or for a limit in the request. Fields that are not known are skipped.
func Decode(message []byte, r *envoy.Request) error {
	err := checkLarge(message)
	if err == nil {
		err = decodeRequest(message, r)
	}
	if err == nil {
		err = check(r)
	}
	if err != nil {
		return fmt.Errorf("ratelimit request: %w", err)
	}
	return nil
}

func decodeRequest(f fields, r *envoy.Request) error {
	r.Reset()
	return f.each(func(number protowire.Number, kind protowire.Type) (known bool, err error) {
		switch {
		case number == 1 && kind == protowire.BytesType:
			r.Domain, err = f.text()
			return true, at("domain", err)
		case number == 2 && kind == protowire.BytesType:
			i := len(r.Descriptors)
			b, err := f.bytes()
			if err == nil {
				err = decodeDescriptor(b, nextDescriptor(r))
			}
			return true, atIndex("descriptors", i, err)
		case number == 3 && kind == protowire.VarintType:
			v, err := f.varint()
			r.HitsAddend = uint32(v)
			return true, err
		}
		return false, nil
	})
}

// nextDescriptor makes r longer by an empty descriptor, whose entries keep their memory.
func nextDescriptor(r *envoy.Request) *envoy.Descriptor {
	n := len(r.Descriptors)
	if n == cap(r.Descriptors) {
		r.Descriptors = append(r.Descriptors, envoy.Descriptor{})
	} else {
		r.Descriptors = r.Descriptors[:n+1]
	}
	d := &r.Descriptors[n]
	*d = envoy.Descriptor{Entries: d.Entries[:0]}
	return d
}

func decodeDescriptor(f fields, d *envoy.Descriptor) error {
	return f.each(func(number protowire.Number, kind protowire.Type) (known bool, err error) {
		switch {
		case number <= 3 && kind == protowire.BytesType:
			b, err := f.bytes()
			if err == nil {
				err = decodeDescriptorPart(number, b, d)
			}
			return true, err
		case number == 4 && kind == protowire.VarintType:
			v, err := f.varint()
			d.Negative = v != 0
			return true, err
		}
		return false, nil
	})
}

// decodeDescriptorPart reads one of the messages in a descriptor. A limit or a number of hits that
// occurs again is merged with what came before, as protobuf has it.
func decodeDescriptorPart(number protowire.Number, f fields, d *envoy.Descriptor) error {
	switch number {
	case 1:
		d.Entries = append(d.Entries, envoy.Entry{})
		i := len(d.Entries) - 1
		return atIndex("entries", i, decodeEntry(f, &d.Entries[i]))
	case 2:
		if d.Override == nil {
			d.Override = new(envoy.Override)
		}
		return at("limit", decodeOverride(f, d.Override))
	default:
		d.HasHits = true
		return at("hits_addend", f.wrapped(&d.Hits))
	}
}

func decodeEntry(f fields, e *envoy.Entry) error {
	return f.each(func(number protowire.Number, kind protowire.Type) (known bool, err error) {
		switch {
		case number == 1 && kind == protowire.BytesType:
			e.Key, err = f.text()
			return true, at("key", err)
		case number == 2 && kind == protowire.BytesType:
			e.Value, err = f.text()
			return true, at("value", err)
		}
		return false, nil
	})
}

func decodeOverride(f fields, o *envoy.Override) error {
	return f.each(func(number protowire.Number, kind protowire.Type) (known bool, err error) {
		switch {
		case number == 1 && kind == protowire.VarintType:
			v, err := f.varint()
			o.RequestsPerUnit = uint32(v)
			return true, err
		case number == 2 && kind == protowire.VarintType:
			v, err := f.varint()
			o.Unit = envoy.Unit(v)
			return true, err
		case number == 3 && kind == protowire.BytesType:
			v := uint64(o.Multiplier)
			var b fields
			if b, err = f.bytes(); err == nil {
				err = b.wrapped(&v)
			}
			o.Multiplier = uint32(v)
			return true, err
		}
		return false, nil
	})
}
