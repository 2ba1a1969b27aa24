//go:build gateways

package gateways

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The page's files work with an Envoy of a year ago, as the page says.
func TestOldEnvoy(t *testing.T) {
	t.Parallel()
	g := gateways["Envoy"]
	g.command = slices.Clone(g.command)
	g.command[0] = oldEnvoy()
	t.Run("rules", func(t *testing.T) {
		t.Parallel()
		s := g.open(t, false)
		for range 2 {
			a := s.send(t, "POST", "/login", strings.NewReader("user=x"), forged...)
			passed(t, s, "a body", a, "POST /login user=x")
		}
		denied(t, s, "one too many", s.send(t, "POST", "//login", nil, forged...), "login")
	})
	t.Run("descriptors", func(t *testing.T) {
		t.Parallel()
		found := files(t, "envoy.md")
		line := regexp.MustCompile(`.*enable_retry_after_header.*\n`)
		found["envoy.yaml"] = withBody(t, line.ReplaceAllString(found["envoy-descriptors.yaml"], ""))
		found["envoy-descriptors.yaml"] = ""
		found["headgate.yaml"] = "envoy: {header_fields: true}\ndomains:\n- domain: edge\n" +
			"  descriptors:\n  - {key: remote_address, limit: 3/h}\n"
		testDenial(t, g.openWith(t, found))
	})
}

// The page's body for denials also works with the newest Envoy, whose own Retry-After is the same.
func TestBodyOfDenial(t *testing.T) {
	t.Parallel()
	found := files(t, "envoy.md")
	found["envoy.yaml"] = withBody(t, found["envoy-descriptors.yaml"])
	found["headgate.yaml"] = edit(t, found["domain.yaml"], "unit: minute", "unit: hour")
	testDenial(t, gateways["Envoy"].openWith(t, found))
}

// withBody adds the body of the page to the configuration of an Envoy.
func withBody(t *testing.T, config string) string {
	t.Helper()
	body := regexp.MustCompile("(?ms)^local_reply_config:\n.*?^```").FindString(read(t, "envoy.md"))
	body = strings.ReplaceAll("\n"+strings.TrimSuffix(body, "\n```"), "\n", "\n          ")
	return edit(t, config, "stat_prefix: web", "stat_prefix: web"+body)
}

// testDenial checks that a client gets three answers, and then a denial with a body.
func testDenial(t *testing.T, s *site) {
	t.Helper()
	for range 3 {
		if a := s.send(t, "GET", "/", nil); a.StatusCode != http.StatusOK {
			t.Errorf("%s %v", a.Status, a.Header)
		}
	}
	a := s.send(t, "GET", "/", nil)
	after := a.Header.Values("Retry-After")
	if len(after) != 1 {
		t.Fatalf("%s %v %s", a.Status, a.Header, a.body)
	}
	seconds, err := strconv.Atoi(after[0])
	if err != nil || seconds < 1 || seconds > 3600 || a.StatusCode != http.StatusTooManyRequests ||
		a.Header.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(a.body, `"status":429`) {
		t.Errorf("%s %v %s", a.Status, a.Header, a.body)
	}
}
