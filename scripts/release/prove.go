package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// prove serves the modules as a module proxy does, and uses them.
func (r *releaser) prove() error {
	if err := r.git("checkout", "-q", r.version); err != nil {
		return err
	}
	for _, m := range r.modules {
		module := m.path + "@" + r.version
		if err := run(r.work, r.fromGit("served"), "go", "mod", "download", module); err != nil {
			return err
		}
	}
	for _, m := range r.modules {
		if err := run(m.dir, r.asUser("GOFLAGS=-trimpath"), "go", "build", "./..."); err != nil {
			return err
		}
		fmt.Printf("%s %s builds without go.work\n", m.path, r.version)
	}
	return r.use()
}

// use gets each module by its version into a program in an empty folder, builds and runs it, and
// installs the command.
func (r *releaser) use() error {
	dir := filepath.Join(r.work, "try")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	environment := r.asUser("GOFLAGS=-mod=mod -trimpath")
	if err := run(dir, environment, "go", "mod", "init", "example.com/try"); err != nil {
		return err
	}
	var program strings.Builder
	program.WriteString("package main\n\nimport \"fmt\"\n")
	for _, m := range r.modules {
		if err := run(dir, environment, "go", "get", m.path+"@"+r.version); err != nil {
			return err
		}
		switch {
		case m.path == root:
			fmt.Fprintf(&program, "import %q\n", m.path)
		case !m.isCommand():
			fmt.Fprintf(&program, "import _ %q\n", m.path)
		}
	}
	program.WriteString("\nfunc main() { fmt.Println(headgate.PerMinute(60)) }\n")
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil {
		return err
	}
	out, err := output(dir, environment, "go", "run", ".")
	if err != nil || out != "60/m" {
		return fmt.Errorf("the program printed %q, %w; want 60/m", out, err)
	}
	fmt.Println("a program in an empty folder gets all of them, builds and runs")
	return r.install()
}

func (r *releaser) install() error {
	bin := filepath.Join(r.work, "bin")
	environment := r.asUser("GOBIN="+bin, "GOFLAGS=-trimpath")
	command := root + "/cmd/headgate@" + r.version
	if err := run(r.work, environment, "go", "install", command); err != nil {
		return err
	}
	out, err := output(r.work, nil, filepath.Join(bin, "headgate"), "--version")
	if err != nil || !strings.Contains(out, r.version) {
		return fmt.Errorf("headgate --version printed %q, %w; want %s", out, err, r.version)
	}
	fmt.Println("go install " + command + " gives a command that says its version")
	return nil
}

// fromGit is the environment of a go command that makes our modules from the tags of the copy, as
// a module proxy does from those of the public repository.
func (r *releaser) fromGit(cache string) []string {
	return append(os.Environ(), "GOWORK=off", "GOMODCACHE="+r.cache(cache),
		"GOPROXY="+downloaded(), "GONOPROXY="+root, "GONOSUMDB="+root,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+r.tree+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://"+root)
}

// asUser is the environment of a go command that has only a proxy for our modules: a directory of
// files, as fromGit left it.
func (r *releaser) asUser(more ...string) []string {
	proxy := "file://" + filepath.Join(r.cache("served"), "cache", "download")
	return append(append(os.Environ(), "GOWORK=off", "GOMODCACHE="+r.cache("user"),
		"GOPROXY="+proxy+","+downloaded(), "GONOSUMDB="+root), more...)
}

// downloaded is a proxy for the modules of others: what this machine has, then its own proxy.
func downloaded() string {
	cache := filepath.Join(goEnv("GOMODCACHE"), "cache", "download")
	return "file://" + cache + "," + goEnv("GOPROXY")
}

func (r *releaser) cache(name string) string { return filepath.Join(r.work, "modules-"+name) }

func goEnv(name string) string {
	out, err := output(".", nil, "go", "env", name)
	if err != nil {
		log.Fatal(err)
	}
	return out
}
