package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// officeLog is an hour of 200 clients, with a bot for ten minutes and an office behind one address.
func officeLog() string {
	var log strings.Builder
	start := time.Date(2026, 11, 10, 22, 0, 0, 0, time.UTC)
	line := func(second int, ip string) {
		at := start.Add(time.Duration(second) * time.Second).Format("02/Jan/2006:15:04:05 -0700")
		fmt.Fprintf(&log, "%s - - [%s] \"GET /p/%d HTTP/1.1\" 200 512 \"-\" \"-\"\n", ip, at, second%7)
	}
	for second := range 6 * 3600 {
		if second%10 == 0 {
			line(second, fmt.Sprintf("203.0.113.%d", second/10%200))
		}
		if second%2 == 0 {
			line(second, "192.0.2.1")
		}
		for i := 0; i < 8 && second/600 == 3; i++ {
			line(second, scanner)
		}
	}
	return log.String()
}

// A limit that denies keys that stand out is not recommended: the reader decides about them, and
// sees what each limit denies to them. One limit, with reserve, denies the bot only. The limit that
// is chosen first is the one that the text of size tries.
func TestReportAsksAboutKeysThatStandOut(t *testing.T) {
	t.Parallel()
	p := openReport(t, writeReport(t, report.Build{Kind: report.KindSize}, officeLog()))
	expect(p, "the answer", `document.querySelector("#answer").textContent`,
		"First decide about 2 keys")
	expect(p, "recommended limits", `document.querySelectorAll(".badge, .best").length`, 0)
	expect(p, "the limit that is chosen",
		`document.querySelector('.pick[aria-pressed="true"]').closest(".limit").querySelector(".label")
			.textContent`, "reserve")
	expect(p, "choices", `[...document.querySelectorAll(".choose")].map((e) => e.textContent)
		.join("\n")`, "Choose it if none of the keys that stand out may be denied.\n"+
		"Choose it if "+scanner+" may be denied, but not 192.0.2.1.\n"+
		"Choose it if "+scanner+" and 192.0.2.1 may be denied.")
	expect(p, "keys", `[...document.querySelectorAll(".evidence h3 bdi")].map((e) => e.textContent)
		.join(" ")`, scanner+" 192.0.2.1")
	expect(p, "what is denied to them", `[...document.querySelectorAll(".evidence dd:nth-last-child(3)")]
		.map((e) => e.textContent.split(" · ").length).join(" ")`, "2 1")
	expect(p, "the card that spares one", `[...document.querySelectorAll("article")].some((e) => e.querySelector(".label").textContent === "spare" &&
		document.querySelector(".evidence li:last-child dd:last-child").textContent.startsWith("by " + e.querySelector(".pick").textContent + ", which denies "))`, true)
}

// The limit with reserve is chosen if no proposal is between keys that stand out, and can be copied.
func TestReportChoosesReserve(t *testing.T) {
	t.Parallel()
	p := openSize(t)
	expect(p, "cards", `[...document.querySelectorAll("article .label")].map((e) => e.textContent)
		.join(" ")`, "careful reserve tight")
	expect(p, "the limit that is chosen", `document.querySelector('.pick[aria-pressed="true"]')
		.closest(".limit").querySelector(".label").textContent`, "reserve")
	expect(p, "limits that are headings, with their names", `[...document.querySelectorAll("article h2 > .pick")]
		.map((e) => e.ariaLabel.replace(/^.*, /, "")).join(" ")`, "careful reserve tight")
	expect(p, "the answer names it, and what is needed", `document.querySelector("#why").textContent
		.match(/need at most (\d+).*\. (\d+).* is twice that/).slice(1).reduce((a, b) => b / a)`, 2)
	expect(p, "denied of other keys", `document.querySelector('.pick[aria-pressed="true"]')
		.closest(".limit").querySelector(".lines dd:last-child").textContent`, "none")
	expect(p, "it can be copied", `document.querySelector("#copy pre").textContent ===
		document.querySelector('.pick[aria-pressed="true"]').textContent`, true)
	expect(p, "the bursts that are enough", `(() => {
		const {rates} = JSON.parse(document.querySelector("#data").textContent).size;
		const at = rates.find((r) => r.rate === document.querySelector("#copy pre").textContent);
		const text = "The burst is how many requests may come at once. At this rate, a burst of " + at.rest[0].point.size + " is enough for all keys but those that stand out, and one of " +
			at.fits[0].point.size.toLocaleString("en") + " for all keys.";
		const note = document.querySelector("#needs [data-part=note]").textContent;
		return note.endsWith(text) ? "" : note + " / " + text;
	})()`, "")
	expect(p, "the button for more keys, while there are none",
		`document.querySelector("#keys .toggle").textContent`, "Show more")
}

