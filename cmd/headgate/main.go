// Command headgate tests rate limits on access logs, decides requests from scripts, and limits
// the rate of pipes and commands. See headgate --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	// go-redis prints each failed dial to stderr as well, and headgate reports it as an error.
	redis.SetLogger(logging.NewBlacklistLogger([]string{"connection pool: failed to dial after"}))
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // a second signal ends the process at once
		end(&signalError{s})
	}()
	os.Exit(exec(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
