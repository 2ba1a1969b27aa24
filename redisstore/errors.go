package redisstore

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// serverError is what a server or the way to it said, in one line that also tells
// what would help. errors.As finds what the client returned.
type serverError struct {
	err    error
	advice string
}

func (e *serverError) Unwrap() error { return e.err }

func (e *serverError) Error() string {
	// Redis adds where in the script it happened.
	text, _, _ := strings.Cut(e.err.Error(), " script: ")
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\n", " "), ".")
	if e.advice != "" {
		text += "; " + e.advice
	}
	return "redisstore: " + text
}

// advices are for the answers of servers that cannot decide. Before a client has
// authenticated, a server reads ten words at most and calls more a protocol error.
var advices = []struct{ prefix, advice string }{
	{"READONLY", "this is a read-only replica: name its primary"},
	{"OOM", "the server is out of memory: raise its maxmemory"},
	{"Protocol error: unauthenticated", "NOAUTH: the server wants a password"},
	{"NOAUTH", "the server wants a password"},
	{"WRONGPASS", "check the user and the password"},
	{"NOPERM", "the user needs the commands EVALSHA, EVAL, GET, SET, DEL and TIME on the keys of this prefix"},
	{"WRONGTYPE", "somebody else's value is at the key: choose another prefix"},
	{"BADSTATE", "choose another prefix, or delete the key"},
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	for _, a := range advices {
		if redis.HasErrorPrefix(err, a.prefix) {
			return &serverError{err, a.advice}
		}
	}
	return &serverError{err, ""}
}
