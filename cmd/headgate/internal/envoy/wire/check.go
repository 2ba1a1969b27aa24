package wire

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// maxHits is the largest number of hits, which a double in Redis still holds exactly.
const maxHits = 1<<53 - 1

// check refuses what no configuration can make sense of. That a domain or a descriptor is missing
// is for the dialect to say, in its own words.
func check(r *envoy.Request) error {
	for i := range r.Descriptors {
		d := &r.Descriptors[i]
		if d.Hits > maxHits {
			return atIndex("descriptors", i, at("hits_addend",
				invalid("is %d; want at most %d", d.Hits, uint64(maxHits))))
		}
		if o := d.Override; o != nil && (o.Unit < envoy.Second || o.Unit > envoy.Week) {
			return atIndex("descriptors", i, at("limit", at("unit",
				invalid("is %d; want 1 (SECOND) to 7 (WEEK)", o.Unit))))
		}
	}
	return nil
}

// A message of more than maxSmall bytes is checked before it is decoded, because a descriptor or an
// entry needs much more memory than its two bytes.
const (
	maxSmall   = 64 << 10 // also of a domain
	maxEntries = 100_000
)

// checkLarge refuses a message whose parts are too large or too many. Bytes that are no message
// pass.
func checkLarge(f fields) error {
	if len(f) <= maxSmall {
		return nil
	}
	descriptors, entries := 0, 0
	err := f.parts(func(number protowire.Number, part fields) error {
		switch {
		case number == 1 && len(part) > maxSmall:
			return at("domain", invalid("has %d bytes; want at most %d", len(part), maxSmall))
		case number != 2:
			return nil
		}
		descriptors++
		return part.parts(func(number protowire.Number, _ fields) error {
			if number == 1 {
				entries++
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return err
	case descriptors > envoy.MaxDescriptors:
		return invalid("has %d descriptors; want at most %d", descriptors, envoy.MaxDescriptors)
	case entries > maxEntries:
		return invalid("has %d entries; want at most %d", entries, maxEntries)
	}
	return nil
}

// valueError says what is wrong with a value in a message.
type valueError struct {
	path string // of the field; empty for the whole message
	text string
}

// Error returns the path and what is wrong.
func (e *valueError) Error() string {
	if e.path == "" {
		return "the message " + e.text
	}
	return e.path + " " + e.text
}

func invalid(format string, args ...any) error {
	return &valueError{text: fmt.Sprintf(format, args...)}
}

// at puts field in front of the path in err, if there is an error.
func at(field string, err error) error {
	if e, ok := errors.AsType[*valueError](err); ok {
		if e.path != "" && e.path[0] != '[' {
			field += "."
		}
		return &valueError{path: field + e.path, text: e.text}
	}
	return err
}

func atIndex(field string, i int, err error) error {
	if err == nil {
		return nil
	}
	return at(field, at(fmt.Sprintf("[%d]", i), err))
}
