//go:build gateways

package gateways

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// model is a server in the shapes of the vendors' APIs, which counts what it lets clients use.
type model struct {
	apis []api

	mu    sync.Mutex
	hold  string // when an answer stops until its client leaves: before, middle (of it) or end
	cost  int64  // of an answer, by the weights of docs/tokens.md
	asked int64  // requests since set
	used  int64  // costs of the answers that were sent to their end, since set
}

// api is how one of them answers. In place of numbers are READ, FRESH (those of READ that are not
// CACHED), WRITTEN and ALL.
type api struct {
	Path  string            `json:"path"`  // an expression
	Type  string            `json:"type"`  // of a stream
	Parts []json.RawMessage `json:"parts"` // of a stream
	Whole json.RawMessage   `json:"whole"` // an answer that is no stream
}

// Each answer has written this many tokens, which cost four each, and has read this many from a
// cache, which cost nothing.
const written, cached = 20, 15

func newModel(t *testing.T) *model {
	t.Helper()
	text, err := os.ReadFile("testdata/sdks/apis.json")
	if err != nil {
		t.Fatal(err)
	}
	m := &model{}
	if err := json.Unmarshal(text, &m.apis); err != nil {
		t.Fatal(err)
	}
	return m
}

// set says how the next answers are.
func (m *model) set(hold string, cost int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold, m.cost, m.asked, m.used = hold, cost, 0, 0
}

func (m *model) count() (asked, used int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked, m.used
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.asked++
	hold, cost := m.hold, m.cost
	m.mu.Unlock()
	var found api
	for _, a := range m.apis {
		if regexp.MustCompile(a.Path).MatchString(r.URL.Path) {
			found = a
		}
	}
	asked := regexp.MustCompile(`"stream": ?true`).Match(body)
	if !asked && !strings.Contains(r.URL.Path, ":stream") {
		found.Type, found.Parts = "application/json", []json.RawMessage{found.Whole}
	}
	fresh := cost - 4*written
	numbers := strings.NewReplacer(
		`"READ"`, strconv.FormatInt(fresh+cached, 10), `"FRESH"`, strconv.FormatInt(fresh, 10),
		`"ALL"`, strconv.FormatInt(fresh+cached+written, 10),
		`"CACHED"`, strconv.Itoa(cached), `"WRITTEN"`, strconv.Itoa(written))
	w.Header().Set("Content-Type", found.Type)
	for _, part := range found.Parts {
		if hold == "before" || hold == "middle" && bytes.Contains(part, []byte("WRITTEN")) {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, numbers.Replace(framed(found.Type, part)))
		_ = http.NewResponseController(w).Flush()
	}
	m.mu.Lock()
	m.used += cost
	m.mu.Unlock()
	if hold == "end" {
		<-r.Context().Done()
	}
}

// framed returns a part as a stream has it. An event with a type has it as its name, too.
func framed(kind string, part json.RawMessage) string {
	var line bytes.Buffer
	_ = json.Compact(&line, part) // valid, as it was read
	text := strings.ReplaceAll(line.String(), `"[DONE]"`, "[DONE]")
	if kind != "text/event-stream" {
		return text + "\n"
	}
	name := regexp.MustCompile(`^{"type":"([^"]+)"`).FindStringSubmatch(text)
	if name != nil {
		return "event: " + name[1] + "\ndata: " + text + "\n\n"
	}
	return "data: " + text + "\n\n"
}
