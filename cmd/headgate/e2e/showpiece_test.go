package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate"
)

// counts are the numbers of both lanes, as a person reads them.
const counts = `["left", "right"].flatMap((lane) => ["text", "allowed", "denied", "most", "remaining"].map((part) =>
	document.querySelector("#" + lane + " [data-part=" + part + "]").textContent)).join(" | ")`

// The server has the numbers, so a reload and a second tab show the same.
func TestReloadAndTwoTabsAgree(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url)
	p.setLimit("left", "token-bucket", "10", "1", "1h", "1/h burst 10")
	p.setLimit("right", "sliding-log", "7", "", "1h", "7/h sliding-log")
	p.click("#send-burst")
	p.until("the burst is decided", number("left", "allowed")+" === 10 && "+number("right", "denied")+" === 13")
	const want = "1/h burst 10 | 10 | 10 | 10 of 11 | 0 | 7/h sliding-log | 7 | 13 | 7 of 7 | 0"
	again := open(t, url)
	again.until("the second tab agrees", counts+" === "+quoted(want))
	again.do(run(pixels))
	again.until("it has the past, too", `pixels("left", "allowed")[0] > 20 && pixels("left", "denied")[1] > 20`)
	p.do(chromedp.Navigate(url + "/?again"))
	p.until("it is loaded again", `document.documentElement.dataset.ready === "true" && location.search === "?again"`)
	p.until("the first tab agrees after a reload", counts+" === "+quoted(want))

	again.click("#one")
	p.until("the first tab sees what the second sends", number("left", "denied")+" === 11 && "+number("right", "denied")+" === 14")
	again.setLimit("left", "fixed-window", "5", "", "1h", "5/h fixed-window")
	p.until("it says that the limit was changed", `document.querySelector("#status").textContent === "The left limit was changed in another tab or program to 5/h fixed-window"`)
	again.click("#reset")
	p.until("a reset is one for all", counts+` === "5/h fixed-window | 0 | 0 | – | 5 | 7/h sliding-log | 0 | 0 | – | 7"`)
}

// Every step sets its limits, sends requests and explains them; all by the keyboard.
func TestTour(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.setLimit("left", "token-bucket", "9", "1", "1h", "1/h burst 9")
	p.click("#tour-start")
	for i, step := range []struct{ title, left string }{
		{"Token bucket", "2/s burst 10"},
		{"Stepped bucket", "8/4s stepped"},
		{"Fixed window", "10/5s fixed-window"},
		{"Sliding window", "10/5s sliding-window"},
		{"Sliding log", "10/5s sliding-log"},
	} {
		if i > 0 {
			p.do(chromedp.KeyEvent(kb.ArrowRight))
		}
		p.until("the step "+step.title, `document.querySelector("#tour-title").textContent === `+quoted(step.title)+
			` && document.querySelector("#tour-count").textContent === "`+strconv.Itoa(i+1)+` of 5"`)
		p.until("its limit", `document.querySelector(`+quoted(part("left", "text"))+`).textContent === `+quoted(step.left))
		if got := value[string](p, `document.activeElement.id`); got != "tour-title" {
			t.Errorf("%s: the focus is on %s", step.title, got)
		}
		p.until("it sends requests", number("left", "allowed")+" > 0")
		p.until("it explains them", `document.querySelector("#tour-see").textContent.length > 20`)
		if !value[bool](p, `document.querySelector(".lanes").getBoundingClientRect().top < innerHeight / 2`) {
			t.Errorf("%s: the lanes are not in view", step.title)
		}
	}
	p.do(chromedp.KeyEvent(kb.ArrowLeft))
	p.until("back", `document.querySelector("#tour-title").textContent === "Sliding window"`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("Escape leaves", `document.querySelector("#tour").hidden && document.activeElement.id === "tour-start"`)
	p.until("the limits are those of before", `document.querySelector(`+quoted(part("left", "text"))+`).textContent === "1/h burst 9"`)
	p.until("and nothing is sent any more", number("left", "allowed")+` === 0 && document.querySelector("#stream").getAttribute("aria-pressed") === "false"`)
	if got := p.text("#traffic-error"); got != "" {
		t.Errorf("it complains: %s", got)
	}
}

func TestTourToItsEnd(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.click("#tour-start")
	p.click("#tour-dots li:nth-child(5) button")
	p.until("the last step", `document.querySelector("#tour-next-label").textContent === "Finish"`)
	p.until("it is played", `!document.querySelector("#tour-again").disabled`)
	if got := p.text("#tour-see"); !strings.HasPrefix(got, "Use it for") {
		t.Errorf("it ends with %q", got)
	}
	p.click("#tour-again")
	p.until("it plays again", number("left", "allowed")+` === 10 && document.querySelector("#tour-again").disabled`)
	p.click("#tour-next")
	p.until("the page is as before", `document.querySelector("#tour").hidden && document.querySelector(`+quoted(part("left", "text"))+`).textContent === "1/s burst 10"`)
}

// A link carries the limits and the numbers of the traffic.
func TestLink(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url)
	p.do(run(`window.copied = []; navigator.clipboard.writeText = async (text) => { copied.push(text); }`))
	p.setLimit("left", "stepped", "8", "3", "10m", "3/10m burst 8 stepped")
	p.setLimit("right", "sliding-window", "7", "", "1h", "7/h sliding-window")
	p.enter("#burst", "33")
	p.enter("#rate", "44")
	p.click("#copy-link")
	p.until("it says so", `document.querySelector("#copy-link").textContent === "Copied"`)
	link := value[string](p, `copied[0]`)
	if want := url + "/#left=3/10m+burst+8+stepped&right=7/h+sliding-window&burst=33&rate=44"; link != want {
		t.Fatalf("the link is %s, want %s", link, want)
	}
	fresh := serveDemo(t, headgate.NewMemory())
	again := open(t, fresh+strings.TrimPrefix(link, url))
	const restored = `["#left [data-part=text]", "#right [data-part=text]"].map((s) => document.querySelector(s).textContent)
		.concat(["#burst", "#rate", "#slider"].map((s) => document.querySelector(s).value)).join(" | ")`
	if got := value[string](again, restored); got != "3/10m burst 8 stepped | 7/h sliding-window | 33 | 44 | 43" {
		t.Errorf("the link restores %s", got)
	}
	if got := value[string](again, `location.href`); got != fresh+"/" {
		t.Errorf("the address is %s, and a reload would begin again", got)
	}
	again.do(run(`location.hash = "#right=1/d"`))
	again.until("a link in the same tab", `document.querySelector("#right [data-part=text]").textContent === "1/d"`)
}

