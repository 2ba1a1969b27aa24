//go:build unix

package cli

import (
	"bytes"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/redistest"
)

// What differs each time: the end of a wait, and times of day.
var passing = []struct {
	text *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\bin \d[0-9hms.]+\b *`), "in TIME "},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "NOW"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "TODAY"},
}

// unpassing returns text without what differs each time.
func unpassing(text string) string {
	for _, p := range passing {
		text = p.text.ReplaceAllString(text, p.as)
	}
	return text
}

// TestDocumentedSessions runs each headgate command of the README and of
// docs/{command,replay,size,recipes}.md in a shell, and compares what it prints, also on stderr. localhost:6379 is a server of the test.
func TestDocumentedSessions(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"headgate", "headgate-logs"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir("../../../..")
	for page, least := range map[string]int{"README.md": 4, "docs/command.md": 14, "docs/replay.md": 1, "docs/size.md": 1,
		"docs/recipes.md": 2} {
		t.Run(page, func(t *testing.T) {
			server := redistest.Start(t)
			env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			n := 0
			for _, session := range strings.Split(snippets(t, page, "console"), "$ ")[1:] {
				command, want, _ := strings.Cut(session, "\n")
				command = strings.ReplaceAll(command, "go run ./cmd/headgate/logs", "headgate-logs")
				command = strings.ReplaceAll(command, "go run ./cmd/headgate", "headgate")
				command = strings.ReplaceAll(command, "localhost:6379", server.Addr)
				if variable, ok := strings.CutPrefix(command, "export "); ok {
					env = append(env, variable)
					continue
				}
				if !strings.Contains(command, "headgate") {
					continue
				}
				n++
				shell := osexec.CommandContext(t.Context(), "sh", "-c", command)
				shell.Env = env
				out, _ := shell.CombinedOutput() // what a denial exits with is tested elsewhere
				got := strings.ReplaceAll(string(out), server.Addr, "localhost:6379")
				if unpassing(got) != unpassing(want) {
					t.Errorf("%s\nprints\n%swant\n%s", command, got, want)
				}
			}
			if n < least {
				t.Errorf("%d commands were found, want at least %d", n, least)
			}
		})
	}
}

// docs/replay.md names each field of the JSON.
func TestReplayJSONIsDocumented(t *testing.T) {
	const root = "../../../../"
	page, err := os.ReadFile(root + "docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## JSON\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, flags := range []string{"--limit 60/m", "--max-denied 1% --config " + root +
		"examples/review/new.yaml --against " + root + "examples/review/old.yaml"} {
		var out bytes.Buffer
		args := strings.Fields("replay --json " + flags + " " + root + "examples/shop-day.log")
		exec(t.Context(), args, nil, &out, io.Discard)
		fields := regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(out.String(), -1)
		for _, f := range fields {
			if !strings.Contains(section, "`"+f[1]+"`") {
				t.Errorf("replay %s has the field %s, and the page does not", flags, f[1])
			}
		}
		if len(fields) < 20 {
			t.Errorf("replay %s prints %s", flags, &out)
		}
	}
}
