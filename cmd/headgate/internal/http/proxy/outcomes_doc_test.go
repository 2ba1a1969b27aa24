package proxy

import (
	"net/http"
	"os"
	"regexp"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// TestDocumentOutcomes runs the file of docs/serve/outcomes.md.
func TestDocumentOutcomes(t *testing.T) {
	page, err := os.ReadFile("../../../../../docs/serve/outcomes.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	for _, block := range blocks {
		c, err := config.Parse("rules.yaml", block[1], config.Options{})
		if err != nil || len(c.Warnings) > 0 {
			t.Error(err, c.Warnings)
		}
	}
	block := blocks[0]
	fault := regexp.MustCompile("(?s)```text\n(.*?)\n```").FindSubmatch(page)
	if _, err := config.Parse("rules.yaml", block[1], config.Options{NoProxy: true}); err == nil ||
		err.Error() != string(fault[1]) {
		t.Errorf("without a proxy: %v", err)
	}
	c, err := config.Parse("rules.yaml", block[1], config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "wrong" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}, "", c.Rules...)
	send := func(path string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	want := func(n int, path string, status int) {
		t.Helper()
		for i := range n {
			if got := send(path); got != status {
				t.Fatalf("request %d to %s: %d, want %d", i, path, got, status)
			}
		}
	}
	want(50, "/login", http.StatusOK)
	want(5, "/login?wrong", http.StatusUnauthorized)
	want(19, "/login", http.StatusTooManyRequests)
	want(50, "/", http.StatusOK)
	want(1, "/login", http.StatusTooManyRequests)
	want(50, "/", http.StatusTooManyRequests)
}