// Where no script runs, the head and the notes are as with a script, and nothing is there that is
// empty.
//
// It runs alone: while one tab runs no scripts, others that open do not start theirs.
//
//nolint:paralleltest // see above
func TestReportWithoutScript(t *testing.T) {
	url := writeReport(t, report.Build{Kind: report.KindSize}, officeLog())
	p := openReport(t, url)
	const said = `["#answer", "#why", ".evidence", "#cards", "#facts", "#notes"].map((e) =>
		document.querySelector(e).textContent.replace(/\s+/g, " ")).join("\n")`
	scripted := value[string](p, said)
	p.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(url))
	expect(p, "what is said", said, scripted)
	expect(p, "what is seen", `document.querySelector("#answer").checkVisibility() &&
		document.querySelectorAll("#cards article").length === 3 &&
		document.querySelectorAll(".evidence li").length === 2 &&
		!document.querySelector("main").checkVisibility()`, true)
	p.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false}))
}

// Where the logs do not say which limit to choose, the page shows none, in cards, charts or texts.
func TestReportThatIsUnsure(t *testing.T) {
	t.Parallel()
	const seen = `["article", "#sections"].filter((e) => document.querySelector(e)?.checkVisibility()).join(" ")`
	var hours strings.Builder
	for hour := range 24 {
		fmt.Fprintf(&hours, "203.0.113.%d - - [12/Nov/2026:%02d:05:00 +0000] \"GET / HTTP/1.1\" 200 512 \"-\" \"-\"\n", hour%12, hour)
	}
	expect(openReport(t, writeReport(t, report.Build{Kind: report.KindSize}, hours.String())), "what is seen", seen, "")
	expect(openSize(t), "what is seen of a choice", seen, "article #sections")
}

// yearsLog is two days of traffic, ten years apart.
func yearsLog() string {
	var log strings.Builder
	for _, year := range []int{2015, 2025} {
		start := time.Date(year, 12, 21, 8, 0, 0, 0, time.UTC)
		for i := range 400 {
			at := start.Add(time.Duration(i) * time.Minute).Format("02/Jan/2006:15:04:05 -0700")
			line := fmt.Sprintf("203.0.113.%d - - [%s] \"GET / HTTP/1.1\" 200 512 \"-\" \"-\"\n", i%30, at)
			log.WriteString(strings.Repeat(line, 1+i%3))
		}
	}
	return log.String()
}

// labelsOfCharts records the texts and the lines that are drawn into charts, and where.
const labelsOfCharts = `{
	const {clearRect, fillText, moveTo, lineTo} = CanvasRenderingContext2D.prototype;
	window.drawn = new Map();
	window.lines = new Map();
	CanvasRenderingContext2D.prototype.clearRect = function(...a) {
		if (a[2] >= this.canvas.width) [window.drawn, window.lines].forEach((m) => m.set(this.canvas, []));
		return clearRect.apply(this, a);
	};
	let from;
	CanvasRenderingContext2D.prototype.moveTo = function(x, y) {
		from = [x, y];
		return moveTo.call(this, x, y);
	};
	CanvasRenderingContext2D.prototype.lineTo = function(x, y) {
		window.lines.get(this.canvas)?.push({left: Math.min(x, from[0]), right: Math.max(x, from[0]), top: Math.min(y, from[1]), bottom: Math.max(y, from[1])});
		return lineTo.call(this, x, y);
	};
	CanvasRenderingContext2D.prototype.fillText = function(text, x, y, ...more) {
		const wide = this.measureText(text).width, high = 10 * devicePixelRatio;
		const from = {left: 0, center: .5, right: 1}[this.textAlign] ?? 0;
		const above = {middle: .5, bottom: 1}[this.textBaseline] ?? 0;
		const {e, f} = this.getTransform();
		if (!window.drawn.has(this.canvas)) window.drawn.set(this.canvas, []);
		window.drawn.get(this.canvas).push({text, left: x + e - from * wide,
			right: x + e + (1 - from) * wide, top: y + f - above * high,
			bottom: y + f + (1 - above) * high});
		return fillText.call(this, text, x, y, ...more);
	};
}`

// coveredLabels lists labels of charts that overlap, lie on a line, or leave their chart.
const coveredLabels = `(() => {
	const faults = [];
	for (const [canvas, texts] of window.drawn) {
		if (!canvas.isConnected) continue;
		texts.forEach((a, i) => {
			if (!a.text.trim()) return;
			if (a.left < -1 || a.right > canvas.width + 1) faults.push(a.text + " leaves the chart");
			for (const l of window.lines.get(canvas)) {
				if (l.left < a.right && l.right > a.left && l.top < a.bottom && l.bottom > a.top) {
					faults.push(a.text + " lies on a line");
				}
			}
			for (const b of texts.slice(i + 1)) {
				if (b.text.trim() && Math.min(a.right, b.right) > Math.max(a.left, b.left) &&
					Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top)) {
					faults.push(a.text + " and " + b.text + " overlap");
				}
			}
		});
	}
	return faults.join("\n");
})()`

