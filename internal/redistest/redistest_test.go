package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// holdEnv makes the test binary a process that starts a server and waits to be killed.
const holdEnv = "REDISTEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holdEnv) != "" {
		hold()
	}
	os.Exit(m.Run())
}

func hold() {
	s, err := Run(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Addr, s.dir)
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed
	os.Exit(0)
}

func TestServerAnswers(t *testing.T) {
	t.Parallel()
	s := Start(t)
	if want := "redis://" + s.Addr; s.URL() != want {
		t.Errorf("URL() = %q, want %q", s.URL(), want)
	}
	check(t, s, "OK", "SET", "a b", "x\r\ny")
	check(t, s, "x\r\ny", "GET", "a b")
	check(t, s, "", "GET", "missing")
	check(t, s, "2", "RPUSH", "list", "one", "two")
	check(t, s, "one\ntwo", "LRANGE", "list", "0", "-1")
	check(t, s, "save\n", "CONFIG", "GET", "save")
	check(t, s, "appendonly\nno", "CONFIG", "GET", "appendonly")
	info, err := s.Do(t.Context(), "INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	if want := "process_id:" + strconv.Itoa(s.Pid) + "\r\n"; !strings.Contains(info, want) {
		t.Errorf("Pid = %d, which INFO does not confirm:\n%s", s.Pid, info)
	}
	_, err = s.Do(t.Context(), "INCR", "list")
	if e, ok := errors.AsType[ReplyError](err); !ok || !strings.HasPrefix(string(e), "WRONGTYPE") {
		t.Errorf("INCR of a list: %v, want a ReplyError that says WRONGTYPE", err)
	}
}

func TestServerWithPassword(t *testing.T) {
	t.Parallel()
	s := Start(t, "--requirepass", "p@ss:word/ü", "--maxmemory", "10mb")
	if want := "redis://:p%40ss%3Aword%2F%C3%BC@" + s.Addr; s.URL() != want {
		t.Errorf("URL() = %q, want %q", s.URL(), want)
	}
	check(t, s, "maxmemory\n10485760", "CONFIG", "GET", "maxmemory")
	_, err := do(t.Context(), "tcp", s.Addr, []string{"PING"})
	if e, ok := errors.AsType[ReplyError](err); !ok || !strings.HasPrefix(string(e), "NOAUTH") {
		t.Errorf("PING without password: %v, want NOAUTH", err)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	s, err := Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(s.Stop)
	}
	wg.Wait()
	if !gone(s.Addr, s.dir) {
		t.Error("the server or its directory is there after Stop")
	}
	s.Stop()

	_, port, _ := net.SplitHostPort(s.Addr)
	again := Start(t, "--port", port)
	if again.Addr != s.Addr {
		t.Errorf("started with --port %s: Addr = %s", port, again.Addr)
	}
	check(t, again, "PONG", "PING")
}

// A test that kills the server has still a directory to remove, and nothing else.
func TestStopAfterCrash(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p, err := os.FindProcess(s.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.process.ended
	if _, err := os.Stat(s.dir); err != nil {
		t.Errorf("before Stop: %v", err)
	}
	s.Stop()
	if !gone(s.Addr, s.dir) {
		t.Error("the server or its directory is there after Stop")
	}
}

func TestServerDiesWithItsStarter(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), holdEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	addr, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok {
		t.Fatalf("the starter says %q, want an address and a directory", line)
	}
	if _, err := do(t.Context(), "tcp", addr, []string{"PING"}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil { // SIGKILL: nothing in the starter can clean up
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The server is another process: nothing but asking tells that it has ended.
	for end := time.Now().Add(time.Minute); !gone(addr, dir); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a minute after its starter was killed, the server at %s or its directory is still there", addr)
		}
	}
}

