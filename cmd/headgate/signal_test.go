//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	osexec "os/exec"
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Signals end a pipe whose reader has stalled: the pipe is full, and so is the one before.
func TestSignalsEndStalledPipe(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for signal, want := range map[os.Signal]int{os.Interrupt: exitInterrupted, syscall.SIGTERM: exitTerminated} {
		cmd := osexec.CommandContext(t.Context(), self)
		cmd.Args = []string{"headgate", "pipe", "--limit", "1000000000/s"}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		in, inErr := cmd.StdinPipe()
		_, outErr := cmd.StdoutPipe() // which is not read
		if inErr != nil || outErr != nil {
			t.Fatal(inErr, outErr)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var written atomic.Int64
		go func() {
			for err := error(nil); err == nil; written.Add(1) {
				_, err = io.WriteString(in, "a line that is not read\n")
			}
		}()
		for before := int64(-1); written.Load() == 0 || written.Load() != before; time.Sleep(200 * time.Millisecond) {
			before = written.Load()
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != want || time.Since(sent) > 3*time.Second {
			t.Errorf("%s: exit %d after %s; want %d", signal, got, time.Since(sent), want)
		}
		if !regexp.MustCompile(`^headgate: interrupted; [0-9,]+ lines had been read and not passed\n$`).Match(stderr.Bytes()) {
			t.Errorf("%s: %s", signal, stderr.Bytes())
		}
	}
}
