package headgate

import (
	"errors"
	"strconv"
)

// ErrFull is returned by [Memory] when a shard holds no room for even the slot
// that newcomers share, which takes more different limits than the table has
// spare slots. Give NewMemory a larger number of keys.
var ErrFull = errors.New("headgate: memory store has no slot left; create it with room for more keys")

// ErrReleased is returned by [Flight.Release] and [Flight.Renew] after the flight has
// been given back, and is why the context of [Flight.Keep] ended then.
var ErrReleased = errors.New("headgate: the flight has been given back already")

// ErrLeaseLost is returned by [Flight.Renew] and [Flight.Release] after the lease of the
// flight has ended, and is why the context of [Flight.Keep] ended then. Others may have
// begun in its place.
var ErrLeaseLost = errors.New("headgate: the lease of the flight has ended, and its place may be another's")

// InvalidError says which input was wrong and what would be accepted instead.
// It is returned by [Limit.Validate], [ParseLimit], the constructors and every
// [Store] method, before anything is decided or charged.
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
