//go:build unix

package cli

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
)

// What differs each time: waits, ends of overrides, ids.
var changing = []struct {
	text *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`("(?:retry_after|reset_after|wait)":)\d+(\.\d+)?`), "${1}N"},
	{regexp.MustCompile(`"until":"[-0-9]+T[:.0-9]+Z"`), `"until":"TIME"`},
	{regexp.MustCompile(`(?m)^429 \d+$`), "429 N"}, // and Retry-After
	{idText, `"ID"`},
}

// idText is the id of a reservation or a permit.
var idText = regexp.MustCompile(`"[pr]1\.[A-Za-z0-9_-]+"`)

func settled(text string) string {
	for _, c := range changing {
		text = c.text.ReplaceAllString(text, c.as)
	}
	return text
}

// TestHTTPDocs runs the session of docs/serve/http.md by curl against the real server.
func TestHTTPDocs(t *testing.T) {
	t.Parallel()
	curl := interpreter(t, "curl")
	const page = "../../../../docs/serve/http.md"
	file := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"), snippets(t, page, "yaml"))
	s := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--config", file)...)...)
	n := 0
	ids := make(map[string]string) // of the page, and those that the server gave instead
	for _, command := range strings.Split(snippets(t, page, "console"), "$ ")[1:] {
		command, want, _ := strings.Cut(command, "\n")
		arguments, ok := strings.CutPrefix(command, "curl ")
		if !ok {
			continue
		}
		arguments = strings.Replace(arguments, "127.0.0.1:8080", s.addresses["http"], 1)
		arguments = idText.ReplaceAllStringFunc(arguments, func(id string) string { return ids[id] })
		script := osexec.CommandContext(t.Context(), "sh", "-c", curl+" -sS "+arguments)
		script.Env = append(os.Environ(), "no_proxy=*")
		out, err := script.CombinedOutput()
		if got := settled(string(out)); err != nil || got != settled(want) {
			t.Errorf("%s\nprints %s%v\nwant   %s", command, out, err, want)
		}
		if id := idText.FindString(want); id != "" {
			ids[id] = idText.FindString(string(out))
		}
		n++
	}
	const least = 14
	if n < least {
		t.Errorf("%d commands were found, want at least %d", n, least)
	}
}

// An override that one server is given is in force in the others, and after all have ended.
func TestOverridesAreShared(t *testing.T) {
	t.Parallel()
	curl := interpreter(t, "curl")
	file := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"), apiRules)
	store := "redis://" + redistest.Start(t).Addr
	start := func() *server {
		return startServer(t, nil, append([]string{"headgate"}, append(serveOn,
			"--config", file, "--store", store)...)...)
	}
	const peek = `{"rule":"login","key":"ip:192.0.2.1"}`
	const ban = `{"rule":"login","key":"ip:192.0.2.*","ban":true}`
	isBanned := func(s *server) bool {
		return strings.Contains(run(t, ".", nil, curl, "-sS", "-d", peek,
			"http://"+s.addresses["http"]+"/v1/peek"), `"limit":"ban"`)
	}
	a, b := start(), start()
	if isBanned(a) || isBanned(b) {
		t.Fatal("the key is banned at the start")
	}
	run(t, ".", nil, curl, "-fsS", "-X", "PUT", "-d", ban,
		"http://"+a.addresses["http"]+"/v1/overrides")
	if !isBanned(a) {
		t.Error("the server that was given the ban does not know it")
	}
	eventually.True(t, "the other server knows the ban", func() bool { return isBanned(b) })
	a.end(os.Interrupt)
	b.end(os.Interrupt)
	c := start()
	eventually.True(t, "a server that starts later knows the ban", func() bool { return isBanned(c) })
}
