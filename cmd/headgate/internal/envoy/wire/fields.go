package wire

import (
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// errMalformed has no more detail: behind a broken field nothing can be read.
var errMalformed error = &valueError{text: "is truncated or not protobuf; want a RateLimitRequest"}

// fields is the part of a message that was not read yet.
type fields []byte

// tag reads the number and the type of the next field.
func (f *fields) tag() (protowire.Number, protowire.Type, error) {
	v, err := f.varint()
	if err != nil {
		return 0, 0, err
	}
	// protowire.ConsumeTag lets greater numbers pass, which generated types refuse.
	number, kind := protowire.DecodeTag(v)
	if !number.IsValid() || kind == protowire.EndGroupType {
		return 0, 0, errMalformed
	}
	return number, kind, nil
}

func (f *fields) varint() (uint64, error) {
	if b := *f; len(b) > 0 && b[0] < 0x80 {
		*f = b[1:]
		return uint64(b[0]), nil
	}
	v, n := protowire.ConsumeVarint(*f)
	if n < 0 {
		return 0, errMalformed
	}
	*f = (*f)[n:]
	return v, nil
}

func (f *fields) bytes() ([]byte, error) {
	n, err := f.varint()
	if err != nil || n > uint64(len(*f)) {
		return nil, errMalformed
	}
	b := (*f)[:n]
	*f = (*f)[n:]
	return b, nil
}

// text returns a string in the memory of the message. It may hold any bytes, against the rules of
// protobuf: Envoy sends the header fields of clients, and lets a request pass whose call fails.
func (f *fields) text() (string, error) {
	b, err := f.bytes()
	if err != nil {
		return "", err
	}
	return unsafe.String(unsafe.SliceData(b), len(b)), nil //nolint:gosec // nobody writes to it
}

// skip reads the value of a field that is not known, or has another type than it should have.
func (f *fields) skip(number protowire.Number, kind protowire.Type) error {
	n := protowire.ConsumeFieldValue(number, kind, *f)
	if n < 0 {
		return errMalformed
	}
	*f = (*f)[n:]
	return nil
}

// parts calls use with the fields of f that have a length, until it returns an error or f is no
// message. It reads f to that place.
func (f *fields) parts(use func(protowire.Number, fields) error) (failed error) {
	_ = f.each(func(number protowire.Number, kind protowire.Type) (known bool, err error) {
		if kind != protowire.BytesType {
			return false, nil
		}
		part, err := f.bytes()
		if err == nil {
			failed = use(number, part)
			err = failed
		}
		return true, err
	}) // decoding says what is wrong
	return failed
}

// each calls read with each field of f, until an error. It skips what read does not know.
func (f *fields) each(read func(protowire.Number, protowire.Type) (known bool, err error)) error {
	for len(*f) > 0 {
		number, kind, err := f.tag()
		if err != nil {
			return err
		}
		known, err := read(number, kind)
		if err == nil && !known {
			err = f.skip(number, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wrapped reads a wrapper such as google.protobuf.UInt64Value, whose field 1 is a number.
func (f *fields) wrapped(into *uint64) error {
	return f.each(func(number protowire.Number, kind protowire.Type) (known bool, err error) {
		if known = number == 1 && kind == protowire.VarintType; known {
			*into, err = f.varint()
		}
		return known, err
	})
}
