package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// DecodeJSON reads a RateLimitRequest in the JSON form of protobuf into r, and checks its values.
//
// Names are in camelCase or snake_case, numbers may be strings, and a unit is a name or a number.
// An unknown name and one that occurs twice are errors. Two things are read that protojson
// refuses: half a surrogate pair, as U+FFFD, and WEEK as the unit of a limit.
func DecodeJSON(message []byte, r *envoy.Request) error {
	err := decodeJSON(message, r)
	if err == nil {
		err = check(r)
	}
	if err != nil {
		return fmt.Errorf("ratelimit request: %w", err)
	}
	return nil
}

func decodeJSON(message []byte, r *envoy.Request) error {
	r.Reset()
	if !utf8.Valid(message) {
		return errNotUTF8
	}
	d := json.NewDecoder(bytes.NewReader(message))
	d.UseNumber()
	in := reader{d}
	first, err := in.next()
	if err != nil {
		return err
	}
	if err := in.request(first, r); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return invalid("has text after the object; want one JSON object")
	}
	return nil
}

func (r reader) request(first json.Token, into *envoy.Request) error {
	return r.object(first,
		member{"domain", "domain", readText(&into.Domain)},
		member{"descriptors", "descriptors", func(t json.Token) error {
			return r.list(t, func(t json.Token) error {
				return r.descriptor(t, nextDescriptor(into))
			})
		}},
		member{"hits_addend", "hitsAddend", readNumber(&into.HitsAddend)},
	)
}

func (r reader) descriptor(first json.Token, into *envoy.Descriptor) error {
	return r.object(first,
		member{"entries", "entries", func(t json.Token) error {
			return r.list(t, func(t json.Token) error {
				var e envoy.Entry
				defer func() { into.Entries = append(into.Entries, e) }()
				return r.object(t,
					member{"key", "key", readText(&e.Key)},
					member{"value", "value", readText(&e.Value)},
				)
			})
		}},
		member{"limit", "limit", func(t json.Token) error {
			into.Override = new(envoy.Override)
			return r.object(t,
				member{"requests_per_unit", "requestsPerUnit",
					readNumber(&into.Override.RequestsPerUnit)},
				member{"unit", "unit", readUnit(&into.Override.Unit)},
				member{"unit_multiplier", "unitMultiplier",
					readNumber(&into.Override.Multiplier)},
			)
		}},
		member{"hits_addend", "hitsAddend", func(t json.Token) error {
			into.HasHits = true
			return readNumber(&into.Hits)(t)
		}},
		member{"is_negative_hits", "isNegativeHits", readBool(&into.Negative)},
	)
}

// unitNames are the names of the units, by their numbers.
var unitNames = []string{"UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"}

func readUnit(into *envoy.Unit) func(json.Token) error {
	return func(t json.Token) error {
		if number, ok := t.(json.Number); ok {
			v, whole := wholeNumber(number.String())
			if whole && v <= math.MaxInt32 {
				*into = envoy.Unit(v)
				return nil
			}
		}
		for i, name := range unitNames {
			if t == name {
				*into = envoy.Unit(i)
				return nil
			}
		}
		return invalid("is %s; want one of %v or its number", show(t), unitNames[1:])
	}
}
