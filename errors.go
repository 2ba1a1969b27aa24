package headgate

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// ErrFull is returned by a full [Memory] that cannot decide. New keys of a full Memory share
// states. TakeAll returns ErrFull for requests of two keys that share one, unless both requests are
// forced. Take and TakeAll return it if more limits are in use than there are extra slots: see
// [NewMemorySize]. Make the Memory with more keys.
var ErrFull = errors.New("headgate: the memory store is full; create it with more keys")

// ErrBadState reports that the stored value of a key is not a state of its limit. The error of a
// [Store] wraps it. The error concerns that key alone, and the request was not charged. redisstore
// returns it if another program has written to the key. Reset deletes the value.
var ErrBadState = errors.New("headgate: the stored value is not a state of the limit")

// ErrNoBooking is returned by a [Store] that does not book ahead, for a request with MaxWait. Every
// Store returns it for a request with MaxWait and Headroom. Nothing was decided. [Limiter.Wait] and
// an httplimit.Transport then wait without a booking, and [Limiter.Reserve] returns the error.
var ErrNoBooking = errors.New("headgate: the store does not book ahead")

// InvalidError reports which input was wrong, and what would be accepted instead. Constructors,
// methods and every [Store] return it for wrong input, before anything is charged.
type InvalidError struct {
	Field string // the wrong input, such as "capacity" or "request 2: capacity"
	Value string // what was given
	Want  string // what would be accepted
}

// Error returns the field, the value and what would be accepted, in one line.
func (e *InvalidError) Error() string {
	return "headgate: " + e.Field + " is " + e.Value + "; want " + e.Want
}

// Unavailable reports whether err, an error of a [Store], means that the store could not decide. It
// is false if ctx, the context of the caller, has ended, and for nil, [ErrNoBooking], an
// [InvalidError] and a [DeadlineError]. If you gave the store less time in a context of your own,
// pass the one from which you made it. The errors of a [LimitsFunc] count as those of a store.
func Unavailable(ctx context.Context, err error) bool {
	_, invalid := errors.AsType[*InvalidError](err)
	_, late := errors.AsType[*DeadlineError](err)
	return err != nil && ctx.Err() == nil && !invalid && !late && !errors.Is(err, ErrNoBooking)
}

func wrong(field, value, want string) error {
	return &InvalidError{Field: field, Value: value, Want: want}
}

func invalid(field string, value int64, want string) error {
	return wrong(field, strconv.FormatInt(value, 10), want)
}

// DeadlineError reports that a start time would come after the deadline. Methods that wait, such as
// [Limiter.Wait], return it as soon as that is certain. Nothing was charged. It is a
// context.DeadlineExceeded.
type DeadlineError struct {
	Limit Limit         // the limit with the longest wait; the zero Limit at a gate
	Wait  time.Duration // until the start time; 0 if that is not known
}

// Error returns the limit and the wait in one line.
func (e *DeadlineError) Error() string {
	text := "headgate: the start time"
	if e.Limit != (Limit{}) {
		text += " under " + e.Limit.Name()
	}
	if e.Wait > 0 {
		return text + " is in " + e.Wait.String() + ", after the deadline"
	}
	return text + " is after the deadline"
}

// Unwrap returns context.DeadlineExceeded.
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }

// Timeout returns true. So the Timeout of a url.Error around e is true, too.
func (e *DeadlineError) Timeout() bool { return true }
