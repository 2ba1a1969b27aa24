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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
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
	if code != exitInterrupted || stdout.Len() > 0 || stderr.String() != "headgate: interrupted; there is no result\n" {
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
		for want, err := range map[int]error{exitAllowed: syscall.EPIPE, exitFailed: errors.New("disk full")} {
			var stderr bytes.Buffer
			code := exec(t.Context(), strings.Fields(args), strings.NewReader(""), broken{err}, &stderr)
			if code != want || want == exitAllowed && stderr.Len() > 0 || want != exitAllowed && strings.Count(stderr.String(), "\n") != 1 {
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
		if code := exitCode(t.Context(), err); code != exitFailed {
			t.Errorf("%v: exit %d, want %d", err, code, exitFailed)
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
		if code != exitFailed || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: %d %q %q", verb, code, stdout.String(), stderr.String())
		}
	}
}

// A denial exits with 1 even if its output is not read.
func TestNoIsNoUnread(t *testing.T) {
	t.Setenv("HEADGATE_STORE", redistest.Start(t).URL()+redistest.Patient)
	var stderr bytes.Buffer
	code := exec(t.Context(), strings.Fields("check --limit 1/s --cost 2"), nil, broken{syscall.EPIPE}, &stderr)
	if code != exitDenied || stderr.Len() > 0 {
		t.Errorf("%d, %q; want %d", code, stderr.String(), exitDenied)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1s", 90 * time.Second: "1m30s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 61 * time.Minute: "1h1m",
	} {
		if got := short(d); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"/a b", "/a b"},
		{"/ä…😀", "/ä…😀"},
		{"\x1b[2J\r\n\t\x00\x7f", `\x1b[2J\r\n\t\x00\x7f`},
		{"\xff\xfe/", `\xff\xfe/`},
		{"\u202eabc\u0085", `\u202eabc\u0085`},
		{"\ufffd", "\ufffd"},
		{`a'b"c\d`, `a'b"c\d`},
	} {
		if got := printable(c.text); got != c.want {
			t.Errorf("%q is %s, want %s", c.text, got, c.want)
		}
	}
}

// drawing collects what a bar draws, in a goroutine of its own, too.
type drawing struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *drawing) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *drawing) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// A bar fits its terminal, and nothing is drawn without a terminal.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		size  int64
		width int
	}{{100, 40}, {-1, 40}, {0, 40}} {
		var w drawing
		bar := newBar(&w, "replay", c.size)
		if err := bar.Set64(50); err != nil {
			t.Error(err)
		}
		frames := w.String()
		for frame := range strings.SplitSeq(frames, "\r") {
			if frame = strings.ReplaceAll(frame, "\x1b[2K", ""); len(frame) > c.width || strings.Contains(frame, "\n") {
				t.Errorf("size %d in %d columns: %q", c.size, c.width, frame)
			}
		}
		if frames == "" || strings.Contains(frames, "[0s") {
			t.Errorf("size %d in %d columns: %q", c.size, c.width, frames)
		}
	}
	var w bytes.Buffer
	p := newProgress(&w, "replay", 100)
	p.begun = time.Time{}
	p.read.Store(50)
	p.show()
	p.clear()
	if w.Len() > 0 {
		t.Errorf("drawn without a terminal: %q", w.String())
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