func TestReportLabelsOfCharts(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"years": writeReport(t, report.Build{
			Kind: report.KindReplay, Limits: limitsOf(t, "1/m", "2/m", "20/m", "21/m", "22/m", "23/m", "24/m"),
		}, yearsLog()),
		"office": writeReport(t, report.Build{
			Kind: report.KindReplay, Limits: limitsOf(t, "8/10s", "9/10s", "10/10s", "11/10s", "12/10s", "13/10s", "70/10s"),
		}, officeLog()),
		"large": writeReport(t, report.Build{
			Kind: report.KindReplay, Limits: limitsOf(t, "9000/15m"),
		}, officeLog()),
		"size": writeReport(t, report.Build{Kind: report.KindSize}, trafficLog()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openReport(t, url, atStart(labelsOfCharts))
			if name == "years" {
				p.namesYears()
			}
			for _, width := range []int64{360, 768, 1440} {
				p.do(chromedp.EmulateViewport(width, 900))
				p.until("the charts have the width", chartsFit)
				if faults := value[string](p, coveredLabels); faults != "" {
					t.Errorf("%d wide:\n%s", width, faults)
				}
			}
			p.do(chromedp.EmulateViewport(718, 1000), media("print", "light"), run(`dispatchEvent(new Event("beforeprint"))`))
			if faults := value[string](p, coveredLabels); faults != "" {
				t.Errorf("on paper:\n%s", faults)
			}
		})
	}
}

// namesYears fails unless the years are on the axis, and the gap between them is named.
func (p *page) namesYears() {
	p.t.Helper()
	expect(p, "years on the axis", `[...window.drawn.get(document.querySelector("#time canvas"))]
		.map((e) => e.text).filter((s) => /^20\d\d$/.test(s)).at(-1)`, "2026") // the last bar ends in it
	if lead := p.text(".caution"); !strings.Contains(lead, "No requests from 2015-12-21 14:39:00 to 2025-12-21 08:00:00 UTC") {
		p.t.Errorf("the gap is not named in %q", lead)
	}
}

// On a phone, the limits are in sight, and a table that is too wide says so.
func TestReportOnAPhone(t *testing.T) {
	t.Parallel()
	p := openReport(t, writeReport(t, report.Build{Kind: report.KindSize}, officeLog()))
	p.do(chromedp.EmulateViewport(360, 900))
	p.until("the charts have the width", chartsFit)
	expect(p, "how far the limits scroll", `(() => { const e = document.querySelector("#limits");
		return e.scrollWidth - e.clientWidth; })()`, 0)
	const silent = `[...document.querySelectorAll(".scroller")].filter((e) => e.checkVisibility() &&
		(e.scrollWidth > e.clientWidth + 1) !== e.parentElement.querySelector(".more-columns")
			.checkVisibility()).length`
	expect(p, "tables that do not say that they scroll", silent, 0)
	expect(p, "tables that scroll", `[...document.querySelectorAll(".more-columns")]
		.some((e) => e.checkVisibility())`, true)
}

// A lockout is the run of denials that a client felt, and when it could have retried: not the
// minutes in which it sent nothing.
func TestReportLockout(t *testing.T) {
	t.Parallel()
	const line = "192.0.2.1 - - [02/Nov/2026:08:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 512 \"-\" \"-\"\n"
	log := fmt.Sprintf(line+line+line+line, 0, 0, 0, 10, 0, 20, 59, 0)
	p := openReport(t, writeReport(t, report.Build{
		Kind: report.KindReplay, Limits: limitsOf(t, "1/m"),
	}, log))
	expect(p, "lockouts", `[...document.querySelectorAll("#keys tbody td:last-child")].map((e) =>
		e.textContent).join(", ")`, "10s, retry 40s later")
}

// The rows of each table add up to what is denied, and nothing is said of what has no row: some of
// the paths that are not listed are denied, others are not.
func TestReportCountsPaths(t *testing.T) {
	t.Parallel()
	const line = "192.0.2.%d - - [02/Nov/2026:08:00:00 +0000] \"GET /%s HTTP/1.1\" 200 512 \"-\" \"-\"\n"
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, line, 1, fmt.Sprint("denied", i))
		fmt.Fprintf(&log, line, 2+i, fmt.Sprintf("image/%d", i))
		fmt.Fprintf(&log, line, 2+i, fmt.Sprintf("only%d", i))
	}
	p := openReport(t, writeReport(t, report.Build{
		Kind: report.KindReplay, Limits: limitsOf(t, "5/m"),
	}, log.String()))
	expect(p, "sums", `[...document.querySelectorAll("#groups table")].map((t) => [...t.querySelectorAll("td:nth-child(2)")]
		.reduce((sum, e) => sum + Number(e.textContent), 0)).join(" ")`, "95 95 95")
	expect(p, "the last row", `document.querySelector("#groups tbody tr:last-child").textContent`,
		"other paths, together8084.2%28.1%")
	expect(p, "what is said", `[...document.querySelectorAll("#groups p")].filter((e) => e.checkVisibility()).map((e) => e.textContent).join("\n")`,
		"What has no denied request is not listed.")
}
