// The chart of a lane: the tokens that are left, and below them the requests, allowed
// above the line and denied below it. Both share an axis of fifteen seconds.

import { number } from "./format.js";

export const span = 15_000;
const width = 200; // of a bin, in milliseconds
const gap = 12; // between the two parts
const smallest = 1.3; // the radius of a dot; what needs smaller ones is a bar

export class Chart {
  #canvas;
  #colours = {};
  #font = "";
  #hatch;
  #view;

  constructor(canvas) {
    this.#canvas = canvas;
    this.recolour();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    for (const [type, printing] of [["beforeprint", true], ["afterprint", false]]) {
      addEventListener(type, () => this.#print(printing));
    }
  }

  recolour() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["allowed", "denied", "line", "strong-line", "quiet", "accent", "sunk"]) {
      this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.#font = style.fontFamily;
    this.#hatch = undefined;
  }

  // Paper is light, as theme.css has it.
  #print(printing) {
    document.documentElement.toggleAttribute("data-printing", printing);
    this.recolour();
    if (this.#view) this.draw(this.#view);
  }

  // draw shows what is in view: the bins, the points of the level from 0 to 1 and its
  // inflow, the end of the axis, the scale (top), and the period of fixed windows or 0 (edges).
  draw(view) {
    this.#view = view;
    const frame = this.#frame(view);
    if (!frame) return;
    this.#drawGrid(frame);
    this.#drawLevel(frame, view);
    this.#drawEdges(frame, view);
    const labels = [];
    for (const bin of view.bins) this.#drawBin(frame, bin, view, labels);
    this.#drawWords(frame, view, labels);
  }

  #frame({ end, top }) {
    const box = this.#canvas.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    const [w, h] = [this.#canvas.clientWidth, this.#canvas.clientHeight];
    if (box.width === 0) return undefined;
    const [wide, high] = [Math.round(w * ratio), Math.round(h * ratio)];
    if (this.#canvas.width !== wide || this.#canvas.height !== high) {
      [this.#canvas.width, this.#canvas.height] = [wide, high];
    }
    const g = this.#canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    const split = Math.round(h * 0.28);
    const middle = Math.round((split + gap + h) / 2);
    const half = h - middle - 6;
    const step = Math.min(half / top, 11);
    const radius = Math.min((w * width) / span / 2 - 0.3, step / 2 - 0.4, 4.5);
    return { g, w, h, split, middle, half, step, radius, x: (t) => w * (1 - (end - t) / span) };
  }

