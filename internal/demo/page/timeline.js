// Draws the last minute of a lane: allowed above the line, denied below it. A few
// requests are drawn one by one, many as bars.

import { span, width } from "./history.js";

const fewest = 5; // the scale never shows less than this
const many = 12; // from this many in one bin on, bars

export class Timeline {
  #canvas;
  #colours = {};
  #hatch;

  constructor(canvas) {
    this.#canvas = canvas;
    this.recolour();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
  }

  recolour() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["allowed", "denied", "line", "strong-line", "quiet"]) {
      this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.#hatch = undefined;
  }

  // draw shows bins as they are at now. top is the scale, edges the period of fixed
  // windows, or 0.
  draw(bins, now, top, edges) {
    const box = this.#canvas.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    const w = Math.round(box.width * ratio);
    const h = Math.round(box.height * ratio);
    if (w === 0) return;
    if (this.#canvas.width !== w || this.#canvas.height !== h) [this.#canvas.width, this.#canvas.height] = [w, h];
    const g = this.#canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, box.width, box.height);
    const frame = { g, w: box.width, h: box.height, x: (t) => box.width * (1 - (now - t) / span) };
    this.#drawEdges(frame, now, edges);
    this.#drawLine(frame);
    for (const bin of bins) {
      if (top < many) this.#drawMarks(frame, bin, top);
      else this.#drawBars(frame, bin, top);
    }
  }

  #drawEdges({ g, w, h, x }, now, period) {
    if (!period || (w * period) / span < 5) return;
    g.strokeStyle = this.#colours["strong-line"];
    g.lineWidth = 1;
    g.setLineDash([3, 3]);
    g.beginPath();
    for (let t = Math.floor(now / period) * period; t > now - span; t -= period) {
      const at = Math.round(x(t)) + 0.5;
      g.moveTo(at, 0);
      g.lineTo(at, h);
    }
    g.stroke();
    g.setLineDash([]);
  }

  #drawLine({ g, w, h }) {
    g.fillStyle = this.#colours["strong-line"];
    g.fillRect(0, h / 2 - 0.5, w, 1);
  }

  // marks are stacked away from the line: rings for allowed, crosses for denied.
  #drawMarks({ g, h, x }, bin, top) {
    const step = (h / 2 - 4) / top;
    const r = Math.min(3.5, step / 2 - 0.5);
    const at = x(bin.start + width / 2);
    g.fillStyle = this.#colours.allowed;
    for (let i = 0; i < bin.allowed; i++) {
      g.beginPath();
      g.arc(at, h / 2 - step * (i + 0.5) - 1, r, 0, 2 * Math.PI);
      g.fill();
    }
    g.strokeStyle = this.#colours.denied;
    g.lineWidth = 2;
    g.beginPath();
    for (let i = 0; i < bin.denied; i++) {
      const y = h / 2 + step * (i + 0.5) + 1;
      g.moveTo(at - r, y - r);
      g.lineTo(at + r, y + r);
      g.moveTo(at + r, y - r);
      g.lineTo(at - r, y + r);
    }
    g.stroke();
  }

  #drawBars({ g, w, h, x }, bin, top) {
    const wide = Math.max(1.5, (w * width) / span - 0.5);
    const scale = (h / 2 - 4) / top;
    const tall = (n) => (n > 0 ? Math.max(2, n * scale) : 0); // some are never none
    g.fillStyle = this.#colours.allowed;
    g.fillRect(x(bin.start), h / 2 - tall(bin.allowed), wide, tall(bin.allowed));
    g.fillStyle = this.#hatched(g);
    g.fillRect(x(bin.start), h / 2, wide, tall(bin.denied));
  }

  #hatched(g) {
    if (!this.#hatch) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 4;
      const t = tile.getContext("2d");
      t.fillStyle = this.#colours.denied;
      t.fillRect(0, 0, 4, 3);
      this.#hatch = g.createPattern(tile, "repeat");
    }
    return this.#hatch;
  }
}

// scaleOf is the scale that fits all bins of all lanes: a round number.
export function scaleOf(lanes) {
  let top = fewest;
  for (const bins of lanes) for (const bin of bins) top = Math.max(top, bin.allowed, bin.denied);
  if (top < many) return top;
  const power = 10 ** Math.floor(Math.log10(top));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= top);
}
