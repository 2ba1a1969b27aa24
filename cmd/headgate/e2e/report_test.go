package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

func jsonText(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func openSize(t *testing.T) *page {
	t.Helper()
	return openReport(t, writeReport(t, report.Build{Kind: report.KindSize}, trafficLog()))
}

func TestReportHasAllSections(t *testing.T) {
	t.Parallel()
	p := openSize(t)
	expect(p, "sections", `[...document.querySelectorAll("main section")].filter((e) =>
		e.checkVisibility() && e.querySelector("h2").textContent).map((e) => e.id).join(" ")`,
		"time needs groups keys copy")
	expect(p, "facts", `[...document.querySelectorAll("#facts dt")].map((e) => e.textContent).join(" ")`,
		"Requests Keys Span Busiest second Skipped File")
	expect(p, "the answer", `document.querySelector("#answer").textContent`,
		"First decide about 1 key")
	expect(p, "limits", `document.querySelectorAll("#cards .limit").length`, 3)
	expect(p, "recommended limits", `document.querySelectorAll(".badge").length`, 0)
	expect(p, "who stands out", `document.querySelector(".evidence h3 bdi").textContent`, scanner)
	for _, width := range []int64{360, 768, 1440} {
		p.do(chromedp.EmulateViewport(width, 900))
		expect(p, "the file in one line", `(() => { const name = document.querySelector("#facts > :last-child dd").firstChild, r = document.createRange();
			r.selectNodeContents(name); return name.data.trim() + r.getClientRects().length; })()`, "httpd.sorted.log1")
	}
	// What canvases show is looked at by people; that they show something is counted.
	expect(p, "charts that are blank", `[...document.querySelectorAll(".chart canvas")]
		.filter((c) => {
		const {data} = c.getContext("2d").getImageData(0, 0, c.width, c.height);
		return new Set(new Uint32Array(data.buffer)).size < 4;
	}).length`, 0)
	expect(p, "controls without a name", `[...document.querySelectorAll("input, button")]
		.filter((e) => !e.labels?.length && !e.textContent.trim() && !e.ariaLabel).length`, 0)
}

// denied is the number that a part of the page has for what a limit denies.
const (
	deniedInChart = `document.querySelectorAll("#time .chart-legend b")[1].textContent`
	deniedInCard  = `document.querySelector('.pick[aria-pressed="true"]').closest(".limit")
		.querySelector(".lines dd").textContent.split(" ")[1]`
)

func TestReportFollowsTheLimit(t *testing.T) {
	t.Parallel()
	p := openSize(t)
	limits := value[[]string](p, `[...document.querySelectorAll("#cards .pick")]
		.map((e) => e.textContent)`)
	seen := map[string]bool{}
	for i, limit := range limits {
		p.do(run(fmt.Sprintf(`document.querySelectorAll("#limits input")[%d].click()`, i)))
		p.until(limit+" is chosen", `[...document.querySelectorAll(".of")].every((e) =>
			e.textContent === `+quoted(limit)+`)`)
		expect(p, "the text to copy", `document.querySelector(".copy-limit pre").textContent`,
			limit)
		denied := value[string](p, deniedInCard)
		expect(p, "what "+limit+" denies", deniedInChart, denied)
		seen[denied] = true
		if denied == "0" {
			expect(p, "denied keys", `document.querySelector("#keys .lead").textContent`,
				limit+" denies no key.")
			continue
		}
		expect(p, "the key denied most", `document.querySelector("#keys tbody th").textContent`,
			scanner)
		expect(p, "the first path", `document.querySelector("#groups tbody th").textContent[0]`, "/")
	}
	if len(seen) != len(limits) {
		t.Errorf("the limits deny %v", seen)
	}
	// A card chooses its limit, too.
	p.click("#cards .limit:first-child .pick")
	p.until("the control follows", `document.querySelector("#limits input").checked`)
}

func TestReportSearchesAndSortsKeys(t *testing.T) {
	t.Parallel()
	p := openReport(t, writeReport(t, report.Build{
		Kind: report.KindReplay, Limits: limitsOf(t, "3/m"),
	}, trafficLog()))
	const rows = `document.querySelectorAll("#keys tbody tr").length`
	all := value[int](p, rows)
	p.enter("#search", "198.51.100")
	p.until("one key is found", rows+" === 1")
	expect(p, "the number of keys found", `document.querySelector("#keys .found").textContent`, "1 key found")
	p.enter("#search", "nobody")
	p.until("no key is found", rows+" === 0")
	p.do(run(`{const s = document.querySelector("#search"); s.value = "";
		s.dispatchEvent(new Event("input", {bubbles: true}))}`))
	p.until("all keys are back", fmt.Sprint(rows, " === ", all))

	keys := `[...document.querySelectorAll("#keys tbody th")].map((e) => e.textContent)`
	const order = `document.querySelector("#keys thead th").ariaSort`
	p.do(chromedp.Focus(chromedp.CSS("#keys thead th:first-child .sort")))
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("it is sorted by key", order+` === "ascending"`)
	expect(p, "the keys go up", keys+`.every((k, i, all) => i === 0 || all[i - 1] < k)`, true)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("it is turned around", order+` === "descending"`)
	expect(p, "the keys go down", keys+`.every((k, i, all) => i === 0 || all[i - 1] > k)`, true)
	p.do(run(`document.querySelector("#keys .toggle").click()`))
	p.until("more keys are shown", fmt.Sprint(rows, " > ", all))
}

func TestReportCopies(t *testing.T) {
	t.Parallel()
	p := openSize(t)
	p.do(run(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`))
	for _, field := range []string{"limit", "go", "yaml"} {
		button := ".copy-" + field + " .copy"
		p.click(button)
		p.until(field+" is copied",
			`window.copied === document.querySelector(".copy-`+field+` pre").textContent`)
		expect(p, "the button", `document.querySelector("`+button+`").firstChild.data`, "Copied")
	}
	p.do(run(`navigator.clipboard.writeText = async () => { throw new Error("forbidden"); }`))
	p.click(".copy-yaml .copy")
	p.until("the text is selected", `getSelection().toString().trim() ===
		document.querySelector(".copy-yaml pre").textContent.trim()`)
	expect(p, "the message", `document.querySelector("#said").textContent`, "YAML: selected")
}

func TestReportReadsBarsByKeyboard(t *testing.T) {
	t.Parallel()
	p := openSize(t)
	const when = `document.querySelector("#time .chart-when").textContent`
	const live = `document.querySelector("#time .chart-live").textContent`
	all := value[string](p, when)
	p.do(chromedp.Focus(chromedp.CSS("#time .chart-plot")), chromedp.KeyEvent(kb.ArrowRight))
	p.until("a bar is read", live+`.match(/^2 Nov 2026 .* UTC, allowed \d+, denied \d+$/)`)
	first := value[string](p, live)
	p.do(chromedp.KeyEvent(kb.ArrowRight))
	p.until("so is the next", live+" !== "+quoted(first))
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("all is shown again", when+" === "+quoted(all))
}

func TestReportTakesHostileTextAsText(t *testing.T) {
	t.Parallel()
	by, err := replay.ParseBy("header:key")
	if err != nil {
		t.Fatal(err)
	}
	p := openReport(t, writeReport(t, report.Build{
		Kind: report.KindReplay, Limits: limitsOf(t, "1/m"), Size: replay.SizeConfig{Reading: replay.Reading{By: by}},
	}, hostileLog(t)))
	expect(p, "elements from the log",
		`document.querySelectorAll("img, iframe, main script, th b, figcaption b").length`, 0)
	expect(p, "scripts", `document.scripts.length`, 2)
	const key = `document.querySelector("#keys tbody th bdi")?.textContent`
	p.enter("#search", "<script>")
	p.until("the key is found", key+` === "<script>alert(1)</script>"`)
	p.enter("#search", "gnp.exe")
	p.until("marks of direction are seen", key+` === "\\u202Egnp.exe"`)
	p.enter("#search", "kkkk")
	p.until("a long key is cut", key+`.length === 91`)
	p.click("#keys tbody .more")
	p.until("all of it is shown on demand", key+`.length === 1000`)
}

// TestReportsOfLittle opens reports where there is little or nothing to show.
func TestReportsOfLittle(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(trafficLog(), "\n")
	var oneKey strings.Builder
	for _, line := range lines {
		if strings.HasPrefix(line, scanner+" ") {
			oneKey.WriteString(line)
		}
	}
	for _, c := range []struct {
		name   string
		build  report.Build
		log    string
		answer string
		lead   string // of the section,
		text   string // this
		charts int
	}{
		{
			"no line", report.Build{Kind: report.KindSize}, "",
			"The logs have no requests", "#why", "Choose logs that have requests.", 0,
		},
		{
			"few lines", report.Build{Kind: report.KindSize}, lines[0],
			"Too few requests to choose a limit", "#why", "The logs have 1 request from 1 key.", 0,
		},
		{
			"one line",
			report.Build{Kind: report.KindReplay, Limits: limitsOf(t, "1/s")}, lines[0],
			"Too few requests to choose a limit", "#time .lead",
			"All requests are within 1s, so there is no chart over time.", 1,
		},
		{
			"one key",
			report.Build{Kind: report.KindReplay, Limits: limitsOf(t, "1/s")}, oneKey.String(),
			"1/s denies 60% of the requests", "#keys .lead",
			"1 key of 1 would have been denied at least once. A run is the time " +
				"from the first to the last denial without an allowed request between them. The " +
				"next request would have been allowed so much later.", 2,
		},
		{
			"no denial", report.Build{Kind: report.KindReplay, Limits: limitsOf(t, "1000/s")},
			oneKey.String(), "1000/s denies nothing", "#keys .lead", "1000/s denies no key.", 2,
		},
		{
			"no token bucket",
			report.Build{
				Kind: report.KindReplay, Limits: limitsOf(t, "5/s sliding-log", "9/m fixed-window"),
			},
			trafficLog(), "", "#needs .note",
			"9/m fixed-window denies requests of 1 of 302 keys. It is not a token bucket, so it is not in this chart.", 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := openReport(t, writeReport(t, c.build, c.log))
			if got := p.text("#answer"); c.answer != "" && got != c.answer {
				t.Errorf("the answer is %q, want %q", got, c.answer)
			}
			if got := p.text(c.lead); c.text != "" && got != c.text {
				t.Errorf("%s says %q, want %q", c.lead, got, c.text)
			}
			expect(p, "charts", `[...document.querySelectorAll(".chart-plot")]
				.filter((e) => e.checkVisibility()).length`, c.charts)
			if faults := value[string](p, layoutFaults); faults != "" {
				t.Error(faults)
			}
		})
	}
}
