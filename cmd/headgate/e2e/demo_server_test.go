package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/redistest"
)

// documented checks that what was written against the demo of the Redis documentation works with
// ours.
func documented(t *testing.T, at string) {
	t.Helper()
	const first = `"config":{"capacity":10,"refill_rate":1,"refill_interval":1}}`
	post(t, at+"/test", nil, 200, `{"allowed":true,"remaining":9,`+first)
	post(t, at+"/config", url.Values{"capacity": {"3"}, "refill_rate": {"0.5"}, "refill_interval": {"600"}}, 200,
		`{"success":true,"config":{"capacity":3,"refill_rate":0.5,"refill_interval":600}}`)
	post(t, at+"/config", url.Values{"capacity": {"none"}}, 400, `{"success":false,"error":"capacity is \"none\"; want a number above 0, such as 10 or 0.5"}`)
	for _, want := range []string{`{"allowed":true,"remaining":1,`, `{"allowed":true,"remaining":0,`, `{"allowed":false,"remaining":0,`} {
		post(t, at+"/test", nil, 200, want+`"config":{"capacity":3,"refill_rate":0.5,"refill_interval":600}}`)
	}
}

func post(t *testing.T, to string, form url.Values, status int, want string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	got, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != status || strings.TrimSpace(string(got)) != want {
		t.Errorf("%s %s: %d %s %v\nwant %d %s", to, form.Encode(), w.StatusCode, got, err, status, want)
	}
}

// program is a server that a program of ours runs: its first line, and how it ends.
func program(t *testing.T, args ...string) (line string, end func() error) {
	t.Helper()
	bin := built(t, args[0])
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), bin, args[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	if line, err = lines.ReadString('\n'); err != nil {
		t.Fatalf("it ended before its first line: %v", cmd.Wait())
	}
	return line, func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		return cmd.Wait()
	}
}

// programs builds the programs that tests start, once, and returns their directory.
var programs = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "bin") + string(filepath.Separator)
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", dir, "./testdata/rundemo",
		"github.com/headgate/headgate/cmd/headgate").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

// built returns the program of a package.
func built(t *testing.T, name string) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, path.Base(name))
}

var address = regexp.MustCompile(`http://\S+`)

// The demo of the drop-in: the same page, on Redis, with the flags of the original.
func TestRunDemoServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	host, port := hostOf(t, server.URL())
	line, end := program(t, "./testdata/rundemo", "-port", "0", "-redis-host", host, "-redis-port", port)
	at := address.FindString(line)
	documented(t, at)
	p := open(t, at, calm)
	p.click("#reset")
	p.click("#one")
	p.until("it decides", number("left", "allowed")+" === 1")
	p.do(run(`window.fetch = () => new Promise(() => {})`)) // it does not ask a server that has ended
	if err := end(); err != nil {
		t.Errorf("an interrupt ends it with %v", err)
	}
}

func TestRunDemoServerWithoutRedis(t *testing.T) {
	t.Parallel()
	bin := built(t, "./testdata/rundemo")
	for args, want := range map[string]string{
		"-port 0 -redis-host 127.0.0.1 -redis-port 1": "1 cannot reach Redis at 127.0.0.1:1: ",
		"-port 70000":                "1 port is 70000; want 0 to 65535",
		"-port 70000 -redis-port -1": "1 port is 70000; want 0 to 65535",
		"-port 0 -redis-port 0":      "1 redis-port is 0; want 1 to 65535",
	} {
		var stderr strings.Builder
		cmd := exec.CommandContext(t.Context(), bin, strings.Fields(args)...)
		cmd.Stderr = &stderr
		out, _ := cmd.Output()
		if got := strings.TrimSpace(cmd.ProcessState.String()); got != "exit status 1" || len(out) > 0 ||
			!strings.HasPrefix("1 "+stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: %s, stdout %q, stderr %q; want %s", args, got, out, stderr.String(), want)
		}
	}
}

// The verb, as a person starts it.
func TestDemoVerb(t *testing.T) {
	t.Parallel()
	line, end := program(t, "github.com/headgate/headgate/cmd/headgate", "demo", "--port", "0")
	p := open(t, address.FindString(line), calm)
	p.click("#one")
	p.until("it decides", number("left", "allowed")+" === 1")
	p.do(run(`window.fetch = () => new Promise(() => {})`)) // it does not ask a server that has ended
	if err := end(); err != nil {
		t.Errorf("an interrupt ends it with %v", err)
	}
}
