// Package storeurl opens the stores that a command line or a rules file names by URL.
package storeurl

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9/logging"
)

// Want lists the accepted URLs, for errors and help.
const Want = "memory:, redis://, rediss://, redis+cluster://, redis+sentinel:// or " +
	"redis+proxy:// with a host"

// Store is a headgate.Store by its URL.
type Store struct {
	headgate.Store
	io.Closer

	Name    string            // the URL without its password
	Permits concurrency.Store // in the same place
	Redis   *redisstore.Store // nil in memory
}

// Memory reports whether the state ends with the process.
func (s *Store) Memory() bool { return s.Redis == nil }

// MemoryFile begins the URL of a store in memory that the server keeps in a file.
const MemoryFile = "memory:?file="

// Open opens the store at rawURL. It connects at the first request.
func Open(rawURL string) (*Store, error) {
	scheme, _, _ := strings.Cut(rawURL, "://")
	switch strings.ToLower(scheme) {
	case "memory:", "memory":
		return &Store{
			Store: headgate.NewMemory(), Closer: io.NopCloser(nil), Name: "memory:",
			Permits: concurrency.NewMemory(),
		}, nil
	case "redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel",
		"redis+proxy", "rediss+proxy":
		logging.Disable() // its errors also come as errors
		s, err := redisstore.Open(rawURL)
		if err != nil {
			return nil, err
		}
		return &Store{s, s, WithoutPassword(rawURL), s, s}, nil
	}
	want := Want
	if strings.HasPrefix(rawURL, "memory:?") {
		want = MemoryFile + "PATH, and only for headgate serve"
	}
	if _, port, err := net.SplitHostPort(rawURL); err == nil && isNumber(port) &&
		!strings.Contains(rawURL, "@") { // which may follow a password
		want = "a scheme; did you mean redis://" + rawURL + "?"
	}
	return nil, &headgate.InvalidError{
		Field: "store", Value: fmt.Sprintf("%q", WithoutPassword(rawURL)), Want: want,
	}
}

func isNumber(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

// WithoutPassword returns rawURL, which may not be a URL, without what may be secret.
func WithoutPassword(rawURL string) string {
	at := strings.LastIndexByte(rawURL, '@')
	if at < 0 {
		return rawURL
	}
	scheme, rest, ok := strings.Cut(rawURL[:at], "://")
	if !ok {
		return "..." + rawURL[at:]
	}
	user, _, ok := strings.Cut(rest, ":")
	if !ok { // it may be a password in the wrong place
		return scheme + "://..." + rawURL[at:]
	}
	return scheme + "://" + user + ":..." + rawURL[at:]
}
