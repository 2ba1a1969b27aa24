package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/storeurl"
)

// store is a headgate.Store by its URL.
type store struct {
	headgate.Store
	io.Closer
	name string // the URL without its password
}

// openStore opens the store at rawURL. It connects at the first request.
func openStore(rawURL string) (*store, error) {
	s, err := storeurl.Open(rawURL)
	if err != nil {
		return nil, err
	}
	return &store{s.Store, s.Closer, s.Name}, nil
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
