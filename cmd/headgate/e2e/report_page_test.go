package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// scanner is the client that stands out in trafficLog.
const scanner = "198.51.100.7"

type logLine struct {
	second           int
	ip, method, path string
	status           int
}

// trafficLog is six hours of a shop: 300 clients, a monitor, and a scanner for ten minutes.
func trafficLog() string {
	random := rand.New(rand.NewPCG(1, 2))
	var lines []logLine
	for client := range 300 {
		ip := fmt.Sprintf("203.0.%d.%d", 113-client/250, client%250)
		second := random.IntN(6 * 3600)
		for range 3 + random.IntN(15) {
			second += random.IntN(40)
			path := fmt.Sprintf("/product/%d", random.IntN(30))
			lines = append(lines, logLine{second, ip, "GET", path, 200})
		}
	}
	for i := range 1500 {
		path := []string{"/.env", "/wp-login.php", "/.git/config"}[i%3]
		lines = append(lines, logLine{7200 + i*2/5, scanner, "GET", path, 404})
	}
	for minute := range 360 {
		lines = append(lines, logLine{minute * 60, "192.0.2.9", "HEAD", "/health", 200})
	}
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.second - b.second })
	var text strings.Builder
	start := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	for _, l := range lines {
		at := start.Add(time.Duration(l.second) * time.Second).Format("02/Jan/2006:15:04:05 -0700")
		fmt.Fprintf(&text, "%s - - [%s] \"%s %s HTTP/1.1\" %d 512 \"-\" \"-\"\n",
			l.ip, at, l.method, l.path, l.status)
	}
	return text.String()
}

// limitsOf parses limits for a replay.
func limitsOf(t *testing.T, texts ...string) (limits []headgate.Limit) {
	t.Helper()
	for _, text := range texts {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l)
	}
	return limits
}

// writeReport writes the report of a log into a file, and returns its URL.
func writeReport(t *testing.T, b report.Build, text string) string {
	t.Helper()
	b.Command, b.Made = "headgate "+b.Kind+" --report report.html access.log", time.Now()
	b.Size.Reorder, b.Size.Top = replay.DefaultReorder, replay.DefaultTop
	if reflect.ValueOf(b.Size.By).IsZero() {
		b.Size.By = replay.ByIP
	}
	b.Logs = func(int) ([]replay.Log, error) {
		return []replay.Log{{Name: "httpd.sorted.log", Reader: strings.NewReader(text)}}, nil
	}
	d, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Write(f, d); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// openReport opens a report from disk. When the test ends, the console must be empty, and the
// page must have loaded nothing but itself.
func openReport(t *testing.T, url string, before ...action) *page {
	t.Helper()
	return load(t, url, func(asked string) bool { return asked == url || asked == "data:," }, before...)
}

// expect fails the test if an expression is not as wanted.
func expect[T comparable](p *page, what, expression string, want T) {
	p.t.Helper()
	if got := value[T](p, expression); got != want {
		p.t.Errorf("%s: %v, want %v", what, got, want)
	}
}
