package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate"
)

// On a phone the traffic stays in reach, the forms are folded, and both lanes are in view.
func TestStickyBar(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile), calm)
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
		"a burst": func() {
			p.do(run(`document.querySelector("#reset").click()`))
			p.until("it is reset", number("left", "allowed")+` === 0 && !document.querySelector("#status").textContent`)
			p.do(run(`document.querySelector("#burst").value = "1000"; document.querySelector("#send-burst").click()`))
			p.until("it is told", `/\d ALLOWED.*\d ALLOWED/.test(document.querySelector("#status").textContent)`)
			if n := value[int](p, `(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector("#status"))`); n > 0 {
				t.Errorf("%d pixels of what was decided are cut", n)
			}
		},
		"unfolded": func() {
			p.do(run(`document.querySelectorAll(".fold").forEach((e) => { e.open = true; }); document.querySelector("#more").click()`))
		},
		"the tour": func() {
			p.click("#tour-start")
			p.until("it sends", number("left", "allowed")+" > 0")
			if got := value[float64](p, `document.querySelector("#left").getBoundingClientRect().bottom - document.querySelector("#tour").getBoundingClientRect().top`); got > 0 {
				t.Errorf("the tour covers %.0f pixels of the left lane", got)
			}
			if !value[bool](p, `document.querySelector("h1").checkVisibility()`) {
				t.Error("the tour hides the title from screen readers")
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
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
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
	p.enter("#left-limit", strings.Repeat("9", 200))
	p.click(part("left", "apply"))
	p.until("an error", `!document.querySelector("#left-error").hidden`)
	aligned("with an error")
	p.do(run(`document.querySelector("#left [data-fold=limit] summary").click()`))
	p.until("both folds are closed", `document.querySelectorAll("[data-fold=limit][open]").length === 0`)
	aligned("folded")
}
