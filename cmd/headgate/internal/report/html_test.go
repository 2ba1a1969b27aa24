package report

import (
	"bytes"
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// request is a line of a log in the combined format.
func request(second int, ip, method, path, status, agent string) string {
	at := time.Unix(1768176000+int64(second), 0).UTC().Format("02/Jan/2006:15:04:05 -0700")
	return fmt.Sprintf("%s - - [%s] %q %s 512 \"-\" %q\n", ip, at, method+" "+path+" HTTP/1.1", status, agent)
}

// mixed is three hours of a shop with 80 clients, a scanner, an office behind one address, and a bot.
func mixed() string {
	r := rand.New(rand.NewPCG(18, 18))
	agents := []string{"Firefox/145.0", "Chrome/142.0", "Safari/26.1", "Edg/142.0", "Chrome/141.0 Mobile"}
	lines := make([][]string, 3*3600) // by second
	add := func(second int, ip, method, path, status, agent string) {
		lines[second] = append(lines[second], request(second, ip, method, path, status, agent))
	}
	visit := func(ip, agent string) { // a page every few seconds
		for second := r.IntN(len(lines) - 600); r.IntN(12) > 0; second += 2 + r.IntN(30) {
			path := fmt.Sprintf("/shop/%d", r.IntN(40))
			add(second, ip, "GET", path, []string{"200", "200", "304"}[r.IntN(3)], agent)
			if r.IntN(8) == 0 {
				add(second+1, ip, "POST", "/cart", "302", agent)
			}
		}
	}
	for client := range 80 {
		visit(fmt.Sprintf("203.0.113.%d", client), agents[client%len(agents)])
	}
	for person := range 160 {
		visit("192.0.2.1", fmt.Sprintf("%s.%d", agents[person%len(agents)], person%23))
	}
	for second := 0; second < len(lines); second += 2 {
		add(second, "192.0.2.77", "GET", "/price.json", "200", "python-requests/2.31")
	}
	for second := range 300 {
		for i := range 9 {
			path := fmt.Sprintf("/%s%d", []string{"admin", "backup", "wp-login.php?", ".env"}[i%4], r.IntN(500))
			add(3600+second, "198.51.100.7", []string{"GET", "HEAD", "PROPFIND"}[i%3], path, "404", "sqlmap/1.8")
		}
	}
	return strings.Join(slices.Concat(lines...), "")
}

// pageOf returns the page of a log without its scripts and data.
func pageOf(t *testing.T, b *Build) string {
	t.Helper()
	d := built(t, b)
	var page bytes.Buffer
	if err := Write(&page, d); err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(page.String(), `<script type="application/json"`)
	return text
}

// The page tells a scanner, an office and a bot apart without a script: by paths, methods, statuses,
// user agents and times. It says which limit is right for which answer about them.
func TestEvidenceTellsKeysApart(t *testing.T) {
	page := pageOf(t, building(KindSize, mixed()))
	for _, want := range []string{
		`<h1 id="answer">First decide about 3 keys</h1>`,
		"The other 72 keys need at most 6/m. 12/m is twice that: a client may be busier than in the log.",
		"<h2>12/m</h2>", "Choose it if none of the keys that stand out may be denied.",
		"Choose it if 198.51.100.7 may be denied, but not 192.0.2.77 and 192.0.2.1.",
		"Choose it if 198.51.100.7 and 192.0.2.77 and 192.0.2.1 may be denied.",
		"Choose it if 198.51.100.7 and 192.0.2.77 and 192.0.2.1 may be denied, and 1 request of 1 other key.",
		"at least three times as much as any key that is not listed here.", "The span is 3h, too short for",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if page := pageOf(t, building(KindReplay, mixed(), parsed(t, "12/m"))); strings.Contains(page, ">spared<") || strings.Contains(page, "Twice what") {
		t.Error("a page of other limits offers one")
	}
	items := strings.Split(page, "<li>")
	for key, wants := range map[string][]string{
		"198.51.100.7": {
			"needs 452/m", "1,129 paths", "/wp-login.php</bdi> (600)", "PROPFIND", "404</bdi> (2,700)", "1 user agent<", "sqlmap/1.8",
			"12 Jan 2026, 01:00 to 01:04", "86.7% by 60/m · 97.4% by 12/m", "by 904/m, which denies nothing",
		},
		"192.0.2.1": {
			"needs 25/m", "41 paths", "/cart</bdi> (214)", "POST", "200</bdi> (1,053)", "108 user agents", "00:02 to 02:50", "14.8% by 12/m", "by 60/m, which denies 2,341 requests of 1 key",
		},
		"192.0.2.77": {
			"needs 30/m", "1 path<", "/price.json</bdi> (5,400)", "1 status<", "python-requests/2.31</bdi> (5,400)", "00:00 to 02:59", "by 60/m, which denies 2,341 requests of 1 key",
		},
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

// What is denied to a key that stands out is exact, also if more keys than are listed are denied more.
func TestEvidenceOfAKeyThatIsNotListed(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for round := range int64(12) {
		for key := range int64(replay.DetailKeys + 100) {
			log.WriteString(line((round*7200+key)*1e6, fmt.Sprint("198.18.", key/250, ".", key%250), "/"))
		}
	}
	log.WriteString(strings.Repeat(line(86_000e6, "198.51.100.7", "/"), 11))
	page := pageOf(t, building(KindReplay, log.String(), headgate.Per(1, 24*time.Hour)))
	for _, want := range []string{"90.9% by 1/d", "10 from 1 key that stands out, and 12,100 from 1,100 of the other 1,100 keys"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page[strings.Index(page, "<h1"):min(len(page), strings.Index(page, "<h1")+1500)])
		}
	}
}

// The names of many keys that stand out are cut, since they are on each card.
func TestListOfKeys(t *testing.T) {
	for want, keys := range map[string]string{
		"a": "a", "a and b": "a b", "a and b and c": "a b c", "a and b and 2 more keys": "a b c d",
	} {
		if got := list(strings.Fields(keys)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// offer is a limit, or a word about one.
var offer = regexp.MustCompile(`\d/\d*[smhd]\b|[Tt]wice|spare[sd]? |class="limit`)

// The answer for each kind of page and log.
func TestAnswer(t *testing.T) {
	ordinary := traffic(3000, 30)
	rounded := strings.Repeat(line(0, "198.18.0.1", "/"), 150)
	for _, c := range []struct {
		name, log string
		limits    string // of a replay
		title     string
		why       string // a part of it
		caution   string
	}{
		{"nothing", "", "", "The logs have no requests", "Choose logs", ""},
		{"little", line(0, "198.18.0.1", "/"), "", "Too few requests to choose a limit", "The logs have 1 request from 1 key.", "fewer than 10 keys"},
		{"ordinary", ordinary, "", "Start with 8/10s", "4/10s is the smallest limit that would have denied none of the 3,000 requests from 41 keys. " +
			"8/10s is twice that: a client may be busier than in the log. No key stands out", ""},
		{"few keys", rounded, "", "Start with 300/s", "150/s is the smallest", "fewer than 10 keys: no key can be said to stand out"},
		{"a limit", ordinary, "3/10s", "3/10s denies 0.5% of the requests", "It would have denied 15 of 3,000 requests (0.5%), from 4 of 41 keys.", ""},
		{"a large limit", ordinary, "9/s", "9/s denies nothing", "9/s would have denied none of the 3,000 requests from 41 keys.", ""},
		{"limits", ordinary, "1/m,9/s,8/s", "Start with 9/s", "9/s is the strictest of these limits that denies at most 0.1% of the requests of the keys. ", ""},
		{"one that denies 0.5%", ordinary, "3/10s,9/s", "Start with 9/s", "denies at most 0.1%", ""},
		{"strict limits", ordinary, "1/m,2/m", "2/m denies the fewest requests", "Each of these limits denies more than 0.1%", ""},
		{"a limit that denies them", mixed(), "12/m", "12/m denies 55.7% of the requests", "It would have denied 6,128 of 10,999 requests (55.7%): " +
			"6,128 from 3 keys that stand out, and none of the other 72 keys. Before you deny a key", ""},
		{"a strict one", mixed(), "5/m", "5/m denies 74.5% of the requests", "and 1 from 1 of the other 72 keys. Before", ""},
		{"two that deny them", mixed(), "12/m,452/m", "First decide about 3 keys", "12/m is the strictest", ""},
	} {
		b := building(KindSize, c.log)
		if c.limits != "" {
			b.Kind = KindReplay
			for l := range strings.SplitSeq(c.limits, ",") {
				b.Limits = append(b.Limits, parsed(t, l))
			}
		}
		d := built(t, b)
		a := d.answer()
		page := pageOf(t, b)
		if c.limits != "" && strings.Contains(a.Why, "--per") {
			t.Errorf("%s: %q, which is no flag of replay", c.name, a.Why)
		}
		if c.limits == "" && strings.Contains(c.title, "to choose a limit") && offer.MatchString(page) {
			t.Errorf("%s: the page offers %q", c.name, offer.FindAllString(page, -1))
		}
		if bot := "198.51.100.7"; strings.Contains(c.log, bot) && !strings.Contains(page, bot) {
			t.Errorf("%s: the page does not describe the key that stands out", c.name)
		}
		if c.caution != "" && strings.Count(page, c.caution[1:]) != 1 {
			t.Errorf("%s: the page says %d times: %s", c.name, strings.Count(page, c.caution[1:]), c.caution)
		}
		if c.caution != "" && strings.Contains(a.Why, "No key stands out") {
			t.Errorf("%s: %q, with %q", c.name, a.Why, c.caution)
		}
		if caution := strings.Join(d.Cautions(), " "); a.Title != c.title || !strings.Contains(a.Why, c.why) || !strings.Contains(caution, c.caution) {
			t.Errorf("%s: %q, %q, caution %q; want %q, %q, %q", c.name, a.Title, a.Why, caution, c.title, c.why, c.caution)
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
