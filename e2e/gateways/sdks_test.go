//go:build gateways

package gateways

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// vendors is a server with the rules of docs/tokens.md in front of a model, and a program that
// calls the model through it with the SDKs of one language.
type vendors struct {
	t      *testing.T
	model  *model
	proxy  string // addresses
	server string

	program *exec.Cmd
	in      io.Writer // gets tasks, one in a line
	out     *bufio.Reader
	sdk     sdk // of the tasks
}

// sdk is an API by the SDK that calls it.
type sdk struct {
	api     string // as the program names it
	leaves  bool   // a client can leave at the last event; other SDKs read on until the stream ends
	givesUp bool   // it obeys X-Should-Retry
}

// budget is of each key, in place of the limits of the page. Nothing comes back for minutes.
const budget = 40_000

// serveVendors starts all of it. Command is the program.
func serveVendors(t *testing.T, command ...string) *vendors {
	t.Helper()
	v := &vendors{t: t, model: newModel(t), proxy: freeAddress(t)}
	server := httptest.NewServer(v.model)
	t.Cleanup(server.Close)
	rules := files(t, "../tokens.md")["vendors.yaml"]
	rules = edit(t, rules, "[100000/m, 20000000/d fixed-window]", strconv.Itoa(budget)+"/365d")
	dir := directory(t)
	write(t, dir, map[string]string{"headgate.yaml": rules})
	v.server = startHeadgate(t, dir, "--proxy", v.proxy+"="+server.URL)

	program := exec.CommandContext(context.WithoutCancel(t.Context()), command[0], command[1:]...)
	program.Dir, program.Stderr = "testdata/sdks", os.Stderr
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatalf("%v; scripts/deps sdks installs the SDKs", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = program.Wait()
	})
	v.program, v.in, v.out = program, in, bufio.NewReader(out)
	return v
}

// do makes calls of one kind at once, and returns the errors of those that failed. An SDK that
// waits for as long as Retry-After says fails the test.
func (v *vendors) do(what, key string, atOnce int) (failed []string) {
	v.t.Helper()
	task := map[string]any{
		"api": v.sdk.api, "do": what, "url": "http://" + v.proxy, "key": key, "at_once": atOnce,
	}
	if err := json.NewEncoder(v.in).Encode(task); err != nil {
		v.t.Fatal(err)
	}
	line := make(chan []byte, 1)
	go func() {
		text, _ := v.out.ReadBytes('\n') // empty after an error
		line <- text
	}()
	select {
	case text := <-line:
		if err := json.Unmarshal(text, &failed); err != nil {
			v.t.Fatalf("%s: %q: %v", what, text, err)
		}
	case <-time.After(3 * time.Minute):
		_ = v.program.Process.Kill()
		v.t.Fatalf("%s: no answer from the program", what)
	}
	return failed
}

// ask sends a request to the server itself, and returns the body of the answer.
func (v *vendors) ask(method, path, body string) string {
	v.t.Helper()
	s := site{url: "http://" + v.server, client: http.DefaultClient}
	a := s.send(v.t, method, path, strings.NewReader(body))
	if a.StatusCode != http.StatusOK {
		v.t.Fatalf("%s %s: %s %s", method, path, a.Status, a.body)
	}
	return a.body
}

