package headgate

import (
	"errors"
	"strconv"
)

// ErrFull is returned by [Memory] when a shard holds no room for even the slot
// that newcomers share, which takes more different limits than the table has
// spare slots. Give NewMemory a larger number of keys.
var ErrFull = errors.New("headgate: memory store has no slot left; create it with room for more keys")

// ErrClosed is returned by [Gate.Wait], [Gate.WaitN] and their like of [KeyedGate],
// once Close has been called: to those who wait at that moment and to all who come
// later.
var ErrClosed = errors.New("headgate: the gate is closed")

// InvalidError says which input was wrong and what would be accepted instead.
// It is returned by [Limit.Validate], [ParseLimit], the constructors, every
// [Store] method and those that wait, before anything is decided or charged.
type InvalidError struct {
	Field string // the input at fault, such as "capacity" or "request 2: capacity"
	Value string // what was given
	Want  string // what would be accepted
}

// Error gives one line: the field, the value and what would be accepted.
func (e *InvalidError) Error() string {
	return "headgate: " + e.Field + " is " + e.Value + "; want " + e.Want
}

func invalid(field string, value int64, want string) error {
	return &InvalidError{Field: field, Value: strconv.FormatInt(value, 10), Want: want}
}