func TestRunErrors(t *testing.T) {
	taken := Start(t)
	_, port, _ := net.SplitHostPort(taken.Addr)
	temp, err := os.MkdirTemp("", "") //nolint:usetesting // t.TempDir is too long for the path of a socket on some systems
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	t.Setenv("TMPDIR", temp)
	for _, test := range []struct {
		name, env string
		args      []string
		want      string
	}{
		{name: "unknown option", args: []string{"--no-such-option", "1"}, want: "no-such-option"},
		{name: "port taken", args: []string{"--port", port}, want: "Address already in use"},
		{name: "wrong binary", env: "/no/such/redis", want: "HEADGATE_REDIS_SERVER"},
		{name: "not a server", env: "true", want: "ended before it answered"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.env != "" {
				t.Setenv("HEADGATE_REDIS_SERVER", test.env)
			}
			s, err := Run(t.Context(), test.args...)
			if err == nil {
				s.Stop()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind in the directory for temporary files: %v, %v", left, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// A port can be taken between finding it free and binding it, here twice, by a
// server that would answer in place of ours.
func TestRunTriesAnotherPort(t *testing.T) {
	t.Parallel()
	stranger := Start(t)
	tries := 0
	s, err := runAtFree(t.Context(), func(ctx context.Context) (string, error) {
		if tries++; tries <= 2 {
			return stranger.Addr, nil
		}
		return FreeAddr(ctx)
	}, kind{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if tries != 3 || s.Addr == stranger.Addr {
		t.Errorf("after %d tries at %s, where a stranger is at %s; want 3 tries", tries, s.Addr, stranger.Addr)
	}
	check(t, s, "PONG", "PING")

	tries = 0
	if _, err := runAtFree(t.Context(), func(context.Context) (string, error) {
		tries++
		return stranger.Addr, nil
	}, kind{}); !errors.Is(err, errPortTaken) || tries != portTries {
		t.Errorf("error %v after %d tries, want errPortTaken after %d", err, tries, portTries)
	}
}

// Where there is no server at all, a test fails and says what to do.
func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HEADGATE_REDIS_SERVER", "")
	if _, err := Run(t.Context()); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("error %v, want ErrNotInstalled", err)
	}
	fake := &fakeTB{TB: t}
	func() {
		defer func() { _ = recover() }()
		Start(fake)
	}()
	if !strings.Contains(fake.fatal, "make deps") {
		t.Errorf("Start said %q, want a hint at make deps", fake.fatal)
	}
}

// fakeTB keeps what Fatal gets, and panics where Fatal would end the test.
type fakeTB struct {
	testing.TB

	fatal string
}

func (f *fakeTB) Fatal(args ...any) {
	f.fatal = fmt.Sprint(args...)
	panic(f.fatal)
}

// Debian's redis-tools alone is enough.
func TestServerNamedCheckRDB(t *testing.T) {
	server, err := binary(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(server, filepath.Join(dir, "redis-check-rdb")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "rm"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("HEADGATE_REDIS_SERVER", "")
	check(t, Start(t), "PONG", "PING")
}

func TestShared(t *testing.T) {
	t.Parallel()
	if a, b := Shared(t), Shared(t); a != b {
		t.Errorf("two servers, %s and %s", a.Addr, b.Addr)
	}
	check(t, Shared(t), "PONG", "PING")
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			s := Start(t)
			check(t, s, "1", "INCR", "mine")
		})
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	// Where "foo" lives is known: slot 12182, so on the last third.
	check(t, c.Servers[2], "OK", "SET", "foo", "bar")
	for i, s := range c.Servers[:2] {
		_, err := s.Do(t.Context(), "GET", "foo")
		if want := "MOVED 12182 " + c.Addrs[2]; !strings.HasSuffix(fmt.Sprint(err), want) {
			t.Errorf("node %d: GET foo: %v, want %s", i, err, want)
		}
	}
	for i, s := range c.Servers {
		info, err := s.Do(t.Context(), "CLUSTER", "INFO")
		if err != nil || !strings.Contains(info, "cluster_slots_ok:16384") {
			t.Errorf("node %d: %v\n%s", i, err, info)
		}
	}
}

func check(t *testing.T, s *Server, want string, command ...string) {
	t.Helper()
	got, err := s.Do(t.Context(), command...)
	if err != nil || got != want {
		t.Errorf("%s: %q, %v, want %q", strings.Join(command, " "), got, err, want)
	}
}

// gone reports whether no process listens at addr and dir does not exist.
func gone(addr, dir string) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(context.Background(), "tcp", addr)
	if err == nil {
		_ = conn.Close()
		return false
	}
	_, err = os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}
