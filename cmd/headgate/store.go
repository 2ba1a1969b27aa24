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

// openStore opens the store that rawURL names. It connects when first asked.
func openStore(rawURL string) (*store, error) {
	scheme, _, _ := strings.Cut(rawURL, "://")
	switch scheme {
	case "memory:":
		return &store{headgate.NewMemory(0), io.NopCloser(nil), "memory:"}, nil
	case "redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel":
		logging.Disable() // its errors reach us as errors, in one line
		s, err := redisstore.Open(rawURL)
		if err != nil {
			return nil, err
		}
		return &store{s, s, withoutPassword(rawURL)}, nil
	}
	return nil, &headgate.InvalidError{Field: "store", Value: fmt.Sprintf("%q", withoutPassword(rawURL)), Want: storeURLs}
}

// withoutPassword is rawURL, which may be no URL at all, without what may be secret.
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

// describe is the name of the store for a person, who may not expect that memory
// ends with the command.
func (s *store) describe() string {
	if s.name == "memory:" {
		return "memory: (begins anew each time)"
	}
	return s.name
}

// failed gives err the name of the store, unless the request itself was at fault, or
// nothing has failed.
func (s *store) failed(err error) error {
	_, invalid := errors.AsType[*headgate.InvalidError](err)
	_, late := errors.AsType[*headgate.DeadlineError](err)
	_, ended := errors.AsType[*interruption](err)
	if invalid || late || ended {
		return err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}
