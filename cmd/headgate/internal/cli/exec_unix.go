//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// become replaces this process by a command, which so has its files, signals, terminal and
// exit code.
func become(path string, args []string) error {
	signal.Reset() // signals that were ignored before stay ignored
	return unfit(args[0], syscall.Exec(path, args, os.Environ()))
}