  #drawGrid({ g, w, h, split, middle }) {
    g.fillStyle = this.#colours.line;
    for (const seconds of [5, 10]) g.fillRect(Math.round((w * seconds) / 15), 0, 1, h);
    g.fillRect(0, split + gap / 2, w, 1);
    g.fillStyle = this.#colours["strong-line"];
    g.fillRect(0, middle - 0.5, w, 1);
  }

  // The level of a bucket that fills is a line, at inflow of its capacity in each
  // millisecond, which falls when requests are allowed. Others go in steps. A point that
  // is held has the level of the point before it.
  #drawLevel({ g, split, x }, { points, inflow, edges }) {
    const y = (level) => split - level * (split - 8);
    const path = new Path2D();
    path.moveTo(x(points[0].at), y(points[0].level));
    for (let i = 1; i < points.length; i++) {
      const [a, b] = [points[i - 1], points[i]];
      const filled = b.held ? a.level : Math.min(1, a.level + inflow * (b.at - a.at));
      const edge = edges && b.level > a.level ? Math.floor(b.at / edges) * edges : b.at;
      const at = Math.max(a.at, edge);
      path.lineTo(x(at), y(inflow ? Math.max(filled, b.level) : a.level));
      path.lineTo(x(at), y(b.level));
      path.lineTo(x(b.at), y(b.level));
    }
    const area = new Path2D(path);
    area.lineTo(x(points.at(-1).at), split + gap / 2);
    area.lineTo(x(points[0].at), split + gap / 2);
    g.fillStyle = this.#colours.accent;
    g.globalAlpha = 0.13;
    g.fill(area);
    g.globalAlpha = 1;
    g.strokeStyle = this.#colours.accent;
    g.lineWidth = 2;
    g.lineJoin = "round";
    g.stroke(path);
  }

  #drawEdges({ g, w, h, x }, { end, edges: period }) {
    if (!period || (w * period) / span < 5) return;
    g.strokeStyle = this.#colours["strong-line"];
    g.lineWidth = 1;
    g.setLineDash([3, 3]);
    g.beginPath();
    for (let t = Math.floor(end / period) * period; t > end - span; t -= period) {
      const at = Math.round(x(t)) + 0.5;
      g.moveTo(at, 0);
      g.lineTo(at, h);
    }
    g.stroke();
    g.setLineDash([]);
  }

  #drawBin(frame, bin, { top }, labels) {
    const { middle, half, radius, x } = frame;
    const at = x(bin.start + width / 2);
    if (at < -10) return;
    for (const [side, n] of [[-1, bin.allowed], [1, bin.denied]]) {
      if (n === 0) continue;
      if (n <= top && radius >= smallest) this.#drawDots(frame, at, side, n);
      else this.#drawBar(frame, bin.start, side, Math.min(n, top) / top);
      if (n > top) labels.push([at, middle + side * half, number(n), side]);
    }
  }

  // Dots are stacked away from the line: discs for allowed, crosses for denied.
  #drawDots({ g, middle, step, radius }, at, side, n) {
    g.fillStyle = this.#colours.allowed;
    g.strokeStyle = this.#colours.denied;
    g.lineWidth = radius < 2.5 ? 1.2 : 2;
    for (let i = 0; i < n; i++) {
      const y = middle + side * (step * (i + 0.5) + 1.5);
      g.beginPath();
      if (side < 0) {
        g.arc(at, y, radius, 0, 2 * Math.PI);
        g.fill();
      } else {
        const arm = radius * 0.85;
        g.moveTo(at - arm, y - arm);
        g.lineTo(at + arm, y + arm);
        g.moveTo(at + arm, y - arm);
        g.lineTo(at - arm, y + arm);
        g.stroke();
      }
    }
  }

  #drawBar({ g, w, middle, half, x }, start, side, share) {
    const wide = Math.max(1.5, (w * width) / span - 1);
    const tall = Math.max(2, share * half); // a few are never none
    g.fillStyle = side < 0 ? this.#colours.allowed : this.#hatched(g);
    g.fillRect(x(start) + 0.5, side < 0 ? middle - tall : middle, wide, tall);
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

  #drawWords({ g, w, h, middle, half, split }, { top, bins, capacity }, labels) {
    const say = (text, x, y, colour, align = "left", weight = 400) => {
      g.font = `${weight} 11px ${this.#font}`;
      g.textAlign = align;
      g.lineJoin = "round";
      g.lineWidth = 7; // no line shows between letters
      g.strokeStyle = this.#colours.sunk;
      g.strokeText(text, x, y);
      g.fillStyle = colour;
      g.fillText(text, x, y);
    };
    const quiet = this.#colours.quiet;
    say(`${number(capacity)} left`, 6, 22, quiet);
    say("0", 6, split + 3, quiet);
    for (const [x, y, text, side] of labels) {
      const colour = this.#colours[side < 0 ? "allowed" : "denied"];
      say(text, Math.min(x, w - 4), y + 4, colour, x > w - 24 ? "right" : "center", 700);
    }
    if (bins.some((bin) => bin.allowed + bin.denied > 0)) {
      say(number(top), 6, middle - half + 8, quiet);
      say(number(top), 6, h - 6, quiet);
      return;
    }
    const { allowed, denied } = this.#colours;
    say("● allowed requests rise here", w / 2, middle - half / 2 + 4, allowed, "center");
    say("× denied requests fall here", w / 2, middle + half / 2 + 4, denied, "center");
  }
}
