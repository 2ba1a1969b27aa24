package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What clients may use in all, whatever the number of reloads. Nothing refills during the test.
const (
	ruleTokens   = 150
	domainTokens = 100
)

// reloaded is the n-th version of a rules file. The limits whose grants are counted are the
// same in all of them. All else changes.
func reloaded(n int) string {
	return fmt.Sprintf(`rules:
  - {name: counted, match: {path: /}, key: "header:X-User", limits: %d/365d}
  - {name: open, match: {path: /other/%d}, key: "header:X-User", limits: %d000000/s}
domains:
  - domain: edge
    descriptors:
      - {key: counted, rate_limit: {unit: year, requests_per_unit: %d}}
      - {key: wide, limit: %d000000/s}
      - {key: other%d, limit: 5/s}
`, ruleTokens, n, 1+n%7, domainTokens, 1+n%5, n)
}

// replace replaces a file, as an editor does.
func replace(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func reload(t *testing.T, c *client) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/-/reload", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

// The kinds of the load of reloads: two limits that are counted, and two that never deny.
const (
	countedHTTP = iota
	countedGRPC
	openHTTP
	openGRPC
)

func askReloaded(c *client, n int) (int, answer) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch kind := n % 4; kind {
	case countedHTTP:
		return kind, c.take(ctx, "counted")
	case countedGRPC:
		return kind, c.limit(ctx, n, "counted")
	case openHTTP:
		return kind, c.take(ctx, "open")
	default:
		return kind, c.limit(ctx, n, "wide")
	}
}

// While files are loaded 100 times, one in ten of them wrong, no request is lost or answered
// wrongly, no limit is forgotten, and nothing leaks.
func TestReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	replace(t, file, reloaded(0))
	s := serveFile(t, file)
	admin := newClient(t, s)
	if status, text := reload(t, admin); status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	before := s.usage(t)
	c := newClient(t, s)
	var late lateness
	l := start([]*client{c}, pick(600, 2000), &late, askReloaded)
	for n := 1; n <= 100; n++ {
		l.lasts(t.Context(), pick(12*time.Millisecond, 100*time.Millisecond))
		text, want := reloaded(n), http.StatusOK
		if n%10 == 5 {
			text, want = "rules: [{name: open, limits: wrong}]", http.StatusUnprocessableEntity
		}
		replace(t, file, text)
		if status, text := reload(t, admin); status != want {
			t.Errorf("reload %d: status %d, want %d: %s", n, status, want, text)
		}
	}
	var stall time.Duration
	granted, asked := [4]int{}, [4]int{}
	for _, r := range l.stop() {
		if r.err != nil {
			t.Errorf("a request was lost: %v", r.err)
		}
		stall = max(stall, r.end-r.start)
		asked[r.kind]++
		if r.granted {
			granted[r.kind]++
		}
	}
	want := [4]int{ruleTokens, domainTokens, asked[openHTTP], asked[openGRPC]}
	if granted != want || asked[countedHTTP] <= ruleTokens || asked[countedGRPC] <= domainTokens {
		t.Errorf("of %v requests %v were granted, want %v", asked, granted, want)
	}
	c.close()
	var after usage
	until(t, "back to what it held", func() bool {
		after = s.usage(t)
		return after.goroutines <= before.goroutines+3 && after.files <= before.files+3
	})
	t.Logf("%v requests, longest stall %v, timers late by %v; before %+v, after %+v",
		asked, stall, late.value(), before, after)
}
