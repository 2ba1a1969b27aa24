package report

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/gocode"
)

// newLimit makes the texts of a limit by which logs were replayed. name is that of a proposal.
func newLimit(
	ctx context.Context, name string, l headgate.Limit, by replay.By, now time.Time,
) (Limit, error) {
	bare := l.Named("")
	code, rule := gocode.Limit(l), "api"
	if l.String() != bare.String() {
		code += fmt.Sprintf(".Named(%q)", l.Name())
		name, rule = l.Name(), l.Name()[:min(len(l.Name()), 60)] // a longer one is refused
	}
	headers, err := responses(ctx, l, now)
	if err != nil {
		return Limit{}, fmt.Errorf("limit %s: %w", l, err)
	}
	return Limit{
		Name: name, Limit: l.String(), Go: code, YAML: yaml(rule, bare, by), Headers: headers,
	}, nil
}

// yaml returns a rules file with one rule: the limit l for the keys that by makes.
func yaml(rule string, l headgate.Limit, by replay.By) string {
	switch strings.ToLower(rule) {
	case "true", "false", "null": // which are no text in YAML
		rule = strconv.Quote(rule)
	}
	text := "rules:\n  - name: " + rule + "\n"
	switch key := by.String(); {
	case key == "all":
	case strings.Contains(key, ","):
		text += "    key: [" + strings.ReplaceAll(key, ",", ", ") + "]\n"
	default:
		text += "    key: " + key + "\n"
	}
	return text + "    limits: " + l.String() + "\n"
}

// fields are the header fields of httplimit, in the spelling of their standards.
var fields = []string{
	"RateLimit-Policy", "RateLimit",
	"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
	"Retry-After",
}

// responses returns the header fields that httplimit sends for the first request of a key, and for
// the first that is denied if all come at once.
func responses(ctx context.Context, l headgate.Limit, now time.Time) (string, error) {
	store := headgate.NewMemory()
	take := func(cost int64) (headgate.Decision, error) {
		return store.Take(ctx, headgate.Request{Key: "k", Limit: l, Cost: cost, At: now})
	}
	first, err := take(1)
	if err != nil {
		return "", err
	}
	if first.Remaining > 0 {
		if _, err := take(first.Remaining); err != nil {
			return "", err
		}
	}
	denied, err := take(1)
	if err != nil {
		return "", err
	}
	return response(http.StatusOK, now, first) + "\n" +
		response(http.StatusTooManyRequests, now, denied), nil
}

func response(status int, now time.Time, d headgate.Decision) string {
	var text strings.Builder
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\n", status, http.StatusText(status))
	h := http.Header{}
	httplimit.AllFields.Write(h, now, d)
	for _, name := range fields {
		for _, value := range h.Values(name) {
			text.WriteString(name + ": " + value + "\n")
		}
	}
	return text.String()
}
