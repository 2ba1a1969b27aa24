package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/redis/go-redis/v9/logging"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

const storeURLs = "memory:, redis://, rediss://, redis+cluster:// or redis+sentinel:// with a host"

// store is a headgate.Store by its URL.
type store struct {
	headgate.Store
	io.Closer
	name string // the URL without its password
}

// openStore opens the store at rawURL. It connects at the first request.
func openStore(rawURL string) (*store, error) {
	scheme, _, _ := strings.Cut(rawURL, "://")
	switch strings.ToLower(scheme) {
	case "memory:", "memory":
		return &store{headgate.NewMemory(0), io.NopCloser(nil), "memory:"}, nil
	case "redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel":
		logging.Disable() // its errors also come as errors
		s, err := redisstore.Open(rawURL)
		if err != nil {
			return nil, err
		}
		return &store{s, s, withoutPassword(rawURL)}, nil
	}
	return nil, &headgate.InvalidError{
		Field: "store", Value: fmt.Sprintf("%q", withoutPassword(rawURL)), Want: storeURLs,
	}
}

// withoutPassword returns rawURL, which may not be a URL, without what may be secret.
func withoutPassword(rawURL string) string {
	at := strings.LastIndexByte(rawURL, '@')
	if at < 0 {
		return rawURL
	}
	scheme, rest, ok := strings.Cut(rawURL[:at], "://")
	if !ok {
		return "..." + rawURL[at:]
	}
	user, _, _ := strings.Cut(rest, ":")
	return scheme + "://" + user + ":..." + rawURL[at:]
}

// describe returns the name of the store, and a warning that memory ends with the command.
func (s *store) describe() string {
	if s.name == "memory:" {
		return "memory: (not kept between runs)"
	}
	return s.name
}

// failed adds the name of the store to err, if the store has failed.
func (s *store) failed(err error) error {
	_, invalid := errors.AsType[*headgate.InvalidError](err)
	_, late := errors.AsType[*headgate.DeadlineError](err)
	_, ended := errors.AsType[*interruption](err)
	if invalid || late || ended {
		return err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}
