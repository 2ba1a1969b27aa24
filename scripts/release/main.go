// Command release sets the version of all modules that are published, and proves that each can be
// had by that version:
//
//	go run ./scripts/release v0.1.0     changes go.mod and go.sum of every module
//	go run ./scripts/release -check     changes nothing
//
// It works in a copy of what is committed. There it makes each module what a module proxy serves,
// in a directory of files, and a program in an empty folder gets, builds and runs them without
// go.work. It pushes nothing: it prints the tags to push.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	check := flag.Bool("check", false, "prove, and change nothing")
	flag.Parse()
	version := "v0.0.1-check"
	if !*check {
		version = flag.Arg(0)
	}
	if err := release(version, *check); err != nil {
		log.Fatal(err)
	}
}

var semantic = regexp.MustCompile(`^v[01]\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func release(version string, check bool) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("the version is %q; want one such as v0.1.0", version)
	}
	source, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := os.Stat("go.work"); err != nil {
		return errors.New("this is not the root of the repository; run it there")
	}
	if !check {
		if err := clean(version); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp("", "headgate-release")
	if err != nil {
		return err
	}
	r := &releaser{version: version, tree: filepath.Join(work, "tree"), work: work}
	defer r.remove()
	if err := run(source, nil, "git", "clone", "-q", ".", r.tree); err != nil {
		return err
	}
	if err := r.prove(); err != nil {
		return err
	}
	if check {
		return nil
	}
	return r.keep(source)
}

// remove removes what is temporary. The modules are read-only: the go command removes those that it
// has put below work.
func (r *releaser) remove() {
	_ = run(r.work, r.environment(), "go", "clean", "-modcache")
	_ = os.RemoveAll(r.work)
}

// clean fails if the tree has changes or the tag exists.
func clean(version string) error {
	if out, err := output(".", nil, "git", "status", "--porcelain"); err != nil {
		return err
	} else if out != "" {
		return errors.New("the tree has changes; commit them first")
	}
	if out, err := output(".", nil, "git", "tag", "--list", version); err != nil {
		return err
	} else if out != "" {
		return fmt.Errorf("the tag %s exists; choose another version", version)
	}
	return nil
}

// releaser is a copy of the repository whose modules get a version.
type releaser struct {
	version    string
	tree, work string // the copy; what else is temporary
	modules    []module
}

// environment is that of the go command for somebody who has only a module proxy: the directory of
// our modules first, then what this machine has downloaded, then the network.
func (r *releaser) environment() []string {
	cache, proxy := goEnv("GOMODCACHE"), goEnv("GOPROXY")
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "GONOSUMDB="+root,
		"GOMODCACHE="+filepath.Join(r.work, "modules"),
		"GOPROXY=file://"+r.proxy()+",file://"+filepath.Join(cache, "cache", "download")+","+proxy)
}

func (r *releaser) proxy() string { return filepath.Join(r.work, "proxy") }

func goEnv(name string) string {
	out, err := output(".", nil, "go", "env", name)
	if err != nil {
		log.Fatal(err)
	}
	return out
}

// prove sets the version in all modules, serves them, and uses them.
func (r *releaser) prove() (err error) {
	if r.modules, err = published(r.tree); err != nil {
		return err
	}
	for _, m := range r.modules { // a module follows those that it requires
		if err := r.set(m); err != nil {
			return err
		}
		if err := m.serve(r.proxy(), r.version); err != nil {
			return err
		}
		if err := run(m.dir, r.environment(), "go", "build", "./..."); err != nil {
			return err
		}
		fmt.Printf("%s %s builds without go.work\n", m.path, r.version)
	}
	return r.use()
}

// set makes a module require the others by the version.
func (r *releaser) set(m module) error {
	args := []string{"mod", "edit"}
	for _, other := range r.modules {
		args = append(args, "-dropreplace="+other.path)
		if slices.Contains(m.requires, other.path) {
			args = append(args, "-require="+other.path+"@"+r.version)
		}
	}
	if err := run(m.dir, nil, "go", args...); err != nil {
		return err
	}
	return run(m.dir, r.environment(), "go", "mod", "tidy")
}

// use gets each module by its version into a program in an empty folder, builds and runs it, and
// installs the command.
func (r *releaser) use() error {
	dir := filepath.Join(r.work, "try")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := run(dir, r.environment(), "go", "mod", "init", "example.com/try"); err != nil {
		return err
	}
	var program strings.Builder
	program.WriteString("package main\n\nimport \"fmt\"\n")
	for _, m := range r.modules {
		if err := run(dir, r.environment(), "go", "get", m.path+"@"+r.version); err != nil {
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
	out, err := output(dir, r.environment(), "go", "run", ".")
	if err != nil || out != "60/m" {
		return fmt.Errorf("the program printed %q, %w; want 60/m", out, err)
	}
	fmt.Println("a program in an empty folder gets all of them, builds and runs")
	return r.install()
}

func (r *releaser) install() error {
	bin := filepath.Join(r.work, "bin")
	environment := append(r.environment(), "GOBIN="+bin, "GOFLAGS=-trimpath")
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

// keep copies go.mod and go.sum into the repository, and prints what is left to do.
func (r *releaser) keep(source string) error {
	var tags []string
	for _, m := range r.modules {
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join(m.dir, name))
			if err != nil {
				return err
			}
			name = filepath.Join(source, m.name, name)
			if err := os.WriteFile(name, text, 0o600); err != nil { //nolint:gosec // of the tree
				return err
			}
		}
		tags = append(tags, filepath.ToSlash(filepath.Join(m.name, r.version)))
	}
	fmt.Printf("\nNext: commit, and after the checks have passed\n\n")
	for _, tag := range tags {
		fmt.Println("git tag " + tag)
	}
	fmt.Println("git push origin " + strings.Join(tags, " "))
	return nil
}

func run(dir string, environment []string, name string, args ...string) error {
	_, err := output(dir, environment, name, args...)
	return err
}

// output runs a command, and returns what it printed. Its error has what it said.
func output(dir string, environment []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...) //nolint:gosec,nolintlint,noctx // commands of this program
	c.Dir, c.Env = dir, environment
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(out.String()), nil
}
