package e2e

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate"
)

// pixels counts the pixels of the requests in a lane's chart that have the colour of a
// custom property: above the line in the middle and below it.
const pixels = `window.pixels = (lane, name) => {
	const canvas = document.querySelector("#" + lane + " canvas");
	const probe = document.body.appendChild(document.createElement("p"));
	probe.style.color = "var(--" + name + ")";
	const want = getComputedStyle(probe).color.match(/\d+/g).map(Number);
	probe.remove();
	const { width, height } = canvas;
	const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
	copy.drawImage(canvas, 0, 0);
	const { data } = copy.getImageData(0, 0, width, height);
	const found = [0, 0];
	const ratio = devicePixelRatio, split = Math.round(height / ratio * .28);
	const middle = Math.round((split + 12 + height / ratio) / 2) * ratio;
	for (let i = 0; i < data.length; i += 4) {
		const y = Math.floor(i / 4 / width);
		if (y < split * ratio + 8 || Math.abs(y - middle) < 2 || data[i + 3] < 200) continue;
		if (want.every((v, c) => Math.abs(v - data[i + c]) < 12)) found[y < middle ? 0 : 1]++;
	}
	return found;
}`

func TestTimeline(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		p := open(t, serveDemo(t, headgate.NewMemory()), prefers("prefers-color-scheme", scheme))
		p.do(run(pixels))
		p.setLimit("left", "fixed-window", "7", "", "10s", "7/10s fixed-window")
		p.setLimit("right", "token-bucket", "10", "1", "1s", "1/s burst 10")
		const colours = `["allowed", "denied"].map((c) => pixels("left", c) + "," + pixels("right", c)).join(" ")`
		p.until("it is drawn", `pixels("left", "allowed")[0] > 0`)
		empty := value[string](p, colours)
		p.until(scheme+": the edges of windows are drawn, and on the left alone",
			`pixels("left", "strong-line")[0] > 30 && pixels("left", "strong-line")[1] > 30 && pixels("right", "strong-line")[0] === 0`)
		p.enter("#burst", "11")
		p.click("#send-burst")
		p.until(scheme+": what is allowed is above the line and what is denied below",
			`pixels("left", "allowed")[0] > 20 && pixels("left", "denied")[1] > 5 && pixels("left", "allowed")[1] === 0 && pixels("left", "denied")[0] === 0`)
		p.enter("#burst", "100")
		p.click("#send-burst")
		p.until(scheme+": many are bars", `pixels("right", "denied")[1] > 20`)
		p.click("#reset")
		p.until(scheme+": nothing is left of them after a fresh start",
			colours+` === `+quoted(empty))
	}
}

// Between two answers of the server the level rises by itself.
func TestLevelBetweenAnswers(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.setLimit("left", "token-bucket", "1000", "100", "1s", "100/s burst 1000")
	p.enter("#burst", "1000")
	p.click("#send-burst")
	p.until("it is taken", number("left", "allowed")+" === 1000")
	p.do(run(`window.fetch = () => new Promise(() => {}); window.levels = new Set();
		(function frame() { levels.add(` + number("left", "remaining") + `); requestAnimationFrame(frame); })()`))
	p.until("many levels are shown without an answer", `levels.size > 8`)
}

func TestExamples(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	for _, c := range []struct {
		name  string
		texts [2]string
	}{
		{"fast", [2]string{"1/s burst 10", "10/10s fixed-window"}},
		{"refill", [2]string{"10/2s burst 20 stepped", "10/2s burst 20"}},
		{"edge", [2]string{"10/5s fixed-window", "10/5s sliding-log"}},
		{"sliding", [2]string{"20/5s sliding-window", "20/5s sliding-log"}},
	} {
		name, texts := c.name, c.texts
		p.click("[data-example=" + name + "]")
		for i, lane := range []string{"left", "right"} {
			p.until(name+" on the "+lane, `document.querySelector(`+quoted(part(lane, "text"))+`).textContent === `+quoted(texts[i]))
		}
		p.until(name+" sends requests by itself", number("left", "allowed")+" > 0 && "+number("right", "allowed")+" > 0")
		if pressed := value[string](p, `[...document.querySelectorAll(".chip[aria-pressed=true]")].map((e) => e.dataset.example).join()`); pressed != name && name != "edge" {
			t.Errorf("%s plays, and %q is lit", name, pressed)
		}
	}

	// A second click stops the example, and it sends no more.
	p.click("[data-example=refill]")
	p.until("it streams", `document.querySelector("#stream").getAttribute("aria-pressed") === "true"`)
	p.click("[data-example=refill]")
	p.until("it is stopped", `document.querySelector("#stream").getAttribute("aria-pressed") === "false" && !document.querySelector(".chip[aria-pressed=true]")`)
}

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

// halting is a store that fails for as long as it is told to.
type halting struct {
	headgate.Store

	halted atomic.Bool
}

func (h *halting) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if h.halted.Load() {
		return headgate.Decision{}, errors.New("no route")
	}
	return h.Store.Take(ctx, r)
}

// A store that is gone is told once, and hides nothing that a person did wrong.
func TestLost(t *testing.T) {
	t.Parallel()
	store := &halting{Store: headgate.NewMemory()}
	p := open(t, serveDemo(t, store))
	p.enter("#burst", "many")
	p.click("#send-burst")
	p.until("the error is told", `!document.querySelector("#traffic-error").hidden`)
	p.do(run(`window.written = 0; new MutationObserver((all) => written += all.length).observe(document.querySelector("#lost"), {childList: true, characterData: true, subtree: true})`))
	store.halted.Store(true)
	p.until("it is lost", `document.querySelector("#lost").textContent === "the store is unavailable: no route" && !document.querySelector("#lost").hidden`)
	p.do(run(`window.answers = 0; window.asked = window.fetch;
		window.fetch = async (...all) => { const answer = await asked(...all); answers++; return answer; }`))
	p.until("it has asked again", `answers > 1`)
	if n := value[int](p, `written`); n != 1 {
		t.Errorf("it was told %d times", n)
	}
	store.halted.Store(false)
	p.until("it is found", `document.querySelector("#lost").hidden`)
	if !value[bool](p, `document.querySelector("#traffic-error").textContent.includes("many")`) {
		t.Error("what a person did wrong is hidden")
	}
}

// A state that is older than what is shown, because its answer took longer, is not
// shown.
func TestOldState(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.setLimit("left", "token-bucket", "10", "1", "1h", "1/h burst 10")
	p.do(run(`window.held = []; window.late = true; window.asked = window.fetch;
		window.fetch = async (path, options) => {
			const mine = path === "/api/state" && late;
			if (mine) late = false;
			const answer = await asked(path, options);
			if (mine) await new Promise((go) => held.push(go));
			return answer;
		}`))
	p.until("a state is held back", `held.length === 1`)
	p.click("#one")
	p.until("one is taken", number("left", "remaining")+" === 9")
	p.do(run(`window.seen = new Set(); window.fetch = () => new Promise(() => {}); held[0]();
		(function frame() { seen.add(` + number("left", "remaining") + `); requestAnimationFrame(frame); })()`))
	p.frames(20)
	if got := value[string](p, `[...seen].join()`); got != "9" {
		t.Errorf("it shows %s", got)
	}
}

// Who wishes for less motion sees two pictures a second, and not twenty.
func TestFewerPictures(t *testing.T) {
	t.Parallel()
	for _, motion := range []string{"reduce", "no-preference"} {
		p := open(t, serveDemo(t, headgate.NewMemory()), prefers("prefers-reduced-motion", motion))
		p.do(run(`window.pictures = 0; window.begun = performance.now(); {const clear = CanvasRenderingContext2D.prototype.clearRect;
			CanvasRenderingContext2D.prototype.clearRect = function (...box) { pictures += .5; return clear.apply(this, box); }}`))
		p.until("there are some pictures", `pictures > 2`)
		each := value[float64](p, `(performance.now() - begun) / (pictures + 1)`)
		if fewer := motion == "reduce"; fewer && each < 250 {
			t.Errorf("%s: a picture each %.0f ms", motion, each)
		} else if !fewer {
			p.until("there are more pictures", `pictures > 10`)
		}
	}
}

// A batch that was sent before a reset does not count after it, and a state that is older
// than the one on the page is ignored.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()))
	p.do(run(`window.held = []; window.asked = window.fetch;
		window.fetch = async (path, options) => {
			const answer = await asked(path, options);
			if (path === "/api/requests") await new Promise((go) => held.push(go));
			if (path === "/api/reset") setTimeout(() => (window.wasReset = true), 200);
			return answer;
		}`))
	p.enter("#burst", "100")
	p.click("#send-burst")
	p.until("it is decided", `held.length === 1`)
	p.click("#reset")
	p.until("it was reset", `window.wasReset`)
	p.do(run(`held[0]()`))
	p.frames(20)
	if got := p.text(part("left", "allowed")) + " " + p.text(part("left", "denied")); got != "0 0" {
		t.Errorf("it shows %s", got)
	}
}