// metric returns the number of a metric, given with its labels.
func (v *vendors) metric(name string) int64 {
	v.t.Helper()
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`)
	found := line.FindStringSubmatch(v.ask(http.MethodGet, "/metrics", ""))
	if found == nil {
		return 0
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		v.t.Fatal(err)
	}
	return int64(n)
}

const (
	estimatedMetric = `headgate_rule_tokens_estimated_total{rule="model"}`
	usedMetric      = `headgate_rule_tokens_used_total{rule="model"}`
	deniedMetric    = `headgate_decisions_total{outcome="denied",rule="model"}`
)

// A step makes calls at once with one key.
type step struct {
	do, key string
	hold    string // when the model stops until the client leaves
	cost    int64  // of each answer
	atOnce  int
	passed  int // how many of them are not denied
}

// check does a step. What is charged is what the model counts, or what was reserved if the client
// has left before the answer said what it used. It returns what the SDK says about failures.
func (v *vendors) check(s step) string {
	v.t.Helper()
	v.model.set(s.hold, s.cost)
	estimated, used := v.metric(estimatedMetric), v.metric(usedMetric)
	denied := v.metric(deniedMetric)
	failed := v.do(s.do, strings.ReplaceAll(v.sdk.api, " ", "-")+"-"+s.key, s.atOnce)
	left := s.hold == "before" || s.hold == "middle"
	if !left && len(failed) != s.atOnce-s.passed {
		v.t.Errorf("%+v: %d failed", s, len(failed))
	}
	var asked, want, charged int64
	for range 500 { // the server may settle after the client has its answer
		asked, want = v.model.count()
		charged = v.metric(usedMetric) - used
		if left {
			want = v.metric(estimatedMetric) - estimated
		}
		if charged == want && (charged > 0 || s.passed == 0) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if charged != want {
		v.t.Errorf("%+v: charged %d; want %d", s, charged, want)
	}
	denied = v.metric(deniedMetric) - denied
	if asked != int64(s.passed) || denied != int64(s.atOnce-s.passed) {
		v.t.Errorf("%+v: %d requests have reached the model, and %d were denied", s, asked, denied)
	}
	if v.t.Failed() {
		v.t.Fatalf("%+v: the SDK says %q", s, failed)
	}
	return strings.Join(failed, "\n")
}

// steps are those of each API. A key can use the budget up to its last token, and no more.
func (v *vendors) steps() {
	v.t.Helper()
	reserved := v.metric(estimatedMetric)
	v.check(step{"call", "one", "", 100, 1, 1})
	reserved = v.metric(estimatedMetric) - reserved
	if v.sdk.leaves {
		v.check(step{"end", "one", "end", 100, 1, 1})
	}
	for _, s := range []step{
		{"stream", "one", "", 100, 1, 1},
		{"before", "one", "before", 100, 1, 1},
		{"middle", "one", "middle", 100, 1, 1},
		{"call", "near", "", budget - reserved - 1, 1, 1}, {"call", "near", "", reserved, 1, 1},
		{"call", "at", "", budget - reserved, 1, 1}, {"call", "at", "", reserved, 1, 1},
		{"call", "past", "", budget - reserved + 1, 1, 1}, {"call", "past", "", 100, 1, 0},
		{"call", "many", "", budget - 8*reserved, 1, 1}, {"call", "many", "", reserved, 20, 8},
	} {
		v.check(s)
	}
	if v.sdk.givesUp {
		v.isToldWhy("past", "The rule model is exceeded. Retry in ")
	}
}

// isToldWhy checks that a denied call is not sent again, and that its error has the reason.
func (v *vendors) isToldWhy(key, reason string) {
	v.t.Helper()
	if said := v.check(step{"again", key, "", 100, 1, 0}); !strings.Contains(said, reason) {
		v.t.Errorf("the SDK says %q; want %q in it", said, reason)
	}
}

// Each API is limited by the rules of docs/tokens.md.
func TestVendorsPython(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("testdata/sdks/python/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	testVendors(t, []string{python, "sdk.py"},
		sdk{"openai chat", true, true}, sdk{"openai responses", true, true},
		sdk{"openai azure", true, true}, sdk{"anthropic", true, true},
		sdk{"google-genai", true, false}, sdk{"litellm openai", true, false},
		sdk{"litellm anthropic", true, false}, sdk{"cohere", true, false},
		sdk{"ollama", true, false})
}

func TestVendorsNode(t *testing.T) {
	t.Parallel()
	testVendors(t, []string{"node", "sdk.mjs"},
		sdk{"openai chat", false, true}, sdk{"openai responses", true, true},
		sdk{"anthropic", true, true}, sdk{"ai openai", false, false}, sdk{"ai chat", false, false},
		sdk{"ai anthropic", false, false}, sdk{"ai google", false, false})
}

func testVendors(t *testing.T, command []string, sdks ...sdk) {
	t.Helper()
	v := serveVendors(t, command...)
	for _, s := range sdks {
		t.Run(s.api, func(t *testing.T) {
			v.t, v.sdk = t, s
			v.steps()
		})
	}
	v.t = t
	if n := v.metric("headgate_unmatched_requests_total"); n > 0 {
		t.Errorf("%d requests have passed without a limit", n)
	}
	v.ask(http.MethodPut, "/v1/overrides", `{"rule": "model", "key": "header:*", "ban": true}`)
	for _, s := range sdks {
		if v.sdk = s; s.givesUp {
			v.isToldWhy("banned", "The rule model bans this client.")
		}
	}
}
