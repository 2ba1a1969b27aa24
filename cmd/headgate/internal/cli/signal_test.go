//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

// A second signal ends the process at once, whatever the first one waits for. It exits by itself, as
// the first process of a container ignores signals that it does not handle.
func TestSecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.CommandContext(t.Context(), self)
	cmd.Args = []string{
		"headgate", "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--debug", "off", "--grace", "1h",
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`listener=http address=(\S+)`)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			unfinished(t, found[1])
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(lines.Text(), "shutting down") {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != command.ExitTerminated {
		t.Errorf("it ended with %s; want exit status %d", cmd.ProcessState, command.ExitTerminated)
	}
}

// unfinished sends a request without its body, and returns when the server waits for that.
func unfinished(t *testing.T, address string) {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	const request = "POST /v1/take HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
		"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 100"))
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 100" {
		t.Fatalf("%q, %v", answer, err)
	}
}

// Signals end a pipe whose reader has stalled: the pipe is full, and so is the one before.
func TestSignalsEndStalledPipe(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for signal, want := range map[os.Signal]int{os.Interrupt: command.ExitInterrupted, syscall.SIGTERM: command.ExitTerminated} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
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
			const held = 64 << 10 / 25 // lines by the first pipe alone, of a program that has not begun
			for before := int64(-1); written.Load() <= held*3/2 || written.Load() != before; time.Sleep(200 * time.Millisecond) {
				before = written.Load()
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			sent := time.Now()
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != want || time.Since(sent) > time.Minute {
				t.Errorf("%s: exit %d after %s; want %d", signal, got, time.Since(sent), want)
			}
			if !regexp.MustCompile(`^headgate: interrupted; [0-9,]+ lines had been read, but not written\n$`).Match(stderr.Bytes()) {
				t.Errorf("%s: %s", signal, stderr.Bytes())
			}
		})
	}
}
