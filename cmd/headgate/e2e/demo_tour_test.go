package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate"
)

// Every step sets its limits, sends requests and explains them; all by the keyboard.
func TestTour(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.setLimit("left", "1/h burst 9")
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
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
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

// A person takes over from the tour: what stops is the whole script.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), prefers("prefers-reduced-motion", "reduce"))
	p.click("#tour-start")
	p.until("it streams", `document.querySelector("#stream").getAttribute("aria-pressed") === "true"`)
	p.until("it says so", `document.querySelector("#tour-status").textContent.endsWith("decided in the last second")`)
	p.do(run(`document.querySelector("#stream").click()`))
	p.until("it is stopped, and can be played again", `document.querySelector("#stream").getAttribute("aria-pressed") === "false" &&
		!document.querySelector("#tour-again").disabled`)
	if got := p.text("#tour-see"); !strings.HasPrefix(got, "5 a second is too fast.") {
		t.Errorf("it went on to %q", got)
	}
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("Escape leaves", `document.querySelector("#tour").hidden`)
}
