package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
)

const wantStore = "a URL such as redis://localhost:6379"

// storeFlag is the value of --store, or else of its environment variable.
type storeFlag struct {
	url  string
	kept bool // a store that ends with the command is an error

	hashed bool // Redis holds hashes instead of keys
}

func (f *storeFlag) flag(cmd *cobra.Command) {
	help := "use the store at `URL`: redis://, rediss://, redis+cluster://, " +
		"redis+sentinel:// or redis+proxy:// " +
		"(default: the environment variable " + variable("store")
	if !f.kept {
		help += ", or memory:, which is not kept between runs"
	}
	cmd.Flags().StringVar(&f.url, "store", "", help+")")
}

func (f *storeFlag) open(cmd *cobra.Command) (*storeurl.Store, error) {
	given := cmd.Flags().Changed("store")
	if err := fromEnvironment(cmd, "store"); err != nil {
		return nil, err
	}
	switch named := cmd.Flags().Changed("store"); {
	case !named && f.kept:
		return nil, command.Usagef(cmd, "no store given; add --store or set %s: %s",
			variable("store"), wantStore)
	case !named:
		f.url = "memory:"
	}
	s, err := storeurl.Open(f.url)
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok && !given {
		e.Field = variable("store") + ": " + e.Field
	}
	if err == nil && f.kept && s.Memory() {
		return nil, command.Usagef(cmd, "store is %q, which is not kept between runs; want %s",
			f.url, wantStore)
	}
	if err != nil {
		return nil, err
	}
	return s, f.hashKeys(s)
}

// keySecret is the environment variable of the secret of hashed keys, as key_secret of serve.
const keySecret = "HEADGATE_KEY_SECRET" //nolint:gosec // a name

// hashKeys lets s find keys by their hashes, if there is a secret.
func (f *storeFlag) hashKeys(s *storeurl.Store) error {
	secret, set := os.LookupEnv(keySecret)
	if !set || s.Memory() {
		return nil
	}
	f.hashed = true
	err := s.Redis.HashKeys([]byte(secret))
	if err != nil {
		s.Close()
	}
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok {
		e.Field = keySecret
	}
	return err
}

// storeError adds the name of s to err, if s has failed. ctx is that of the command.
func storeError(ctx context.Context, s *storeurl.Store, err error) error {
	if !headgate.Unavailable(ctx, err) {
		return err
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}
