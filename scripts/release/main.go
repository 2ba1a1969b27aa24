// Command release makes a version of all modules that are published, and proves that each can be
// had by that version:
//
//	go run ./scripts/release v0.1.0     adds two commits and the tags, and prints what to push
//	go run ./scripts/release -check     proves the same, and changes nothing
//
// The modules of a working tree use each other by replace directives, which the go command forbids
// in a module that it installs. So the first commit, which the tags name, requires the version
// instead, and the second takes the first back.
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
		if err := clean(); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp("", "headgate-release")
	if err != nil {
		return err
	}
	r := &releaser{version: version, tree: filepath.Join(work, "tree"), work: work}
	defer r.remove()
	if err := r.commit(source, check); err != nil {
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

// clean fails if the tree has changes.
func clean() error {
	out, err := output(".", nil, "git", "status", "--porcelain")
	if err == nil && out != "" {
		return errors.New("the tree has changes; commit them first")
	}
	return err
}

// releaser is a copy of the repository whose modules get a version.
type releaser struct {
	version    string
	tree, work string // the copy; what else is temporary
	modules    []module
}

// commit makes the two commits in a copy of what is committed in source, and the tags.
func (r *releaser) commit(source string, check bool) (err error) {
	if err := run(source, nil, "git", "clone", "-q", ".", r.tree); err != nil {
		return err
	}
	if err := r.author(source, check); err != nil {
		return err
	}
	if r.modules, err = published(r.tree); err != nil {
		return err
	}
	message := "Modules require each other by " + r.version
	if err := r.git("commit", "-q", "--allow-empty", "-m", message); err != nil {
		return err
	}
	for _, m := range r.modules {
		if err := r.set(m); err != nil {
			return err
		}
		err := r.git("commit", "-q", "-a", "--amend", "--allow-empty", "--no-edit")
		if err != nil {
			return err
		}
		if err := r.git("tag", m.tag(r.version)); err != nil {
			return err
		}
	}
	for _, m := range r.modules {
		if err := r.git("tag", "-f", m.tag(r.version)); err != nil {
			return err
		}
	}
	return r.git("revert", "--no-edit", "HEAD")
}

// author makes the author of commits that of the source. A check needs none.
func (r *releaser) author(source string, check bool) error {
	for _, name := range []string{"user.name", "user.email"} {
		value, err := output(source, nil, "git", "config", "--default", "", name)
		if err != nil {
			return err
		}
		if value == "" && !check {
			return fmt.Errorf("git config %s is not set; set it", name)
		}
		if value == "" {
			value = "check"
		}
		if err := r.git("config", name, value); err != nil {
			return err
		}
	}
	return nil
}

// set makes a module require the others by the version. The go command reads them from the copy of
// the repository, and writes their hashes to go.sum.
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
	return run(m.dir, r.fromGit("set"), "go", "mod", "tidy")
}

// keep fetches the commits and the tags into the repository, and prints what is left to do.
func (r *releaser) keep(source string) error {
	tags := []string{}
	for _, m := range r.modules {
		tags = append(tags, m.tag(r.version))
	}
	if err := r.git("checkout", "-q", "-"); err != nil { // prove is on the tag
		return err
	}
	refs := []string{"fetch", "-q", r.tree, "HEAD"}
	for _, tag := range tags {
		refs = append(refs, "tag", tag)
	}
	if err := run(source, nil, "git", refs...); err != nil { // fails if a tag exists
		return err
	}
	if err := run(source, nil, "git", "merge", "-q", "--ff-only", "FETCH_HEAD"); err != nil {
		return err
	}
	// GitHub starts no workflow for a push with more than three tags.
	fmt.Printf("\nThis repository has two more commits, the first with the tags. To publish:\n\n"+
		"  git push origin HEAD %s\n  git push origin %s\n\nTo give it up:\n\n"+
		"  git tag -d %s && git reset --keep HEAD~2\n",
		r.version, strings.Join(tags[1:], " "), strings.Join(tags, " "))
	return nil
}

// remove removes what is temporary. The modules are read-only: the go command removes those that it
// has put below work.
func (r *releaser) remove() {
	for _, cache := range []string{"set", "served", "user"} {
		environment := append(os.Environ(), "GOMODCACHE="+r.cache(cache))
		_ = run(r.work, environment, "go", "clean", "-modcache")
	}
	_ = os.RemoveAll(r.work)
}

func (r *releaser) git(args ...string) error { return run(r.tree, nil, "git", args...) }

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