func TestBadLink(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url+"/#left=10/y")
	if got := p.text("#traffic-error"); !strings.HasSuffix(got, `: the left limit "10/y": period is "y"; want a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w)`) {
		t.Errorf("the address of the page: %s", got)
	}
	for link, why := range map[string]string{
		"#left=10/x":                      `the left limit "10/x": period is "x"; want a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w)`,
		"#left=5/s&right=0/s":             `the right limit "0/s": count is 0; want more than 0`,
		"#left=5/s&speed=9":               `it names "speed"; want left, right, burst and rate`,
		"#left=5/s&burst=many":            `burst is "many"; want a whole number from 1 to 10000`,
		"#rate=10001":                     `rate is "10001"; want a whole number from 1 to 10000`,
		"#left=5/s&left=6/s":              `it names left twice`,
		"#left=%3Cimg+src%3Dx%3E&rate=10": `the left limit is "<img src=x>"; want a count and a period, such as 100/m`,
	} {
		p.do(run(`document.querySelector("#traffic-error").textContent = ""; location.hash = ` + quoted(link)))
		p.until("the error is shown", `document.querySelector("#traffic-error").textContent !== ""`)
		got, want := p.text("#traffic-error"), "The link is not valid, so the limits are unchanged: "+why
		if strings.Contains(link, "%3C") { // which words the parser chooses is its own business
			got, want = got[:min(len(got), 80)], want[:80]
		}
		if got != want {
			t.Errorf("%s: %s\nwant %s", link, got, want)
		}
		if got := value[string](p, counts); got != "1/s burst 10 | 0 | 0 | – | 10 | 10/10s fixed-window | 0 | 0 | – | 10" {
			t.Errorf("%s: %s", link, got)
		}
		if n := value[int](p, `document.querySelectorAll(".problem:not([hidden])").length + document.querySelectorAll("img").length`); n != 2 {
			t.Errorf("%s: %d messages and images, want one of each", link, n)
		}
	}
}

// On a phone the traffic stays in reach, the forms are folded, and both lanes are in view.
func TestStickyBar(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	if n := value[int](p, `document.querySelectorAll(".fold[open]").length`); n != 0 {
		t.Errorf("%d folds are open", n)
	}
	if got := value[float64](p, `document.querySelector("#right").getBoundingClientRect().bottom - document.querySelector("#left").getBoundingClientRect().top +
		document.querySelector("#traffic").offsetHeight`); got > 844 {
		t.Errorf("the bar and both lanes are %.0f high", got)
	}
	if got := value[int](p, `document.documentElement.scrollHeight`); got > 2200 {
		t.Errorf("the page is %d high", got)
	}
	p.do(run(`scrollTo(0, document.documentElement.scrollHeight)`))
	p.until("it is scrolled", `scrollY > 500`)
	for _, id := range []string{"one", "send-burst", "stream"} {
		if !value[bool](p, `(() => { const r = document.querySelector("#`+id+`").getBoundingClientRect();
			return r.top >= 0 && r.bottom < 80 && document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2).closest("button").id === "`+id+`"; })()`) {
			t.Errorf("%s is out of reach", id)
		}
	}
	p.click("#one")
	p.until("it sends", number("left", "allowed")+" === 1")
	p.click("#more")
	p.until("the numbers unfold", `document.querySelector("#burst").getBoundingClientRect().height > 20 && document.querySelector("#edge").getBoundingClientRect().height > 20`)
}

