//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// runCommand replaces this process by a command, which then has its files, signals, terminal and
// exit code.
func runCommand(path string, args []string) error {
	signal.Reset() // signals that were ignored before stay ignored
	return unfit(args[0], syscall.Exec(path, args, os.Environ()))
}
