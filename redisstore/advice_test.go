package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// An error of a server says what to do, such as which URL fits.
func TestErrorsSayWhatToDo(t *testing.T) {
	cluster := redistest.StartCluster(t)
	start := func(args ...string) string { return redistest.Start(t, args...).Addr }
	locked := start("--requirepass", "secret")
	for _, c := range []struct {
		name, url, keys, want string
	}{
		// "a" is on another node
		{"a node of a Cluster", "redis://" + cluster.Addrs[0], "a",
			"; this is a Cluster: use redis+cluster://"},
		{"a single server", "redis+cluster://" + start(), "a",
			"ERR This instance has cluster support disabled; this server is not a Cluster: use " +
				"redis://"},
		{"a server that is no Sentinel", "redis+sentinel://" + start() + "/m", "a",
			"ERR unknown command 'sentinel'; this is not a Sentinel: use redis:// or " +
				"redis+cluster://"},
		{"no EVALSHA", "redis://" + start("--rename-command", "EVALSHA", ""), "a",
			"; the server, or a proxy in front of it, does not have this command: enable EVALSHA " +
				"and EVAL"},
		{"no EVAL", "redis://" + start("--rename-command", "EVAL", ""), "a",
			"; the server, or a proxy in front of it, does not have this command: enable EVALSHA " +
				"and EVAL"},
		{"no MGET", "redis://" + start("--rename-command", "MGET", ""), "a b",
			"; the server does not let scripts call one of EVALSHA, EVAL, MGET, EXISTS, GET, " +
				"SET, SETRANGE, PTTL, DEL and TIME: allow them"},
		{"not there", "redis://" + unused(t), "a", "connection refused"},
		{"no password", "redis://" + locked, "a", "; the server wants a password"},
		{"wrong password", "redis://:wrong@" + locked, "a", "WRONGPASS"},
		{"read-only", "redis://" + start("--replicaof", "127.0.0.1", "1"), "a", "READONLY"},
		{"out of memory", "redis://" + start("--maxmemory", "1"), "a", "OOM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkAdvice(t, c.url+redistest.Patient, c.keys, c.want)
		})
	}
}

// Ping says that a server cannot be used if that is certain, so that headgate serve does not start.
func TestServersThatCannotBeUsed(t *testing.T) {
	for _, url := range []string{
		"redis+cluster://" + redistest.Start(t).Addr,
		"redis://" + redistest.Start(t, "--rename-command", "EVALSHA", "").Addr,
		"redis://" + redistest.Start(t, "--rename-command", "EVAL", "").Addr,
	} {
		s, err := redisstore.Open(url + redistest.Patient)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Ping(t.Context()); !errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "; ") {
			t.Errorf("%s: %v; want an ErrUnsupported with advice", url, err)
		}
	}
	s, err := redisstore.Open("redis+proxy://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, err := range s.Scan(t.Context(), "*") {
		if !errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "the address of each server") {
			t.Errorf("keys behind a proxy: %v", err)
		}
	}
}

// So does an error of a connection with TLS to a port without it, or the other way round.
func TestErrorsNameTLS(t *testing.T) {
	withTLS, _ := redistest.StartTLS(t)
	for _, c := range []struct {
		name, url, want string
	}{
		{"plain to TLS", "redis://" + withTLS.Addr + redistest.Patient,
			"; the connection was closed; if this happens on every call, write rediss instead of " +
				"redis in the URL for a port with TLS, or connect to Redis directly if a proxy " +
				"such as twemproxy refuses HELLO or scripts"},
		{"TLS to plain", "rediss://" + redistest.Start(t).Addr,
			"redis instead of rediss in the URL"},
		{"an authority that is not known", "rediss://" + withTLS.Addr + redistest.Patient,
			"; set SSL_CERT_FILE to the file with the server's CA certificate, or set TLSConfig"},
	} {
		t.Run(c.name, func(t *testing.T) { checkAdvice(t, c.url, "a", c.want) })
	}
}

// checkAdvice checks the error of the store at url: one line with what to do, without the arguments
// of a command.
func checkAdvice(t *testing.T, url, keys, want string) {
	t.Helper()
	s, err := redisstore.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var rs []headgate.Request
	for key := range strings.FieldsSeq(keys) {
		rs = append(rs, headgate.Request{Key: key, Limit: parse(t, "10/s"), Cost: 1})
	}
	err = s.TakeAll(t.Context(), rs, make([]headgate.Decision, len(rs)))
	if err == nil || !strings.Contains(err.Error(), want) ||
		strings.ContainsAny(err.Error(), "\n\x05") ||
		strings.Contains(err.Error(), "beginning with") {
		t.Errorf("error %v\nwant one line with %q, without arguments", err, want)
	}
}
