package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// ErrNotInstalled says that there is no Redis server to start.
var ErrNotInstalled = errors.New("redistest: no redis-server or valkey-server in PATH: " +
	"install it with make deps, " +
	"or name one in HEADGATE_REDIS_SERVER")

// errPortTaken says that another process has bound the port.
var errPortTaken = errors.New("redistest: port taken")

// keeper is the shell script between this process and the server. It waits for
// the end of its input, a pipe whose other end this process holds open and never
// writes to: Stop closes it, and the kernel does when this process ends, by
// SIGKILL too. Then the keeper kills the server, whose parent it is, and removes
// the directory. Signals from a terminal are for this process, not for the keeper.
//
// The first line of output is the server's process id; the rest is the server's
// own, and it ends when the server does.
const keeper = `
trap '' HUP INT QUIT TERM
dir=$1
shift
sh -c 'echo $$; exec "$@"' sh "$@" </dev/null 2>&1 &
exec >/dev/null 2>&1
read -r _
kill -9 $!
wait
rm -rf "$dir"
`

// outputLimit is how much of a server's output is kept, in bytes.
const outputLimit = 64 << 10

// process is a server with its keeper.
type process struct {
	stop    func()        // idempotent; returns when the server is gone
	started chan struct{} // closed when the first line of output has come
	ended   chan struct{} // closed when the output has ended

	mu   sync.Mutex
	text []byte // what the server has printed
	id   string // the first line; written before started is closed
}

// start runs the server's binary with args, and with env besides this process's own
// environment. The keeper removes dir in the end, unless there is an error.
func start(dir string, env, args []string) (*process, error) {
	path, err := binary(dir)
	if err != nil {
		return nil, err
	}
	args = append([]string{"-c", keeper, "redistest", dir, path}, args...)
	cmd := exec.Command("sh", args...) //nolint:noctx // the keeper's input bounds its life
	cmd.Env = append(os.Environ(), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	p := &process{started: make(chan struct{}), ended: make(chan struct{})}
	p.stop = sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // closes stdout, which ends read
		<-p.ended
	})
	go p.read(stdout)
	return p, nil
}

// read collects the output until it ends.
func (p *process) read(r io.Reader) {
	defer close(p.ended)
	lines := bufio.NewReader(r)
	id, _ := lines.ReadString('\n')
	p.id = strings.TrimSpace(id)
	close(p.started)
	buf := make([]byte, 4096)
	for {
		n, err := lines.Read(buf)
		p.mu.Lock()
		p.text = append(p.text, buf[:n]...)
		p.text = p.text[max(0, len(p.text)-outputLimit):]
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// pid waits for the server's process id.
func (p *process) pid(ctx context.Context) (int, error) {
	select {
	case <-p.started:
	case <-ctx.Done():
		return 0, fmt.Errorf("redistest: the server does not start: %w", ctx.Err())
	}
	id, err := strconv.Atoi(p.id)
	if err != nil {
		return 0, fmt.Errorf("redistest: the server does not start: %w", err)
	}
	return id, nil
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.text)
}

// obituary is the error of a server that ended before it answered.
func (p *process) obituary() error {
	text := p.output()
	if strings.Contains(text, "Address already in use") {
		return fmt.Errorf("%w; the server said:\n%s", errPortTaken, text)
	}
	return fmt.Errorf("redistest: the server ended before it answered; it said:\n%s", text)
}

// binary finds the server to run.
//
// Debian's redis-tools holds the whole server without a service that would start
// at port 6379, but under the name of redis-check-rdb: one binary that looks at
// the name by which it was called. A link in dir calls it by the right one.
func binary(dir string) (string, error) {
	if name := os.Getenv("HEADGATE_REDIS_SERVER"); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("redistest: HEADGATE_REDIS_SERVER: %w", err)
		}
		return filepath.Abs(path)
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	for _, name := range []string{"redis", "valkey"} {
		if path, err := exec.LookPath(name + "-check-rdb"); err == nil {
			link := filepath.Join(dir, name+"-server")
			return link, os.Symlink(path, link)
		}
	}
	return "", ErrNotInstalled
}
