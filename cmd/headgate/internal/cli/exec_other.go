//go:build !unix

package cli

import (
	"context"
	"errors"
	"os"
	osexec "os/exec"
)

// runCommand runs a command on systems where it cannot replace this process. An interrupt from the
// terminal also interrupts the command.
func runCommand(path string, args []string) error {
	cmd := osexec.CommandContext(context.Background(), path, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*osexec.ExitError](err); ok {
		return &unfitError{exit.ExitCode(), errDenied}
	}
	if err != nil {
		return unfit(args[0], err)
	}
	return nil
}
