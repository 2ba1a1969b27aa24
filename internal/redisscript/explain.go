package redisscript

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Advice tells what would help against an error that begins with Prefix.
type Advice struct{ Prefix, Text string }

// advices are for the answers of servers that cannot decide, whoever asks. Before a
// client has authenticated, a server reads ten words at most and calls more a
// protocol error.
var advices = []Advice{
	{"READONLY", "this is a read-only replica: name its primary"},
	{"OOM", "the server is out of memory: raise its maxmemory"},
	{"Protocol error: unauthenticated", "NOAUTH: the server wants a password"},
	{"NOAUTH", "the server wants a password"},
	{"WRONGPASS", "check the user and the password"},
}

// Explain turns what a server or the way to it said into one line that begins with
// who and ends with what would help, by more or by what is known of every server.
// errors.As finds err in it. It is nil if err is, and err if that has been explained.
func Explain(who string, err error, more []Advice) error {
	if _, explained := errors.AsType[*serverError](err); err == nil || explained {
		return err
	}
	for _, list := range [][]Advice{more, advices} {
		for _, a := range list {
			if redis.HasErrorPrefix(err, a.Prefix) {
				return &serverError{who, err, "; " + a.Text}
			}
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
	text := e.err.Error()
	if i := strings.LastIndex(text, " script: "); i >= 0 && strings.Contains(text[i:], "@user_script") {
		text = text[:i] // Redis adds where in the script it happened
	}
	return e.who + ": " + strings.TrimSuffix(strings.ReplaceAll(text, "\n", " "), ".") + e.advice
}
