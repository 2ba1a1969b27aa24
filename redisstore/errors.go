package redisstore

import (
	"errors"
	"strconv"

	"github.com/headgate/headgate/internal/redisscript"
)

// ErrBusy reports that more callers wait for a server than [Options].Queue allows. Take and TakeAll
// of a [Store] return it. Nothing was sent. A fallback.Store does not count it as a failure of the
// server.
var ErrBusy error = busyError{}

type busyError struct{}

func (busyError) Error() string {
	return "redisstore: too many callers wait for the server; " +
		"raise Options.Queue, or queue in the URL"
}

// Busy reports that the request was rejected locally, whatever the state of the server.
func (busyError) Busy() bool { return true }

// ErrNotSent reports that the context ended before the request was sent. The errors of Take and
// TakeAll of a [Store] wrap it. Nothing is charged then. If the error is that of a context, but not
// ErrNotSent, the request was sent or waits for a connection, and may still be charged. A TakeAll
// over several servers may have charged some of its requests then. They are refunded in the
// background, except forced ones.
var ErrNotSent = errors.New("redisstore: the request was not sent")

// notSentError is the error of a call whose context ended with err.
type notSentError struct{ err error }

func (e *notSentError) Error() string {
	return "redisstore: " + e.err.Error() + "; the request was not sent"
}

func (e *notSentError) Unwrap() []error { return []error{e.err, ErrNotSent} }

const commands = "EVALSHA, EVAL, MGET, EXISTS, GET, SET, SETRANGE, PTTL, DEL and TIME"

// explain makes an error of the server or the client one line that says what to do.
func (s *Store) explain(err error) error {
	return redisscript.Explain("redisstore", err, s.advices)
}

// advices are for errors of scripts that need commands on the keys of a prefix.
func advices(prefix, commands string) []redisscript.Advice {
	rights := "the user needs the commands " + commands + " on keys that begin with " +
		strconv.Quote(prefix) + ", PING for Ping, SELECT for a database other than 0, and in a " +
		"Cluster CLUSTER|SLOTS, COMMAND and ASKING"
	return []redisscript.Advice{
		{Prefix: "NOPERM", Text: rights},
		{Prefix: "The user executing the script", Text: rights}, // Redis 7.0, of a command inside
		{Prefix: "ERR The user executing the script", Text: rights},
		{Prefix: "ACL failure in script", Text: rights}, // Redis 7.2
		{Prefix: "WRONGTYPE", Text: "another program uses the key: choose another prefix"},
		{Prefix: "BADSTATE", Text: "choose another prefix, or delete the key"},
	}
}
