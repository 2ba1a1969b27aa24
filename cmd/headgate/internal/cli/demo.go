package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
	"github.com/headgate/headgate/internal/demo"
)

// demoFlags are the flags of demo as given.
type demoFlags struct {
	host  string
	port  int
	store storeFlag
}

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo [--port N] [--store URL]",
		Short: "Serve a page that shows limits at work",
		Long: `Serve a page on which two limits, side by side, decide the same requests.
The page has examples and a tour of five algorithms. The command prints the address to open, and
runs until it is interrupted. Then the exit code is 0. The limits are kept in memory, or
in the store of --store.`,
		Example: `  headgate demo
  headgate demo --port 0 --store redis://localhost:6379`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.serve(cmd); cmd.Context().Err() == nil {
				return err
			}
			return nil // an interrupt is how it is meant to end
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.port, "port", 8080, "serve on port `N` (0: any free port)")
	flags.StringVar(&f.host, "host", "127.0.0.1",
		"serve on the address `HOST` of this machine (0.0.0.0: all addresses). "+
			"An address that is not loopback lets other machines connect")
	f.store.flag(cmd)
	return cmd
}

// serve serves the page until ctx ends.
func (f *demoFlags) serve(cmd *cobra.Command) error {
	if f.port < 0 || f.port > 65535 {
		return command.Usagef(cmd, "--port is %d; want 0 to 65535", f.port)
	}
	f.host = strings.TrimSuffix(strings.TrimPrefix(f.host, "["), "]") // as IPv6 in a URL
	if f.host == "" {
		return command.Usagef(cmd, "--host is empty; want an address of this machine, such as "+
			"127.0.0.1, or 0.0.0.0 for all")
	}
	s, err := f.store.open(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	options := demo.Options{Store: demoName(s), Host: f.host}
	if !s.Memory() {
		options.Now = func(ctx context.Context) (time.Time, error) {
			return s.Redis.Client().Time(ctx).Result()
		}
	}
	page, err := demo.New(s.Store, options)
	if err != nil {
		return err
	}
	if err := page.Ping(cmd.Context(), storeTimeout); err != nil {
		return storeError(cmd.Context(), s, err)
	}
	address := net.JoinHostPort(f.host, strconv.Itoa(f.port))
	l, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; choose another port with --port, or any free one with --port 0", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "headgate demo at http://%s (store %s; Ctrl-C ends it)\n",
		demo.Address(l), demoName(s))
	return page.Serve(cmd.Context(), l)
}

// demoName returns the name of the store for the page.
func demoName(s *storeurl.Store) string {
	if s.Memory() {
		return "memory"
	}
	return s.Name
}
