package redisstore

import (
	"errors"
	"strconv"

	"github.com/headgate/headgate/internal/redisscript"
)

// ErrBusy is returned by Take and TakeAll of a [Store] if more callers wait for the server than
// [Options].Queue allows. Nothing was sent. Its method Busy tells so to a fallback.Store.
var ErrBusy error = busyError{}

type busyError struct{}

func (busyError) Error() string {
	return "redisstore: too many callers wait for the server; see Options.Queue, or queue in a URL"
}

// Busy says that it is not the server who gave no answer.
func (busyError) Busy() bool { return true }

// ErrNotSent is in the error of Take and TakeAll of a [Store] if the context ended before the
// request was sent: nothing is charged. If the error of a context comes without it, the request
// is under way, or a connection is being made for it, and it stays charged if it is granted; but for a TakeAll over several servers,
// which is given back behind the caller.
var ErrNotSent = errors.New("redisstore: the request was not sent")

// notSent is the error of one whose context ended with err.
func notSent(err error) error { return &notSentError{err} }

type notSentError struct{ err error }

func (e *notSentError) Error() string {
	return "redisstore: " + e.err.Error() + "; the request was not sent"
}

func (e *notSentError) Unwrap() []error { return []error{e.err, ErrNotSent} }

const commands = "EVALSHA, EVAL, MGET, EXISTS, GET, SET, SETRANGE, DEL and TIME"

// explain makes what a server said to s one line with what would help.
func (s *Store) explain(err error) error {
	return redisscript.Explain("redisstore", err, s.advices)
}

// advices are what helps against errors that other scripts may not meet, if commands are needed on
// the keys of a prefix.
func advices(prefix, commands string) []redisscript.Advice {
	rights := "the user needs the commands " + commands + " on keys that begin with " + strconv.Quote(prefix) +
		", PING for Ping, SELECT for a database other than 0, and in a Cluster CLUSTER|SLOTS, COMMAND and ASKING"
	return []redisscript.Advice{
		{Prefix: "NOPERM", Text: rights},
		{Prefix: "The user executing the script", Text: rights}, // as Redis 7.0 says it of a command inside
		{Prefix: "ERR The user executing the script", Text: rights},
		{Prefix: "ACL failure in script", Text: rights}, // and 7.2
		{Prefix: "WRONGTYPE", Text: "somebody else's value is at the key: choose another prefix"},
		{Prefix: "BADSTATE", Text: "choose another prefix, or delete the key"},
	}
}

// wrap explains the error of a context, or one that needs no advice.
func wrap(err error) error { return redisscript.Explain("redisstore", err, nil) }
