//go:build !unix

package main

import (
	"context"
	"errors"
	"os"
	osexec "os/exec"
)

// become runs a command, where a process cannot become another one. Who interrupts this one
// from a terminal interrupts the command as well.
func become(path string, args []string) error {
	cmd := osexec.CommandContext(context.Background(), path, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*osexec.ExitError](err); ok {
		return &unfitError{exit.ExitCode(), errNo}
	}
	if err != nil {
		return unfit(args[0], err)
	}
	return nil
}