// No state of the page is wider than a small phone.
func TestSmallPhone(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	for what, do := range map[string]func(){
		"at first": func() {},
		"a stream": func() { p.click("#stream"); p.until("it runs", number("left", "denied")+" > 0"); p.click("#stream") },
		"unfolded": func() {
			p.do(run(`document.querySelectorAll(".fold").forEach((e) => { e.open = true; }); document.querySelector("#more").click()`))
		},
		"the tour": func() {
			p.click("#tour-start")
			p.until("it sends", number("left", "allowed")+" > 0")
			if got := value[float64](p, `document.querySelector("#left").getBoundingClientRect().bottom - document.querySelector("#tour").getBoundingClientRect().top`); got > 0 {
				t.Errorf("the tour covers %.0f pixels of the left lane", got)
			}
			p.do(chromedp.KeyEvent(kb.Escape))
		},
	} {
		do()
		if w := value[int](p, `document.documentElement.scrollWidth`); w > 360 {
			t.Errorf("%s: the page is %d wide", what, w)
		}
	}
}

// What is side by side stays in line, whatever one lane has to say.
func TestLanesStayAligned(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	const tops = `["bar", "timeline", "most-box", "form", "go"].map((part) =>
		["left", "right"].map((lane) => document.querySelector("#" + lane + " [data-part=" + part + "]").getBoundingClientRect().top))
		.filter(([left, right]) => Math.abs(left - right) > 1).length`
	aligned := func(what string) {
		t.Helper()
		if n := value[int](p, tops); n != 0 {
			t.Errorf("%s: %d parts are out of line", what, n)
		}
	}
	aligned("at first")
	p.enter("#left-capacity", strings.Repeat("9", 200))
	p.click(part("left", "apply"))
	p.until("an error", `!document.querySelector("#left-error").hidden`)
	aligned("with an error")
	p.do(run(`document.querySelector("#left [data-fold=limit] summary").click()`))
	p.until("both folds are closed", `document.querySelectorAll("[data-fold=limit][open]").length === 0`)
	aligned("folded")
}

// A few bursts do not set the scale for the rest; a lone burst does.
func TestScale(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	for bins, want := range map[string]int{
		"[]":                                10,
		"[3, 8]":                            10,
		"[20]":                              20,
		"[500]":                             500,
		"[500, 1, 2]":                       500,
		"Array(20).fill(2)":                 10,
		"[...Array(40).fill(2), 500]":       10,
		"[...Array(40).fill(40), 500, 450]": 100,
		"Array(20).fill(2000)":              2000,
	} {
		p.do(run(`window.scale = 0; import("/scale.js").then((m) => { scale = m.scaleOf([(` + bins + `).map((n) => ({allowed: n, denied: 1}))]); })`))
		p.until("it is known", `scale > 0`)
		if got := value[int](p, `scale`); got != want {
			t.Errorf("%s has the scale %d, want %d", bins, got, want)
		}
	}
}

// The page names the endpoints for programs, at its own address, and they respond.
func TestEndpointsAreNamed(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url)
	text := strings.Join(strings.Fields(p.text(".help")), " ")
	for _, want := range []string{"curl -X POST " + url + "/test", url + "/config", "POST /config changes the left limit to a stepped bucket"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	p.do(run(`fetch("/config", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"capacity": 5, "refill_interval": 3600}'})`))
	p.until("the page shows it", `document.querySelector(`+quoted(part("left", "text"))+`).textContent === "1/h burst 5 stepped"`)
	p.do(run(`fetch("/test", {method: "POST"})`))
	p.until("it counts", number("left", "allowed")+" === 1 && "+number("right", "allowed")+" === 0 && "+number("left", "remaining")+" === 4")
}

// Where a page may not copy, the link is in the address.
func TestLinkThatCannotBeCopied(t *testing.T) {
	t.Parallel()
	url := serveDemo(t, headgate.NewMemory())
	p := open(t, url)
	p.do(run(`navigator.clipboard.writeText = async () => { throw new Error("no"); }`))
	p.click("#one")
	p.until("it counts", number("left", "allowed")+" === 1")
	p.click("#copy-link")
	p.until("it says so", `document.querySelector("#copy-link").textContent === "Copy the address"`)
	if got := value[string](p, `location.href`); got != url+"/#left=1/s+burst+10&right=10/10s+fixed-window&burst=20&rate=10" {
		t.Errorf("the address is %s", got)
	}
	if got := value[int](p, number("left", "allowed")); got != 1 {
		t.Errorf("%d are allowed, want 1: nothing begins again", got)
	}
}

// A person takes over from an example: what stops is the whole script.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), prefers("prefers-reduced-motion", "reduce"))
	p.click("#tour-start")
	p.until("it streams", `document.querySelector("#stream").getAttribute("aria-pressed") === "true"`)
	p.do(run(`document.querySelector("#stream").click()`))
	p.until("it is stopped, and can be played again", `document.querySelector("#stream").getAttribute("aria-pressed") === "false" &&
		!document.querySelector("#tour-again").disabled`)
	if got := p.text("#tour-see"); !strings.HasPrefix(got, "5 a second is too fast.") {
		t.Errorf("it went on to %q", got)
	}
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("Escape leaves", `document.querySelector("#tour").hidden`)
}
