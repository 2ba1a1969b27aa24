package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// programs are the binaries that are measured, by their paths in dir.
type programs struct{ dir, headgate, upstream string }

// withPrograms calls measure with the programs that build builds, and deletes them.
func withPrograms(
	ctx context.Context, build func(programs, context.Context) error, measure func(programs) error,
) error {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A program named ratelimit takes the peer's environment variables.
	p := programs{dir, filepath.Join(dir, "ratelimit"), filepath.Join(dir, "peer")}
	if err := build(p, ctx); err != nil {
		return err
	}
	return measure(p)
}

// build builds all programs.
func (p programs) build(ctx context.Context) error {
	return errors.Join(p.buildHeadgate(ctx), p.buildUpstream(ctx))
}

// buildHeadgate builds this tree's program.
func (p programs) buildHeadgate(ctx context.Context) error {
	_, err := runGo(ctx, workspace, "build", "-C", "../cmd/headgate", "-o", p.headgate, ".")
	return err
}

// buildUpstream builds the peer from its module, with the versions that the module names.
func (p programs) buildUpstream(ctx context.Context) error {
	const peer = "github.com/envoyproxy/ratelimit"
	const user = "../cmd/headgate/e2e/upstream"
	text, err := runGo(ctx, noWorkspace, "-C", user, "mod", "download", "-json", peer)
	if err != nil {
		return err
	}
	var module struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal(text, &module); err != nil {
		return err
	}
	_, err = runGo(ctx, noWorkspace,
		"build", "-C", module.Dir, "-o", p.upstream, "./src/service_cmd")
	return err
}

// The values of GOWORK. The modules of a workspace share versions, so the peer is built outside it.
// This tree's program is built in it: all that the tests have compiled is used again.
const (
	workspace   = ""
	noWorkspace = "off"
)

// runGo runs a go command with a value of GOWORK.
func runGo(ctx context.Context, work string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK="+work)
	text, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w\n%s", err, failed.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return text, nil
}

// limits is the configuration of a workload in the dialect that both servers read.
func (w Workload) limits() string {
	requests, unit := int64(1<<31), "minute"
	if w.Denied {
		requests, unit = 1, "year"
	}
	return fmt.Sprintf("domain: bench\ndescriptors:\n  - key: user\n"+
		"    rate_limit: {unit: %s, requests_per_unit: %d}\n", unit, requests)
}

// serviceProcess is a server that runs by itself.
type serviceProcess struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan error // what Wait returned
	grpc   string     // address
	http   string
}

// startServer runs a program with the peer's environment variables, on free ports, and waits
// until it accepts connections.
func (r *serviceRun) startServer(
	ctx context.Context, program string, load serviceLoad, more ...string,
) (*serviceProcess, error) {
	dir, err := os.MkdirTemp(r.programs.dir, "run-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "limits", "config")
	if err := os.MkdirAll(config, 0o755); err != nil { //nolint:gosec // not secret
		return nil, err
	}
	file := filepath.Join(config, "limits.yaml")
	err = os.WriteFile(file, []byte(load.limits()), 0o644) //nolint:gosec // not secret
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	cache := "0"
	if load.localCache {
		cache = "1000000"
	}
	env := append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
		"GRPC_PORT=" + ports[0], "PORT=" + ports[1], "DEBUG_PORT=" + ports[2],
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + r.redis.Addr, "USE_STATSD=false", "LOG_LEVEL=WARN",
		"RUNTIME_ROOT=" + dir, "RUNTIME_SUBDIRECTORY=limits", "RUNTIME_WATCH_ROOT=false",
		"LOCAL_CACHE_SIZE_IN_BYTES=" + cache,
	}, more...)
	return start(ctx, program, env, "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1])
}

func start(
	ctx context.Context, program string, env []string, grpc, http string,
) (*serviceProcess, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program) // stop ends it
	s := &serviceProcess{cmd: cmd, ended: make(chan error, 1), grpc: grpc, http: http}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = env, &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.cmd.Wait() }()
	if err := s.waitReady(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// waitReady waits until the server accepts connections for gRPC.
func (s *serviceProcess) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.grpc)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("it ended: %w\n%s", err, s.output.String())
		case <-ctx.Done():
			return fmt.Errorf("it does not accept connections: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the server, and kills it if it takes long.
func (s *serviceProcess) stop() error {
	err := s.cmd.Process.Signal(syscall.SIGTERM)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-s.ended: // by the signal, which Wait reports as an error
		_ = err
		return nil
	case <-time.After(10 * time.Second):
		return s.cmd.Process.Kill()
	}
}

// cpuMicros is the processor time, user and system, that the server has used, in steps of the
// kernel's clock of 10 ms.
func (s *serviceProcess) cpuMicros() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat is %q", text)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) * 10_000, err
}

// freePorts returns n ports that are free now.
func freePorts(ctx context.Context, n int) (ports []string, err error) {
	for range n {
		address, err := redistest.FreeAddr(ctx)
		if err != nil {
			return nil, err
		}
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
