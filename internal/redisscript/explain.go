package redisscript

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Advice says what to do about an error that begins with Prefix.
type Advice struct{ Prefix, Text string }

// advices are for the errors of all servers. Before a client has authenticated, a server reads at
// most ten words, and calls more a protocol error.
var advices = []Advice{
	{"READONLY", "this is a read-only replica: name its primary"},
	{"OOM", "the server is out of memory: raise its maxmemory"},
	{"Protocol error: unauthenticated", "NOAUTH: the server wants a password"},
	{"NOAUTH", "the server wants a password"},
	{"WRONGPASS", "check the user and the password"},
}

// Explain makes an error of the client one line that begins with who and ends with advice.
// The advice is the first that fits, of more or of those for all servers. errors.As finds err in
// the result. Explain returns nil if err is nil, and err if it has been explained.
func Explain(who string, err error, more []Advice) error {
	if err == nil {
		return nil
	}
	if _, explained := errors.AsType[*serverError](err); explained {
		return err
	}
	why := strings.TrimPrefix(reason(err), "ERR ")
	for _, a := range slices.Concat(more, advices) {
		if redis.HasErrorPrefix(err, a.Prefix) || strings.HasPrefix(why, a.Prefix) {
			return &serverError{who, err, "; " + a.Text}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &serverError{who, err, "; there was no answer in time"}
	}
	return &serverError{who, err, ""}
}

type serverError struct {
	who    string
	err    error
	advice string
}

func (e *serverError) Unwrap() error { return e.err }

func (e *serverError) Error() string {
	text := strings.TrimSuffix(strings.ReplaceAll(reason(e.err), "\n", " "), ".")
	return e.who + ": " + text + e.advice
}

// reason returns the text of err without the place in the script. Redis 6.2 puts the place before
// the text, and newer servers put it after the text.
func reason(err error) string {
	const place = "@user_script:"
	text := err.Error()
	i := strings.LastIndex(text, place)
	if i < 0 {
		return text
	}
	if _, after, ok := strings.Cut(text[i+len(place):], ": "); ok {
		return after
	}
	if end := strings.LastIndex(text[:i], " script: "); end >= 0 {
		return text[:end]
	}
	return text
}
