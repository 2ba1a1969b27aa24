package report

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/httplimit"
)

var limitTexts = []string{
	"10/m", "1/s", "60/h burst 5", "1252/h", "100/d burst 1000", "3/7s burst 2", "1.5/s", "5/15m",
	"186/10s", "1/250us", "7/1500ms stepped", "10/m burst 25 stepped", "5/15m fixed-window",
	"60/m sliding-log", "60/90m sliding-window", "api=100/m burst 20", "a.B-c_9=5/m sliding-log",
}

func parsed(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A program of the Go expressions makes the same limits.
func TestGo(t *testing.T) {
	t.Parallel()
	var program strings.Builder
	program.WriteString("package main\n\nimport (\n\"fmt\"\n\"time\"\n\"github.com/headgate/headgate\"\n)\n\n" +
		"const _ = time.Second\n\nfunc main() {\n")
	var want strings.Builder
	for _, text := range limitTexts {
		l := parsed(t, text)
		texts, err := newLimit(t.Context(), "careful", l, replay.ByIP, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if again := parsed(t, texts.Limit); again != l {
			t.Errorf("%s is shown as %s", l, again)
		}
		fmt.Fprintf(&program, "\tfmt.Println(%s)\n", texts.Go)
		want.WriteString(l.String() + "\n")
	}
	program.WriteString("}\n")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", "run", file)
	out, err := run.CombinedOutput()
	if err != nil || string(out) != want.String() {
		t.Errorf("%v:\n%s\nwant\n%s", err, out, want.String())
	}
}

// The header fields are those of the middleware, for the first request of a client and for the
// first that is denied.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, text := range limitTexts {
		synctest.Test(t, func(t *testing.T) {
			l := parsed(t, text)
			texts, err := newLimit(t.Context(), "", l, replay.ByIP, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			limiter, err := headgate.NewLimiter(headgate.NewMemory(), l)
			if err != nil {
				t.Fatal(err)
			}
			limit, err := httplimit.New(limiter, httplimit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			var got []string
			for range l.Capacity() + 1 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
				got = append(got, sent(w))
			}
			if want := got[0] + "\n" + got[len(got)-1]; texts.Headers != want || !strings.Contains(want, "429") {
				t.Errorf("%s: page\n%s\nhttplimit\n%s", text, texts.Headers, want)
			}
		})
	}
}

// sent is a response as text, with the fields of limits only.
func sent(w *httptest.ResponseRecorder) string {
	var text strings.Builder
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\n", w.Code, http.StatusText(w.Code))
	h := w.Result().Header
	h.Del("Content-Type")
	h.Del("Cache-Control")
	h.Del("X-Content-Type-Options")
	for _, name := range fields {
		for _, v := range h.Values(name) {
			text.WriteString(name + ": " + v + "\n")
		}
		h.Del(name)
	}
	for name, v := range h {
		fmt.Fprintf(&text, "%s: %s, which the page does not have\n", name, v)
	}
	return text.String()
}
