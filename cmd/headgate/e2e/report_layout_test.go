package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// layoutFaults lists what is wider than its place, leaves its card, or covers other text. Text in a
// box that scrolls counts as far as it is in sight; text in charts is drawn, and not found here.
const layoutFaults = `(() => {
	const faults = [], root = document.documentElement;
	const short = (e) => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40);
	if (root.scrollWidth > root.clientWidth) {
		faults.push("the page is " + root.scrollWidth + " wide, of " + root.clientWidth);
	}
	const seen = (e) => e.checkVisibility({visibilityProperty: true}) &&
		!e.closest(".hidden, .chart-live, .skip, .chart-plot, svg");
	const scrolls = (e) => /auto|scroll/.test(getComputedStyle(e).overflowX);
	for (const e of document.body.querySelectorAll("*")) {
		if (seen(e) && !e.matches("main") && !scrolls(e) && getComputedStyle(e).display !== "inline" &&
			e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) {
			faults.push(short(e) + " is " + e.scrollWidth + " wide, of " + e.clientWidth);
		}
	}
	const texts = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const node = walker.currentNode, e = node.parentElement;
		if (!node.data.trim() || !seen(e) || e.closest("script, noscript")) continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		const box = e.closest(".limit, .card, body").getBoundingClientRect();
		const scroller = e.closest(".scroller, .row");
		const clip = scroller && scrolls(scroller) ? scroller.getBoundingClientRect() : box;
		const fixed = Boolean(e.closest(".choice")) ||
			getComputedStyle(e.closest("th") ?? e).position === "sticky";
		for (const r of range.getClientRects()) {
			if (r.right < clip.left + 1 || r.left > clip.right - 1 || r.width < 1) continue;
			if (clip === box && (r.left < box.left - 1 || r.right > box.right + 1)) {
				faults.push(short(e) + " leaves its card");
			}
			texts.push({e, fixed, left: Math.max(r.left, clip.left), top: r.top + 2,
				right: Math.min(r.right, clip.right), bottom: r.bottom - 2});
		}
	}
	texts.sort((a, b) => a.top - b.top);
	texts.forEach((a, i) => {
		for (let k = i + 1; k < texts.length && texts[k].top < a.bottom - 1; k++) {
			const b = texts[k];
			if (a.fixed || b.fixed || a.e === b.e) continue;
			if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
				Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) {
				faults.push(short(a.e) + " and " + short(b.e) + " overlap");
			}
		}
	});
	return faults.slice(0, 20).join("\n");
})()`

func media(name, scheme string) action {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media:    name,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// layoutReports are reports whose texts are long, many, or missing.
func layoutReports(t *testing.T) map[string]string {
	t.Helper()
	byKey, err := replay.ParseBy("header:key")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"size": writeReport(t, report.Build{Kind: report.KindSize}, trafficLog()),
		"days": writeReport(t, report.Build{Kind: report.KindSize}, officeLog()),
		"replay": writeReport(t, report.Build{
			Kind: report.KindReplay, Limits: limitsOf(t, "20/m", "5/s burst 20", "2/m burst 100",
				"3/m burst 9", "4/m burst 8", "5/m burst 7", "6/m burst 6", "7/m burst 5",
				"a-name-of-a-limit-that-is-long=600/15m sliding-window", "1000/h fixed-window"),
		}, trafficLog()),
		"hostile": writeReport(t, report.Build{
			Kind: report.KindReplay, Limits: limitsOf(t, "1/m"), Size: replay.SizeConfig{Reading: replay.Reading{By: byKey}},
		}, hostileLog(t)),
	}
}

// The same page is shown on screens, and then printed.
func TestReportFitsIntoItsWindow(t *testing.T) {
	t.Parallel()
	for name, url := range layoutReports(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openReport(t, url)
			p.fitsScreens()
			p.fitsPaper()
		})
	}
}

func (p *page) fitsScreens() {
	p.t.Helper()
	for _, width := range []int64{360, 768, 1600} {
		for _, scheme := range []string{"light", "dark"} {
			p.do(chromedp.EmulateViewport(width, 900), media("screen", scheme))
			p.until("the charts have the width", chartsFit)
			if faults := value[string](p, layoutFaults); faults != "" {
				p.t.Errorf("%d wide, %s:\n%s", width, scheme, faults)
			}
		}
	}
}

// chartsFit is true if each chart is as wide as its place.
const chartsFit = `[...document.querySelectorAll(".chart-plot")].every((e) => {
	const chart = e.querySelector(".uplot");
	return !e.checkVisibility() || chart && Math.abs(chart.offsetWidth - e.clientWidth) <= 1;
})`

const ink = `getComputedStyle(document.body).color`

func (p *page) fitsPaper() {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(718, 1000), media("print", "dark"))
	p.do(run(`dispatchEvent(new Event("beforeprint"))`))
	p.until("the page is light", ink+` === "rgb(20, 35, 44)"`)
	if faults := value[string](p, layoutFaults); faults != "" {
		p.t.Error(faults)
	}
	expect(p, "controls in sight", `[...document.querySelectorAll(
		"#choice, .copy, .toggle, .more, .search")]
		.filter((e) => e.checkVisibility()).length`, 0)
	expect(p, "parts that are folded",
		`document.querySelectorAll("details:not([open])").length`, 0)
	expect(p, "rows that are hidden", `[...document.querySelectorAll("tbody tr")]
		.filter((e) => !e.checkVisibility()).length`, 0)
	expect(p, "charts that are wider than paper", `[...document.querySelectorAll(".uplot")]
		.filter((e) => e.offsetWidth > 718).length`, 0)
	p.do(run(`dispatchEvent(new Event("afterprint"))`), media("screen", "dark"))
	p.until("the page is dark again", ink+` === "rgb(230, 238, 242)"`)
}

// TestReportAsPDF prints a report as a browser does for its user.
func TestReportAsPDF(t *testing.T) {
	t.Parallel()
	p := openReport(t, writeReport(t, report.Build{Kind: report.KindSize}, trafficLog()))
	yes := true
	pdf, err := chromedp.Call(p.tab, cdppage.PrintToPDF, cdppage.PrintToPDFParams{
		PrintBackground: &yes, PaperWidth: 8.27, PaperHeight: 11.69,
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages := strings.Count(string(pdf.Data), "/Type /Page\n"); pages < 3 || pages > 12 {
		t.Errorf("the report has %d pages, want 3 to 12", pages)
	}
	p.until("the screen is as before", `!("printing" in document.documentElement.dataset)`)
}

// hostileLog has keys, paths and methods that would be more than text in a careless page.
func hostileLog(t *testing.T) string {
	t.Helper()
	texts := []string{
		"<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "<b>bold</b>",
		"\u202egnp.exe", "\u05d0\u05d1\u05d2", "{{data}}", `"onmouseover="alert(1)`, "a\tb",
		strings.Repeat("k", 1000), strings.Repeat("long words ", 300), "\u2028", "&amp;",
	}
	var log strings.Builder
	for i := range 240 {
		text := texts[i%len(texts)]
		fmt.Fprintf(&log, `{"time":"2026-11-02T08:%02d:%02dZ","ip":"203.0.113.9","key":%s,"path":%s,`+
			`"method":%s,"status":200}`+"\n", i/60, i%60, jsonText(t, text), jsonText(t, "/"+text),
			jsonText(t, text[:min(len(text), 20)]))
	}
	return log.String()
}
