package headgate

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// ErrFull is returned by [Memory] when a shard holds no room for even the slot
// that newcomers share, which takes more different limits than the table has
// spare slots; or if newcomers that share one would be booked ahead together. Give NewMemory a larger number of keys.
var ErrFull = errors.New("headgate: memory store has no slot left; create it with room for more keys")

// ErrTooLate is returned by [Reservation.Commit] and [Reservation.Cancel] if there is nothing
// left to give back: the reservation counts for good.
var ErrTooLate = errors.New("headgate: it is too late to give the reservation back; it counts as it was made")

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

// DeadlineError is returned by what waits for a turn, such as [Limiter.Wait], if
// the turn would come after the deadline: at once, and nothing was charged. It is a
// context.DeadlineExceeded.
type DeadlineError struct {
	Limit Limit         // that with the longest wait; the zero Limit at a gate
	Wait  time.Duration // until the turn; 0 if that is not known
}

// Error gives one line: the limit, and in how long the turn comes.
func (e *DeadlineError) Error() string {
	under := ""
	if e.Limit != (Limit{}) {
		under = " under " + e.Limit.Name()
	}
	when := ""
	if e.Wait > 0 {
		when = " in " + e.Wait.String() + ","
	}
	return "headgate: the turn" + under + " comes" + when + " after the deadline"
}

// Unwrap returns context.DeadlineExceeded.
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }
