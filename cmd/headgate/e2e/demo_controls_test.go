package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.do(run(`window.copied = []; navigator.clipboard.writeText = async (text) => { copied.push(text); }`))
	for _, what := range []string{"go", "plain"} {
		p.click("#right [data-copy=" + what + "]")
		p.until("it says so", `document.querySelector("#right [data-copy=`+what+`]").textContent === "Copied"`)
	}
	if got := value[string](p, `copied.join("; ")`); got != "headgate.FixedWindow(10, 10*time.Second); 10/10s fixed-window" {
		t.Errorf("copied: %s", got)
	}
}

func TestRateAndSlider(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	told := `document.querySelector("#slider").getAttribute("aria-valuetext")`
	p.until("the rate at first", told+` === "10 per second"`)
	p.do(run(`{const s = document.querySelector("#slider"); s.value = 189; s.dispatchEvent(new Event("input", {bubbles: true}))}`))
	p.until("the slider sets the rate", `document.querySelector("#rate").value === "1000" && `+told+` === "1,000 per second"`)
	p.enter("#rate", "100")
	p.do(chromedp.KeyEvent("\t"))
	p.until("the rate sets the slider", `document.querySelector("#slider").value === "99" && `+told+` === "100 per second"`)

	// Each key on the slider sets another rate.
	p.do(run(`document.querySelector("#slider").focus()`))
	for _, want := range []string{"110", "120", "130"} {
		p.do(chromedp.KeyEvent(kb.ArrowRight))
		p.until("a key sets "+want, `document.querySelector("#rate").value === "`+want+`"`)
	}

	// The stream runs as fast as the rate that it is given while it runs.
	p.click("#stream")
	p.until("it runs", number("right", "denied")+" > 0")
	p.do(run(`{const s = document.querySelector("#slider"); s.value = 279; s.dispatchEvent(new Event("input", {bubbles: true}))}`))
	p.until("it is faster", number("right", "denied")+" > 3000")
	p.enter("#rate", "20")
	p.do(chromedp.KeyEvent("\r"))
	p.until("Enter gives it another rate", told+` === "20 per second"`)
	if value[string](p, `document.querySelector("#stream").getAttribute("aria-pressed")`) != "true" {
		t.Error("Enter in the rate stopped the stream")
	}
	p.click("#stream")

	// The error appears when the field loses the focus, which does not return to it.
	p.enter("#rate", "fast")
	p.do(chromedp.KeyEvent("\t"))
	p.until("the error is shown", `document.querySelector("#traffic-error").textContent === 'Per second: enter a whole number from 1 to 10,000, not "fast".'`)
	if got := value[string](p, `document.activeElement.id`); got != "slider" {
		t.Errorf("the focus is on %s", got)
	}
}
