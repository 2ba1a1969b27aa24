package redisstore

import (
	"crypto/tls"
	"errors"
	"strconv"

	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
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
	if err != nil && (redis.HasErrorPrefix(err, "BITS") ||
		redis.HasErrorPrefix(err, "This instance has cluster support disabled")) {
		err = &unusableError{err}
	}
	return redisscript.Explain("redisstore", err, s.advices)
}

// advices are for errors of scripts that need commands on the keys of a prefix.
func advices(client redis.UniversalClient, prefix, commands string) []redisscript.Advice {
	rights := "the user needs the commands " + commands + " on keys that begin with " +
		strconv.Quote(prefix) + "; PING for health checks; SELECT if the database is not 0; " +
		"in a Cluster also CLUSTER|SLOTS, COMMAND and ASKING"
	lacks := "the server does not let scripts call one of " + commands + ": allow them"
	return append([]redisscript.Advice{
		{Prefix: "NOPERM", Text: rights},
		{Prefix: "The user executing the script", Text: rights}, // Redis 7.0, of a command inside
		{Prefix: "ACL failure in script", Text: rights},         // Redis 7.2
		{Prefix: "WRONGTYPE", Text: "another program uses the key: choose another prefix"},
		{Prefix: "BADSTATE", Text: "choose another prefix, or delete the key"},
		{Part: "command called from", Text: lacks}, // "script", or in Redis 6.2 "Lua script"
		{Part: "command is not allowed from script", Text: lacks},
	}, clientAdvices(client)...)
}

// clientAdvices are for errors of servers that need another kind of client. They name its URL.
func clientAdvices(client redis.UniversalClient) (all []redisscript.Advice) {
	scheme := scheme(client)
	if scheme == "rediss" {
		all = append(all, redisscript.Advice{Part: "deadline exceeded", Text: "there was no " +
			"answer in time; if this happens on every call, write redis instead of rediss in the " +
			"URL for a port without TLS"})
	}
	if _, ok := client.(*redis.ClusterClient); ok {
		return append(all, []redisscript.Advice{
			{Prefix: "This instance has cluster support disabled",
				Text: "this server is not a Cluster: use " + scheme + ":// (or " + scheme +
					"+proxy:// if it is a proxy for several servers)"},
			{Prefix: "MOVED", Text: "the slot is moving: try again"},
		}...)
	}
	cluster := "this is a Cluster: use " + scheme + "+cluster://"
	return append(all, []redisscript.Advice{
		{Prefix: "MOVED", Text: cluster},
		{Prefix: "CROSSSLOT",
			Text: cluster + " (or " + scheme + "+proxy:// if it refuses CLUSTER)"},
	}...)
}

// scheme is that of a URL of the server: redis, or rediss with TLS.
func scheme(client redis.UniversalClient) string {
	var tls *tls.Config
	switch c := client.(type) {
	case *redis.Client:
		tls = c.Options().TLSConfig
	case *redis.ClusterClient:
		tls = c.Options().TLSConfig
	}
	if tls != nil {
		return "rediss"
	}
	return "redis"
}
