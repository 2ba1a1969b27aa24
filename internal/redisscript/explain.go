package redisscript

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Advice says in Text what to do about an error of the server that begins with Prefix, or about any
// error that contains Part. One of them is set.
type Advice struct{ Prefix, Part, Text string }

const closed = "the connection was closed; if this happens on every call, write rediss instead " +
	"of redis in the URL for a port with TLS, or connect to Redis directly if a proxy such as " +
	"twemproxy refuses HELLO or scripts"

const password = "the server wants a password: in the URL, write :password@ before the host, or " +
	"user:password@"

// advices are for the errors of all servers. Before a client has authenticated, a server reads at
// most ten words, and calls more a protocol error.
var advices = []Advice{
	{Prefix: "READONLY", Text: "this is a read-only replica: use the address of its primary"},
	{Prefix: "OOM", Text: "the server is out of memory: raise its maxmemory"},
	{Prefix: "Protocol error: unauthenticated", Text: "NOAUTH: " + password},
	{Prefix: "NOAUTH", Text: password},
	{Prefix: "WRONGPASS", Text: "check the user and the password"},
	{Prefix: "BITS", Text: "use Redis or Valkey as a 64-bit program"},
	{Prefix: "MOVED", Text: "this is a node of a Cluster: use a client for a Cluster"},
	{Part: "sentinels specified in configuration are unreachable: ERR unknown command",
		Text: "this is not a Sentinel: use redis:// or redis+cluster://"},
	{Prefix: "unknown command", Text: "the server, or a proxy in front of it, does not " +
		"have this command: enable EVALSHA and EVAL, and for redis+cluster:// CLUSTER, or use " +
		"another server"},
	{Part: "'struct'", Text: "the Lua of this server has no struct library, as in miniredis: " +
		"use Redis or Valkey, and in tests also headgate.NewMemory"},
	{Part: "first record does not look like a TLS handshake",
		Text: "the port has no TLS: write redis instead of rediss in the URL"},
	{Part: "signed by unknown authority", Text: "set SSL_CERT_FILE to the file with the " +
		"server's CA certificate, or set TLSConfig of a client of your own"},
	{Part: "EOF", Text: closed},
	{Part: "connection reset by peer", Text: closed},
	{Part: "deadline exceeded", Text: "there was no answer in time"},
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
	text := reason(err)
	for _, a := range slices.Concat(more, advices) {
		if a.fits(err, text) {
			return &serverError{err, who + ": " + text + "; " + a.Text}
		}
	}
	return &serverError{err, who + ": " + text}
}

func (a Advice) fits(err error, text string) bool {
	if a.Part != "" {
		return strings.Contains(text, a.Part)
	}
	return redis.HasErrorPrefix(err, a.Prefix) ||
		strings.HasPrefix(strings.TrimPrefix(text, "ERR "), a.Prefix)
}

type serverError struct {
	err  error
	text string
}

func (e *serverError) Unwrap() error { return e.err }

func (e *serverError) Error() string { return e.text }

// reason returns the text of err as one line, without what servers add for their own developers:
// the place in the script, a stack, and the arguments of a command, which may be any bytes.
func reason(err error) string {
	text := withoutPlace(err.Error())
	text, _, _ = strings.Cut(text, ", with args beginning with: ")
	text, _, _ = strings.Cut(strings.ReplaceAll(text, "\n", " "), " stack traceback:")
	return strings.TrimSuffix(text, ".")
}

// withoutPlace cuts the place in the script. Redis 6.2 puts it before the text, with a "-" before
// some codes, and newer servers put it after the text.
func withoutPlace(text string) string {
	const place = "@user_script:"
	i := strings.LastIndex(text, place)
	if i < 0 {
		return text
	}
	if _, after, ok := strings.Cut(text[i+len(place):], ": "); ok {
		return strings.TrimPrefix(after, "-")
	}
	if end := strings.LastIndex(text[:i], " script: "); end >= 0 {
		return text[:end]
	}
	return text
}
