//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// become runs a command in place of this process, which so has nothing to pass on: files,
// signals, the terminal and the exit code are the command's.
func become(path string, args []string) error {
	signal.Reset() // what was ignored is ignored by the command, too
	return unfit(args[0], syscall.Exec(path, args, os.Environ()))
}
