package report

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// request is a line of a log in the combined format.
func request(second int, ip, method, path, status, agent string) string {
	at := time.Unix(1768176000+int64(second), 0).UTC().Format("02/Jan/2006:15:04:05 -0700")
	return fmt.Sprintf("%s - - [%s] %q %s 512 \"-\" %q\n", ip, at, method+" "+path+" HTTP/1.1", status, agent)
}

// mixed is a log of 100 clients, with a scanner, an office behind one address, and a bot.
func mixed() string {
	var log strings.Builder
	for second := range 6 * 3600 {
		if second%10 == 0 {
			log.WriteString(request(second, fmt.Sprintf("203.0.113.%d", second/10%100), "GET", "/shop", "200", "Firefox"))
		}
		if second%2 == 0 {
			page := fmt.Sprintf("/shop/%d", second%40)
			log.WriteString(request(second, "192.0.2.1", "GET", page, "200", fmt.Sprintf("Browser %d", second%58)))
		}
		if second >= 3600 && second < 3900 {
			scan := request(second, "198.51.100.7", "PROPFIND", "/admin%24", "404", "sqlmap/1.8")
			log.WriteString(strings.Repeat(scan, 9))
		}
		log.WriteString(request(second, "192.0.2.77", "GET", "/price.json", "200", "python-requests/2.31"))
	}
	return log.String()
}

// pageOf returns the page of a log without its scripts and data.
func pageOf(t *testing.T, b *Build) string {
	t.Helper()
	d := built(t, b)
	if err := d.Fit(); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := Write(&page, d); err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(page.String(), `<script type="application/json"`)
	return text
}

// The page tells a scanner, an office and a bot apart without a script: by paths, methods, statuses,
// user agents and times.
func TestEvidenceTellsKeysApart(t *testing.T) {
	page := pageOf(t, building(KindSize, mixed()))
	for _, want := range []string{
		`<h1 id="answer">First decide about 3 keys</h1>`, "need at most 1/15m.", `2/15m <i>reserve</i>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	items := strings.Split(page, "<li>")
	for key, wants := range map[string][]string{
		"198.51.100.7": {"/admin%24</bdi> (2,700)", "PROPFIND", "404", "sqlmap/1.8", "12 Jan 2026, 01:00–01:04"},
		"192.0.2.1":    {"/shop/0</bdi> (540)", "17 more", "GET", "200", "Browser 0", "26 more", "00:00–05:59"},
		"192.0.2.77":   {"/price.json</bdi> (21,600)", "python-requests/2.31</bdi> (21,600)", "00:00–05:59"},
	} {
		i := slices.IndexFunc(items, func(s string) bool { return strings.Contains(s, ">"+key+"<") })
		if i < 0 {
			t.Errorf("%s does not stand out", key)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(items[i], want) {
				t.Errorf("%s: no %q in\n%s", key, want, items[i])
			}
		}
	}
}

// Keys, paths, methods and user agents that hold HTML are text in the HTML.
func TestEvidenceIsText(t *testing.T) {
	by, err := replay.ParseBy("header:key")
	if err != nil {
		t.Fatal(err)
	}
	const nasty = "<img src=x onerror=alert(1)>\u202e{{data}}"
	var log strings.Builder
	for i := range 2000 {
		line := map[string]any{"time": 1768176000 + i*30, "key": fmt.Sprint("k", i%30), "uri": "/"}
		log.WriteString(encoded(line) + "\n")
		if i == 100 {
			line = map[string]any{
				"time": line["time"], "key": nasty, "uri": "/" + nasty, "method": nasty, "user_agent": nasty,
			}
			log.WriteString(strings.Repeat(encoded(line)+"\n", 500))
		}
	}
	b := building(KindSize, log.String())
	b.Size.By = by
	page := pageOf(t, b)
	want := html.EscapeString(strings.ReplaceAll(nasty, "\u202e", `\u202E`))
	if n := strings.Count(page, want); n != 4 || strings.Contains(page, "<img") {
		t.Errorf("the text is in the page %d times, want 4; as an element: %t", n, strings.Contains(page, "<img"))
	}
}
