//go:build clients

package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

const (
	python = "../../clients/python"
	node   = "../../clients/node"
)

// pythonPath is the interpreter that scripts/deps clients installs packages for.
func pythonPath(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(python, ".venv/bin/python"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a program in a directory, fails the test if it fails, and returns what it prints.
func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// servers are the environment of the tests of both languages.
var servers = sync.OnceValues(func() (env []string, err error) {
	ctx := context.Background()
	server, err := redistest.Run(ctx)
	if err != nil {
		return nil, err
	}
	other, err := redistest.Run(ctx)
	if err != nil {
		return nil, err
	}
	cluster, err := redistest.RunCluster(ctx)
	if err != nil {
		return nil, err
	}
	for _, command := range [][]string{
		{"ACL", "SETUSER", "notime", "on", ">secret", "~*", "+@all", "-time"},
	} {
		if _, err := server.Do(ctx, command...); err != nil {
			return nil, err
		}
	}
	router, err := route(ctx, server.Addr, other.Addr)
	return []string{
		"HEADGATE_REDIS=" + server.Addr, "HEADGATE_CLUSTER=" + cluster.Addrs[1],
		"HEADGATE_ROUTER=" + router, "PYTHONDONTWRITEBYTECODE=1",
	}, err
})

// environment adds what ends with the test to the servers.
func environment(t *testing.T) []string {
	t.Helper()
	env, err := servers()
	if err != nil {
		t.Fatal(err)
	}
	sentinel := redistest.StartSentinel(t, 1, 0)
	lossy := redistest.LoseAnswers(t, strings.TrimPrefix(env[0], "HEADGATE_REDIS="), "{lost}")
	return append(env, "HEADGATE_LOSSY="+lossy, "HEADGATE_SENTINEL="+sentinel.Addrs[0],
		"HEADGATE_SENTINEL_NAME="+redistest.SentinelMaster)
}

func TestPython(t *testing.T) {
	out := run(t, python, environment(t), pythonPath(t), "-W", "error::DeprecationWarning",
		"redis_test.py")
	if !strings.Contains(out, "\nOK\n") {
		t.Errorf("the tests print\n%s", out)
	}
}

func TestNode(t *testing.T) {
	out := run(t, node, environment(t), "node", "--test", "redis.test.mjs")
	if !strings.Contains(out, "# fail 0\n") && !strings.Contains(out, "ℹ fail 0\n") {
		t.Errorf("the tests print\n%s", out)
	}
}

// What the pages of both languages show runs, and prints what their readers expect.
func TestPages(t *testing.T) {
	env := environment(t)
	addr := strings.TrimPrefix(env[0], "HEADGATE_REDIS=")
	_, port, _ := strings.Cut(addr, ":")
	code := blocks(t, python+"/redis.md", "python")
	code = strings.ReplaceAll(code, "6379", port)
	want := "4 left\nTrue [2, 980]\n99\ngo\n3 of 5\n"
	if got := run(t, python, env, pythonPath(t), "-W", "error", "-c", code); got != want {
		t.Errorf("the page of Python prints %q; want %q", got, want)
	}
	fresh := redistest.Start(t)
	_, port, _ = strings.Cut(fresh.Addr, ":")
	code = strings.ReplaceAll(blocks(t, node+"/redis.md", "js"), "6379", port)
	want = "4 left\ntrue [ 2, 980 ]\n99\ngo\n"
	if got := run(t, node, env, "node", "--input-type=module", "--eval", code); got != want {
		t.Errorf("the page of Node prints %q; want %q", got, want)
	}
}

// blocks returns the code of one language in a page.
func blocks(t *testing.T, page, language string) (code string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		code += block
	}
	return code
}

func TestTypesAndStyle(t *testing.T) {
	bin := filepath.Dir(pythonPath(t))
	for _, tool := range [][]string{
		{bin + "/ruff", "check", "."},
		{bin + "/ruff", "format", "--check", "."},
		{bin + "/mypy"},
		{"../node/node_modules/.bin/pyright", "--pythonpath", pythonPath(t)},
	} {
		run(t, python, nil, tool...)
	}
	for _, tool := range []string{"eslint", "tsc"} {
		run(t, node, nil, "node_modules/.bin/"+tool)
	}
}

// The packages of both languages hold the scripts of redisstore, and nothing in place of them.
func TestPackages(t *testing.T) {
	dir := t.TempDir()
	run(t, python, nil, pythonPath(t), "-m", "build", "--no-isolation", "--outdir", dir)
	run(t, node, nil, "npm", "pack", "--silent", "--pack-destination", dir)
	for pattern, read := range map[string]func(*testing.T, string) map[string][]byte{
		"*.whl": unzip, "headgate-*.tar.gz": untar, "*.tgz": untar,
	} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		got := read(t, found[0])
		want, err := filepath.Glob("../../redisstore/*.lua")
		if err != nil || len(want) < 10 {
			t.Fatal(want, err)
		}
		for _, name := range want {
			text, err := os.ReadFile(name)
			if err != nil || !bytes.Equal(got[filepath.Base(name)], text) {
				t.Errorf("%s in %s differs from that of redisstore: %v", name, pattern, err)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s has %d scripts; want %d", pattern, len(got), len(want))
		}
	}
	// what was installed works without the repository
	env, err := servers()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*.whl"))
	run(t, dir, nil, pythonPath(t), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
		"--disable-pip-version-check", "--target", dir+"/python", found[0])
	run(t, dir, append(env, "PYTHONPATH="+dir+"/python"), pythonPath(t), "-c", `
import os, redis, headgate.redis
host, port = os.environ["HEADGATE_REDIS"].split(":")
assert headgate.redis.__file__.startswith(os.getcwd())
assert headgate.redis.Store(redis.Redis(host, int(port))).take("1/h", "wheel")
`)
	found, _ = filepath.Glob(filepath.Join(dir, "*.tgz"))
	run(t, dir, nil, "npm", "install", "--offline", "--silent", "--no-audit", "--no-fund", found[0])
	modules, err := filepath.Abs(filepath.Join(node, "node_modules/redis/dist/index.js"))
	if err != nil {
		t.Fatal(err)
	}
	script := `
import { createRequire } from "node:module";
import { Store } from "headgate/redis";
import { FakeClient } from "headgate/fake";
import redis from ` + strconv.Quote(modules) + `;
const client = await redis.createClient({ url: "redis://" + process.env.HEADGATE_REDIS }).connect();
const { allowed } = await new Store(client).take({ limit: "1/h", key: "tgz" });
const { Client } = createRequire(process.cwd() + "/")("headgate");
console.log(allowed, (await new FakeClient().take({ key: "tgz" })).allowed, new FakeClient() instanceof Client);
client.destroy();
`
	if out := run(t, dir, env, "node", "--input-type=module", "--eval", script); out != "true true true\n" {
		t.Errorf("the package of Node prints %q", out)
	}
}

func unzip(t *testing.T, name string) map[string][]byte {
	t.Helper()
	archive, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	scripts := make(map[string][]byte)
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, ".lua") {
			in, err := file.Open()
			if err != nil {
				t.Fatal(err)
			}
			scripts[filepath.Base(file.Name)], err = io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return scripts
}

func untar(t *testing.T, name string) map[string][]byte {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	scripts := make(map[string][]byte)
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return scripts
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(header.Name, ".lua") {
			if scripts[filepath.Base(header.Name)], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
		}
	}
}
