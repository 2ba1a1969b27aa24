package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// reader reads JSON token by token, because encoding/json alone neither sees that a name occurs
// twice nor reads a number from a string.
type reader struct{ *json.Decoder }

// member is a field of an object, and what reads its value from the first token of it.
type member struct {
	name  string // as in the .proto file
	camel string // as in JSON
	read  func(first json.Token) error
}

func (r reader) next() (json.Token, error) {
	t, err := r.Token()
	if errors.Is(err, io.EOF) {
		return nil, invalid("is truncated; want one JSON object")
	}
	if err != nil {
		return nil, invalid("is not JSON: %v", err)
	}
	return t, nil
}

// object reads the rest of an object that begins with first. A member that is null is not set.
func (r reader) object(first json.Token, members ...member) error {
	if first != json.Delim('{') {
		return invalid("is %s; want an object", show(first))
	}
	seen := make([]bool, len(members))
	for r.More() {
		name, err := r.next()
		if err != nil {
			return err
		}
		i := find(members, name)
		if i < 0 {
			return invalid("has no field %s; want %s", show(name), names(members))
		}
		if seen[i] {
			return at(members[i].name, invalid("occurs twice; want it once"))
		}
		seen[i] = true
		value, err := r.next()
		if err == nil && value != nil {
			err = at(members[i].name, members[i].read(value))
		}
		if err != nil {
			return err
		}
	}
	_, err := r.next()
	return err
}

// list reads the rest of a list that begins with first.
func (r reader) list(first json.Token, read func(first json.Token) error) error {
	if first != json.Delim('[') {
		return invalid("is %s; want a list", show(first))
	}
	for i := 0; r.More(); i++ {
		value, err := r.next()
		if err == nil {
			err = read(value)
		}
		if err != nil {
			return at(fmt.Sprintf("[%d]", i), err)
		}
	}
	_, err := r.next()
	return err
}

func find(members []member, name json.Token) int {
	for i := range members {
		if name == members[i].name || name == members[i].camel {
			return i
		}
	}
	return -1
}

func names(members []member) string {
	all := make([]string, len(members))
	for i := range members {
		all[i] = members[i].camel
	}
	return strings.Join(all, ", ")
}

func readText(into *string) func(json.Token) error {
	return func(t json.Token) error {
		text, ok := t.(string)
		if !ok {
			return invalid("is %s; want a string", show(t))
		}
		*into = text
		return nil
	}
}

func readBool(into *bool) func(json.Token) error {
	return func(t json.Token) error {
		v, ok := t.(bool)
		if !ok {
			return invalid("is %s; want true or false", show(t))
		}
		*into = v
		return nil
	}
}

// readNumber reads a whole number, which may be in a string, as protojson has it.
func readNumber[N uint32 | uint64](into *N) func(json.Token) error {
	return func(t json.Token) error {
		text, ok := t.(string)
		if number, is := t.(json.Number); is {
			text, ok = number.String(), true
		}
		v, whole := wholeNumber(text)
		if !ok || !whole || v > uint64(^N(0)) {
			return invalid("is %s; want a whole number from 0 to %d", show(t), ^N(0))
		}
		*into = N(v)
		return nil
	}
}

// wholeNumber reads a JSON number that has no fraction, such as 5, 5.0 or 50e-1.
func wholeNumber(text string) (uint64, bool) {
	if !json.Valid([]byte(text)) || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, false
	}
	text, negative := strings.CutPrefix(strings.ToLower(text), "-")
	mantissa, exponent, _ := strings.Cut(text, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	digits := whole + fraction
	if digits == "" {
		return 0, true
	}
	shift, err := strconv.ParseInt(cmp.Or(exponent, "0"), 10, 32)
	const most = len("18446744073709551615")
	if err != nil || negative || len(whole)+int(shift) > most {
		return 0, false
	}
	zeros := int(shift) - len(fraction) // to append, or to remove if negative
	if zeros < 0 {
		zeros = -zeros
		if zeros >= len(digits) || strings.Trim(digits[len(digits)-zeros:], "0") != "" {
			return 0, false
		}
		digits, zeros = digits[:len(digits)-zeros], 0
	}
	v, err := strconv.ParseUint(digits+strings.Repeat("0", zeros), 10, 64)
	return v, err == nil
}

// show returns a token as an error shows it: no more than its beginning.
func show(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "a list"}[t]
	case string:
		return fmt.Sprintf("%.40q", t)
	default:
		return fmt.Sprintf("%.40s", fmt.Sprint(t))
	}
}
