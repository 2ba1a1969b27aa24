//go:build unix

package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

// An interrupt ends a replay of a named pipe that no process opens to write.
func TestInterruptOpening(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	code := make(chan int, 1)
	var stdout, stderr bytes.Buffer
	go func() { code <- exec(ctx, []string{"replay", "--limit", "1/s", fifo}, nil, &stdout, &stderr) }()
	interrupt()
	select {
	case got := <-code:
		if got != command.ExitInterrupted || stdout.Len() > 0 || stderr.String() != "headgate: interrupted; there is no result\n" {
			t.Errorf("%d %q %q", got, stdout.String(), stderr.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("still waiting for a writer")
	}
}
