package e2e

import (
	"testing"

	"github.com/headgate/headgate"
)

// A few bursts do not set the scale for the rest; a lone burst does.
func TestScale(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm)
	p.do(run(`import("/scale.js").then((m) => { window.scaleOf = m.scaleOf; })`))
	p.until("it is loaded", `window.scaleOf`)
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
		if got := value[int](p, `scaleOf([(`+bins+`).map((n) => ({allowed: n, denied: 1}))])`); got != want {
			t.Errorf("%s has the scale %d, want %d", bins, got, want)
		}
	}
}

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
		p.setLimit("left", "7/10s fixed-window")
		p.setLimit("right", "1/s burst 10")
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
