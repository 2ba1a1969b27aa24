package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/headgate/headgate"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
	p.do(run(`window.copied = []; navigator.clipboard.writeText = async (text) => { copied.push(text); }`))
	p.click(part("right", "copy"))
	p.until("it says so", `document.querySelector(`+quoted(part("right", "copy"))+`).textContent === "Copied"`)
	if got := value[string](p, `copied.join("; ")`); got != "headgate.FixedWindow(10, 10*time.Second)" {
		t.Errorf("copied: %s", got)
	}
}

// The stream is as fast as the rate that it is given while it runs.
func TestRate(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
	p.click("#stream")
	p.until("it runs", number("right", "denied")+" > 0")
	p.enter("#rate", "10000")
	p.do(chromedp.KeyEvent("\r"))
	p.until("Enter gives it another rate", number("right", "denied")+" > 3000")
	if value[string](p, `document.querySelector("#stream").getAttribute("aria-pressed")`) != "true" {
		t.Error("Enter in the rate stopped the stream")
	}
	p.click("#stream")

	// The error appears when the field loses the focus, which does not return to it.
	p.enter("#rate", "fast")
	p.do(chromedp.KeyEvent("\t"))
	p.until("the error is shown", `document.querySelector("#traffic-error").textContent === 'Per second: enter a whole number from 1 to 10,000, not "fast".'`)
	if got := value[string](p, `document.activeElement.id`); got != "stream" {
		t.Errorf("the focus is on %s", got)
	}
}
