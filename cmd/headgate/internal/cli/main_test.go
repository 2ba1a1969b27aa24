package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"image"
	"image/png"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/logs"
	"github.com/headgate/headgate/internal/redistest"
)

var update = flag.Bool("update", false, "write what commands print into the scripts that compare it")

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"headgate": Main, "headgate-logs": logs.Main, "ratelimit": Main,
	})
}

// tests run without the store of whoever runs them.
type tests struct{ *testing.M }

func (t tests) Run() int {
	os.Unsetenv("HEADGATE_STORE")
	return t.M.Run()
}

// TestScripts runs the terminal sessions of testdata/*.txtar. Each begins in a
// folder with the shop's recorded day, plain, compressed and cut off, and a
// picture; $REDIS is the URL of a server, $REDIS_HOST and $REDIS_PORT are where it
// is, and $BUSY is a port in use.
func TestScripts(t *testing.T) {
	server := redistest.Start(t)
	host, port, _ := net.SplitHostPort(server.Addr)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() }) // the scripts run after this function
	_, busy, _ := net.SplitHostPort(taken.Addr().String())
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REDIS", "redis://"+server.Addr)
			env.Setenv("REDIS_HOST", host)
			env.Setenv("REDIS_PORT", port)
			env.Setenv("BUSY", busy)
			return writeInputs(env.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json":  isJSON,
			"usage": usage,
		},
	})
}

// isJSON is the script command json: what was printed last is one JSON value.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: json stdout|FILE")
	}
	if json.Valid([]byte(ts.ReadFile(args[0]))) == neg {
		ts.Fatalf("%s is JSON: %v", args[0], neg)
	}
}

// usage is the script command usage ARGS: the command line ARGS is wrong. What is then printed is
// added to usage.txt. It runs no process, which takes much longer than to find out.
func usage(ts *testscript.TestScript, _ bool, args []string) {
	nothing, err := os.Open(os.DevNull)
	ts.Check(err)
	defer nothing.Close()
	printed, err := os.OpenFile(ts.MkAbs("usage.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer printed.Close()
	var stdout bytes.Buffer
	if code := exec(context.Background(), args, nothing, &stdout, printed); code != command.ExitUsage {
		ts.Fatalf("exit code %d, want %d", code, command.ExitUsage)
	}
	if stdout.Len() > 0 {
		ts.Fatalf("on stdout: %s", stdout.String())
	}
}

func writeInputs(dir string) error {
	day, err := os.ReadFile("../../../../examples/shop-day.log")
	if err != nil {
		return err
	}
	var zipped, picture bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(day); err != nil {
		return err
	}
	w.Close()
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 50, 50))); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"day.log":     day,
		"day.log.gz":  zipped.Bytes(),
		"cut.log.gz":  zipped.Bytes()[:zipped.Len()/2],
		"more.log.gz": append(bytes.Clone(zipped.Bytes()), "more\n"...),
		"day.log.zst": []byte("\x28\xb5\x2f\xfd\x24\x00\x01\x00\x00\x99\xe9\xd8\x51"),
		"picture.png": picture.Bytes(),
		"raw.log":     []byte("198.18.0.1 - - [22/Dec/2025:00:00:01 +0000] \"GET /\x1b[2J\xff\u202e HTTP/1.1\" 200 1\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// exec runs headgate and returns its exit code.
func exec(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command.Run(ctx, args, newRoot, stdin, stdout, stderr)
}
