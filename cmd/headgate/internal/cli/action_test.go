//go:build unix

package cli

import (
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// action is what a test reads of action.yml.
type action struct {
	Inputs map[string]struct {
		Default  string
		Required bool
	}
	Runs struct {
		Using string
		Steps []struct {
			Name, If, Shell, Run string
			Env                  map[string]string
		}
	}
}

var inputText = regexp.MustCompile(`\$\{\{ inputs\.([a-z-]+) \}\}`)

// review runs the steps of action.yml in a repository as GitHub does, and returns the step that
// failed and the summary.
func (a *action) review(
	t *testing.T, root, repository string, inputs map[string]string,
) (failed, summary string) {
	t.Helper()
	temp := t.TempDir()
	value := func(name string) string {
		if v, given := inputs[name]; given {
			return v
		}
		return a.Inputs[name].Default
	}
	for _, step := range a.Runs.Steps {
		name, empty, _ := strings.Cut(strings.TrimPrefix(step.If, "inputs."), " ")
		if step.If != "" && (value(name) == "") != (empty == "== ''") {
			continue
		}
		if step.Shell != "bash" || step.Run == "" {
			t.Fatalf("%q is not run by bash", step.Name)
		}
		if strings.Contains(step.Run, "${{") {
			t.Errorf("%q runs what an input says", step.Name)
		}
		shell := osexec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		shell.Dir = repository
		shell.Env = append(os.Environ(), "RUNNER_TEMP="+temp,
			"GITHUB_STEP_SUMMARY="+temp+"/summary", "GITHUB_ACTION_PATH="+root)
		for variable, text := range step.Env {
			shell.Env = append(shell.Env, variable+"="+inputText.ReplaceAllStringFunc(text, func(s string) string {
				return value(inputText.FindStringSubmatch(s)[1])
			}))
		}
		out, err := shell.CombinedOutput()
		if _, exited := errors.AsType[*osexec.ExitError](err); err != nil && !exited {
			t.Fatal(err)
		}
		t.Logf("%s: %v\n%s", step.Name, err, out)
		if err != nil {
			failed = step.Name
			break
		}
	}
	text, _ := os.ReadFile(filepath.Join(temp, "summary"))
	return failed, string(text)
}

// The shell steps of action.yml find the rules in force, check and compare, and fail as they
// should.
func TestAction(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(t.TempDir(), "headgate")
	if err := os.Symlink(self, command); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	if a.Runs.Using != "composite" || !a.Inputs["config"].Required || len(a.Runs.Steps) != 3 {
		t.Fatalf("got %+v", a)
	}
	repository := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-C", repository}, args...)
		out, err := osexec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	// clone is a checkout without history, as the action of GitHub makes it, of what is changed here.
	clone := func(t *testing.T, from string) string {
		t.Helper()
		at := filepath.Join(t.TempDir(), "clone")
		git("clone", "-q", "--depth", "1", "file://"+from, at)
		changed, err := os.ReadFile(filepath.Join(from, "limits/rules.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(at, "limits/rules.yaml"), string(changed))
		return at
	}
	rules := func(limit string) {
		t.Helper()
		writeFile(t, filepath.Join(repository, "limits/rules.yaml"), "rules:\n  - {name: shop, key: ip, limits: "+limit+"}\n"+
			"  - {name: api, key: header:X-Api-Key, limits: 9/m}\n")
	}
	day, err := os.ReadFile("../../../../examples/shop-day.log")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(repository, "limits"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(repository, "day.log"), string(day))
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "none")
	empty := git("rev-parse", "HEAD")
	rules("60/m")
	git("add", ".")
	git("commit", "-qm", "rules")
	base := git("rev-parse", "HEAD")
	const check, compare = "Check the rules", "Compare with the rules in force"
	const client = "  198.1"
	git("commit", "-qam", "newer", "--allow-empty")
	for i, c := range []struct {
		limit, against, max, exclude, logs string
		failed, summary                    string
	}{
		{"30/m", base, "1%", "api", "*.log", compare, "shop: 3 clients denied more, of 92"},
		{"30/m", base, "5%", "api", "*.log", "", "within --max-denied 5%"},
		{"30/m", base, "5%", "", "*.log", compare, "an access log cannot decide api (header:X-Api-Key)"},
		{"30/x", base, "5%", "api", "*.log", check, ""},
		{"30/m", base, "5%", "api", "", "", ""},
		{"1000/m", empty, "0%", "api", "day.log", "", "total: 0 clients denied more"},
		{"1/d", empty, "0%", "api", "day.log", compare, "clients denied more, of 92"},
		{"1/d", "HEAD^{tree}", "0%", "api", "day.log", compare, ""},
	} {
		rules(c.limit)
		use, at := command, repository
		switch i {
		case 0:
			use = "" // it is built
		case 1:
			at = clone(t, repository)
		}
		failed, summary := a.review(t, root, at, map[string]string{
			"config": "limits/rules.yaml", "against": c.against, "max-denied": c.max, "exclude": c.exclude,
			"logs": c.logs, "headgate": use,
		})
		if failed != c.failed || !strings.Contains(summary, c.summary) || (summary == "") != (c.summary == "") ||
			strings.Contains(summary, client) { // others can read it
			t.Errorf("%+v: %q failed; the summary is\n%s", c, failed, summary)
		}
	}
	rules("30/m")
	_, summary := a.review(t, root, repository, map[string]string{
		"config": "limits/rules.yaml", "against": base, "exclude": "api", "logs": "day.log", "headgate": command, "top": "1",
	})
	if strings.Count(summary, client) != 1 {
		t.Errorf("with top: 1, the summary is\n%s", summary)
	}
	failed, _ := a.review(t, root, repository, map[string]string{"config": "limits", "headgate": command})
	if failed != check {
		t.Errorf("a directory: %q failed", failed)
	}
}
