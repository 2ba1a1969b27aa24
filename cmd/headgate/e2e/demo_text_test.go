package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/headgate/headgate"
)

// The line of a full bucket is where the chart says how many are left: it is not seen through the
// words.
func TestLevelIsNotInItsWords(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), calm, atStart(`{
		const {fillText} = CanvasRenderingContext2D.prototype;
		CanvasRenderingContext2D.prototype.fillText = function(text, x, y, ...more) {
			fillText.call(this, text, x, y, ...more);
			if (!/ left$/.test(text)) return;
			const wide = this.measureText(text).width, ratio = devicePixelRatio;
			const at = [x * ratio, (y - 9) * ratio, wide * ratio, 11 * ratio];
			const copy = new OffscreenCanvas(at[2], at[3]).getContext("2d", {willReadFrequently: true});
			copy.drawImage(this.canvas, ...at, 0, 0, at[2], at[3]);
			const {data} = copy.getImageData(0, 0, at[2], at[3]);
			const probe = document.body.appendChild(document.createElement("p"));
			probe.style.color = "var(--accent)";
			const want = getComputedStyle(probe).color.match(/\d+/g).map(Number);
			probe.remove();
			window.seen = {text, pixels: 0};
			for (let i = 0; i < data.length; i += 4) {
				if (want.every((v, c) => Math.abs(v - data[i + c]) < 12)) window.seen.pixels++;
			}
		};
	}`))
	p.until("the words are drawn", `window.seen?.text === "10 left"`)
	expect(p, "pixels of the line", `window.seen.pixels`, 0)
}

// The text of a limit is not cut on a phone.
func TestTextOfLimitIsWhole(t *testing.T) {
	t.Parallel()
	p := open(t, serveDemo(t, headgate.NewMemory()), chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile), calm)
	p.do(run(`document.querySelector("#left-limit").value = "1000/15m sliding-window";
		document.querySelector("#left [data-part=apply]").click()`))
	p.until("it is applied", `document.querySelector("#left .tag").textContent === "1000/15m sliding-window"`)
	expect(p, "texts that are cut", `[...document.querySelectorAll(".tag")].filter((e) => e.scrollWidth > e.clientWidth).length`, 0)
}
