package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
	"github.com/headgate/headgate/internal/redistest"
)

// An interrupt ends a replay even while it waits for input that never comes.
func TestInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	stdin, w := io.Pipe()
	defer w.Close()
	go func() {
		defer interrupt()
		if _, err := io.WriteString(w, strings.Repeat("noise\n", 100)); err != nil {
			t.Error(err)
		}
	}()
	var stdout, stderr bytes.Buffer
	code := exec(ctx, []string{"replay", "--limit", "1/s", "-"}, stdin, &stdout, &stderr)
	if code != command.ExitInterrupted || stdout.Len() > 0 || stderr.String() != "headgate: interrupted; there is no result\n" {
		t.Errorf("%d %q %q", code, stdout.String(), stderr.String())
	}
}

// broken is an output that cannot be written to.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestBrokenOutput(t *testing.T) {
	t.Setenv("HEADGATE_STORE", redistest.Start(t).URL()+redistest.Patient)
	for _, args := range []string{
		"replay --limit 1/s ../../../../examples/shop-day.log",
		"replay --limit 1/s --json ../../../../examples/shop-day.log",
		"check --limit 100/h", "check --limit 100/h --json", "reset --limit 1/s", "reset --limit 1/s --json",
		"peek --limit 1/h", "keys", "keys --json",
	} {
		for want, err := range map[int]error{command.ExitAllowed: syscall.EPIPE, command.ExitFailed: errors.New("disk full")} {
			var stderr bytes.Buffer
			code := exec(t.Context(), strings.Fields(args), strings.NewReader(""), broken{err}, &stderr)
			if code != want || want == command.ExitAllowed && stderr.Len() > 0 || want != command.ExitAllowed && strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("%s with %v: %d, %q; want %d", args, err, code, stderr.String(), want)
			}
		}
	}
}

// A store whose connection broke has not said yes, whatever broke it.
func TestBrokenStore(t *testing.T) {
	for _, reason := range []syscall.Errno{syscall.EPIPE, syscall.ECONNRESET} {
		s := &storeurl.Store{Name: "redis://h"}
		err := storeError(t.Context(), s, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", reason)})
		if code := command.ExitCode(t.Context(), err); code != command.ExitFailed {
			t.Errorf("%v: exit %d, want %d", err, code, command.ExitFailed)
		}
	}
}

// A store that has no room for one more client fails, and does so in words.
func TestFullStore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxclients", "1")
	for holds := false; !holds; { // until the connection that started the server is gone
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("PING\r\n"))
		answer, _ := bufio.NewReader(conn).ReadString('\n')
		holds = strings.HasPrefix(answer, "+PONG")
	}
	for _, verb := range []string{"check", "peek", "reset"} {
		var stdout, stderr bytes.Buffer
		code := exec(t.Context(), []string{verb, "--limit", "1/h", "--store", "redis://" + server.Addr}, nil, &stdout, &stderr)
		if code != command.ExitFailed || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: %d %q %q", verb, code, stdout.String(), stderr.String())
		}
	}
}

// A denial exits with 1 even if its output is not read.
func TestNoIsNoUnread(t *testing.T) {
	t.Setenv("HEADGATE_STORE", redistest.Start(t).URL()+redistest.Patient)
	var stderr bytes.Buffer
	code := exec(t.Context(), strings.Fields("check --limit 1/s --cost 2"), nil, broken{syscall.EPIPE}, &stderr)
	if code != command.ExitDenied || stderr.Len() > 0 {
		t.Errorf("%d, %q; want %d", code, stderr.String(), command.ExitDenied)
	}
}

func TestAfter(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", headgate.Never: "never (the cost is more than the limit can hold)",
		5 * time.Microsecond: "in 5µs", 100 * time.Millisecond: "in 100ms",
		time.Second + time.Microsecond: "in 1.001s", time.Hour: "in 1h",
	} {
		if got := after(d); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
}
