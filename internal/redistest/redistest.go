// Package redistest starts real Redis servers for tests, benchmarks and demos.
//
// A server listens on a free port of the loopback interface, keeps nothing on
// disk, answers within some tens of milliseconds, and goes away with the process
// that started it, however that process ends.
//
//	func TestTake(t *testing.T) {
//		redis := redistest.Start(t)
//		store := open(t, redis.URL())
//		…
//
// The binary is redis-server, else valkey-server, found in PATH; HEADGATE_REDIS_SERVER names
// another one, so that the same tests can be run against another version:
//
//	HEADGATE_REDIS_SERVER=/opt/valkey/bin/valkey-server go test ./...
//
// The package uses the standard library only, so that every module of the project can import it.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// startTimeout bounds the start of one server. It takes about 20 ms on an idle
// machine; the rest is for a machine that is busy with other tests.
const startTimeout = time.Minute

// portTries is how often a start is repeated when another process takes the port
// between our finding it free and the server binding it.
const portTries = 10

// Server is one running Redis server.
type Server struct {
	Addr string // host:port, "127.0.0.1:40123"
	Pid  int    // the server's own process, for tests that pause or kill it

	password string // of --requirepass, or empty
	tls      bool   // the port speaks TLS alone
	dir      string // the server's own directory, removed by Stop
	process  *process
}

// Start starts a server that stops when the test ends. It fails the test, and
// never skips it, when there is no server to start.
//
// args are options of redis-server and win over the defaults of this package:
//
//	redistest.Start(t, "--requirepass", "secret", "--maxmemory", "10mb")
//
// With "--port" the server takes that port or fails, which brings a stopped
// server back at its old address.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s, err := Run(tb.Context(), args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// shared is the server of Shared. Nobody stops it: it ends with the process.
var shared = sync.OnceValues(func() (*Server, error) { return Run(context.Background()) })

// Shared returns the one server that all tests of a test binary share. Tests that use it choose
// their own keys, and leave FLUSHALL, CONFIG SET and the like to servers of their own.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Run starts a server without a test, and returns once it answers. ctx bounds the start alone: the
// server runs until Stop, or until this process ends. args are those of [Start].
//
// An error says what the server itself said.
func Run(ctx context.Context, args ...string) (*Server, error) {
	return runKind(ctx, kind{args: args})
}

// kind is what is special about a server.
type kind struct {
	args     []string
	ahead    time.Duration // of its clock
	tls      bool          // the port speaks TLS alone
	sentinel bool
}

func runKind(ctx context.Context, k kind) (*Server, error) {
	if port := option(k.args, "--port"); port != "" {
		return run(ctx, net.JoinHostPort(loopback, port), k)
	}
	return runAtFree(ctx, FreeAddr, k)
}

// runAtFree starts a server at a free address. If another process takes the address first, it tries
// another.
func runAtFree(
	ctx context.Context, free func(context.Context) (string, error), k kind,
) (*Server, error) {
	for try := 1; ; try++ {
		addr, err := free(ctx)
		if err != nil {
			return nil, err
		}
		s, err := run(ctx, addr, k)
		if err == nil || try == portTries || !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
}

// run starts a server at addr.
func run(ctx context.Context, addr string, k kind) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	p, err := k.start(ctx, dir, addr)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &Server{Addr: addr, password: option(k.args, "--requirepass"), tls: k.tls, dir: dir,
		process: p}
	if err := s.await(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// start starts a server of this kind in dir at addr.
func (k kind) start(ctx context.Context, dir, addr string) (*process, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	args := []string{
		"--port", port,
		"--bind", host,
		"--dir", dir,
		"--unixsocket", socket(dir),
		"--save", "",
		"--appendonly", "no",
		"--repl-diskless-sync-delay", "0",
	}
	if k.tls {
		args = append(args, "--port", "0", "--tls-port", port)
	}
	if k.sentinel {
		file, err := sentinelFile(dir)
		if err != nil {
			return nil, err
		}
		args = append([]string{file, "--sentinel"}, args...)
	}
	var env []string
	if k.ahead != 0 {
		if env, err = clockAhead(ctx, dir, k.ahead); err != nil {
			return nil, err
		}
	}
	return start(dir, env, slices.Concat(args, k.args))
}

// await returns once the server answers. It asks at the socket in the server's
// own directory: at the port, a stranger that was faster might answer. Servers
// bind the port before the socket, and exit if they cannot.
func (s *Server) await(ctx context.Context) error {
	pid, err := s.process.pid(ctx)
	if err != nil {
		return err
	}
	s.Pid = pid
	for {
		_, err := do(ctx, "unix", socket(s.dir), []string{"PING"})
		if _, refused := errors.AsType[ReplyError](err); refused || err == nil {
			return nil // "-NOAUTH" is an answer too
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-s.process.ended:
			return s.process.obituary()
		case <-ctx.Done():
			return fmt.Errorf("redistest: %s does not answer: %w\n%s", s.Addr, ctx.Err(),
				s.Output())
		}
	}
}

// URL returns the server's address with its password, as "redis://:secret@127.0.0.1:40123".
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr}
	if s.password != "" {
		u.User = url.UserPassword("", s.password)
	}
	return u.String()
}

// Patient follows a URL, so that a busy machine has time to answer.
const Patient = "?dial_timeout=1m&read_timeout=1m"

// Do sends one command over a connection of its own and returns the reply as text, the elements of
// an array one to a line. What Redis refuses is a [ReplyError].
func (s *Server) Do(ctx context.Context, args ...string) (string, error) {
	network, addr := "tcp", s.Addr
	if s.tls {
		network, addr = "unix", socket(s.dir)
	}
	if s.password == "" {
		return do(ctx, network, addr, args)
	}
	return do(ctx, network, addr, []string{"AUTH", s.password}, args)
}

// Output returns the end of what the server has printed.
func (s *Server) Output() string { return s.process.output() }

// Stop ends the server at once, as a crash would, and removes its directory. When
// it returns, the process is gone. Later calls do nothing.
func (s *Server) Stop() { s.process.stop() }

// socket is where a server listens besides its port.
func socket(dir string) string { return dir + "/s" }

// option returns the value that args give to an option, or "".
func option(args []string, name string) string {
	value := ""
	for i, arg := range args {
		if strings.EqualFold(arg, name) && i+1 < len(args) {
			value = args[i+1]
		}
	}
	return value
}

const loopback = "127.0.0.1"

// busOffset is added to a server's port to give the port at which the nodes of a
// cluster talk to each other.
const busOffset = 10000

// The ports of servers. Like their bus ports, they are below those that systems give to outgoing
// connections (32768 and up): such a connection could take a free port before the server does.
const (
	firstPort = 17000
	portCount = 5000
)

// lastPort counts the ports that this process has looked at; the first is random.
var lastPort = func() *atomic.Int64 {
	first := new(atomic.Int64)
	first.Store(rand.Int64N(portCount))
	return first
}()

// FreeAddr returns a loopback address that is free, as is its bus port.
func FreeAddr(ctx context.Context) (string, error) {
	for range 1000 {
		port := firstPort + int(lastPort.Add(1)%portCount)
		if isFree(ctx, port) && isFree(ctx, port+busOffset) {
			return net.JoinHostPort(loopback, strconv.Itoa(port)), nil
		}
	}
	return "", errors.New("redistest: no free port in 1000 tries")
}

// isFree reports whether nothing listens on port of the loopback interface.
func isFree(ctx context.Context, port int) bool {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
