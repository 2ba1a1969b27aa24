// Plot draws one chart with uPlot in an element, with a legend that shows values, a cursor for
// mouse and keyboard, and zoom by drag, keyboard and buttons. The kinds of charts are specs for it:
//
//   label     what the chart shows, for those who do not see it
//   height    of the plot, in CSS pixels
//   full()    [min, max] of x
//   view(min, max, width)  what to draw there: {xs, data, title(i), values(i), at(i), total,
//             totals, top}; data as uPlot's, values and totals as many as the legend has entries
//   legend    [{name, style, kind: "area" or "line"}]
//   series    uPlot's, without the first
//   xTicks(min, max, n), xLabels(ticks), yTicks(max, n), yLabels(ticks)
//   overlay(u, view)  draws above the series
//   zoom      the least width of a zoomed x; 0: no zoom
(() => {
  "use strict";
  const { theme } = window.Charts;
  const PAD = 28; // pixels at the right
  const FONT = "12px system-ui, -apple-system, \"Segoe UI\", Roboto, \"DejaVu Sans\", sans-serif";
  const PAPER = 700; // CSS pixels of the text of a printed page

  function element(name, className, text) {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  }

  class Plot {
    constructor(host, spec) {
      this.host = host;
      this.spec = spec;
      this.range = spec.full();
      this.cursor = null;
      this.build();
      this.watch();
    }

    build() {
      const { spec } = this;
      this.host.replaceChildren();
      this.host.classList.add("chart");
      this.host.classList.toggle("chart-compact", Boolean(spec.compact));
      const head = element("div", "chart-head");
      this.when = element("span", "chart-when");
      this.legend = element("ul", "chart-legend");
      this.values = spec.legend.map((entry) => {
        const item = element("li");
        const value = element("b");
        item.append(theme.swatch(entry.style, entry.kind), element("span", "", entry.name), value);
        this.legend.append(item);
        return value;
      });
      head.append(this.when, this.legend);
      if (spec.zoom) head.append(this.buttons());
      this.box = element("div", "chart-plot");
      this.box.tabIndex = 0;
      this.box.setAttribute("role", "application");
      this.box.setAttribute("aria-roledescription", "chart");
      const zoom = ", plus and minus zoom, shift with an arrow key moves, 0 shows everything";
      this.box.setAttribute("aria-label", `${spec.label}. Left and right arrow keys read the ` +
        `values${spec.zoom ? zoom : ""}.`);
      this.box.addEventListener("keydown", (e) => this.key(e));
      this.box.addEventListener("blur", () => this.point(null));
      this.live = element("p", "chart-live hidden");
      this.live.setAttribute("role", "status");
      this.host.append(head, this.box, this.live);
    }

    buttons() {
      const group = element("div", "chart-buttons");
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", `Zoom: ${this.spec.label}`);
      const add = (text, label, act) => {
        const b = element("button", "", text);
        b.type = "button";
        b.title = label;
        b.setAttribute("aria-label", label);
        b.addEventListener("click", act);
        group.append(b);
        return b;
      };
      this.pans = [["‹", "Earlier", -.5], ["›", "Later", .5]].map(([text, label, part]) =>
        add(text, label, () => this.pan(part)));
      this.less = add("−", "Zoom out", () => this.scale(2));
      this.more = add("+", "Zoom in", () => this.scale(.5));
      this.reset = add("All", "Show everything", () => this.zoom());
      return group;
    }

    watch() {
      let queued = 0;
      this.observer = new ResizeObserver(() => {
        cancelAnimationFrame(queued);
        queued = requestAnimationFrame(() => { if (!theme.printing()) this.draw(); });
      });
      this.observer.observe(this.box);
      this.unwatch = theme.onRefresh(() => this.draw(true));
      this.draw();
    }

    width() {
      const { width } = this.box.getBoundingClientRect();
      return Math.floor(theme.printing() ? Math.min(width, this.spec.paper ?? PAPER) : width);
    }

    // draw draws the chart, if it has a width. A chart that exists is updated.
    draw(anew) {
      const width = this.width();
      if (width < 40) return;
      this.make(width);
      if (anew && this.u) {
        this.u.destroy();
        this.u = null;
      }
      if (!this.u) {
        this.box.replaceChildren();
        this.u = new uPlot(this.options(width), this.view.data, this.box);
      } else {
        if (this.u.width !== width) this.u.setSize({ width, height: this.spec.height });
        this.u.setData(this.view.data, false);
        this.u.setScale("x", { min: this.range[0], max: this.range[1] });
      }
      this.show();
    }

    make(width) {
      this.view = this.spec.view(this.range[0], this.range[1], Math.max(40, width - 60));
    }

    options(width) {
      const { spec } = this;
      const axis = { font: FONT, stroke: () => theme.colour("--quiet"), gap: 6, labelGap: 0,
        grid: { stroke: () => theme.colour("--grid"), width: 1 },
        ticks: { show: false } };
      return {
        width, height: spec.height, legend: { show: false }, padding: [14, PAD, 0, 0],
        scales: {
          x: { time: false, range: () => this.range },
          y: { range: () => [0, this.view.top] },
        },
        cursor: {
          y: false, points: { show: false },
          drag: { x: Boolean(spec.zoom), y: false, setScale: false },
          bind: { dblclick: () => () => { if (spec.zoom) this.zoom(); } },
          move: (u, left, top) => { this.hover(u, left); return [left, top]; },
        },
        series: [{}, ...spec.series],
        axes: [
          { ...axis, size: (u, values) => values?.some((v) => v.includes("\n")) ? 42 : 26,
            grid: { ...axis.grid, show: Boolean(spec.xGrid) },
            splits: (u, i, min, max) =>
              spec.xTicks(min, max, Math.max(2, Math.floor((u.width - 70) / 76))),
            values: (u, ticks) => this.apart(u, ticks, spec.xLabels(ticks)) },
          { ...axis, size: (u, values) => 14 + 7 * Math.max(spec.compact ? 5 : 3,
              ...(values ?? []).map((v) => v.length)),
            splits: (u, i, min, max) => spec.yTicks(max, Math.max(2, Math.floor(spec.height / 52))),
            values: (u, ticks) => spec.yLabels(ticks) },
        ],
        hooks: {
          draw: [(u) => spec.overlay?.(u, this.view, this.cursor)],
          setSelect: [(u) => this.selected(u)],
          ready: [(u) => u.over.addEventListener("mouseleave", () => this.point(null))],
        },
      };
    }

    // apart leaves out labels of x that would touch the one before, or leave the chart.
    apart(u, ticks, labels) {
      const [min, max] = this.range, c = u.ctx;
      const wide = u.bbox.width / uPlot.pxRatio || u.width - 90;
      c.save();
      c.font = FONT;
      let free = -Infinity;
      const kept = labels.map((text, i) => {
        const half = Math.max(...text.split("\n").map((line) => c.measureText(line).width)) / 2;
        const x = (ticks[i] - min) / (max - min) * wide;
        if (x - half < free || x + half > wide + PAD) return "";
        free = x + half + 8;
        return text;
      });
      c.restore();
      return kept;
    }

    selected(u) {
      const { left, width } = u.select;
      if (width < 4) return;
      const from = u.posToVal(left, "x"), to = u.posToVal(left + width, "x");
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      this.zoom(from, to);
    }

    // hover shows the values below the mouse.
    hover(u, left) {
      if (left < 0 || this.pointing) return;
      const x = u.posToVal(left, "x");
      let best = null, distance = Infinity;
      for (let i = 0; i < this.view.xs.length; i++) {
        const d = Math.abs(this.view.at(i) - x);
        if (d < distance) [best, distance] = [i, d];
      }
      if (best !== this.cursor) {
        this.cursor = best;
        this.show();
      }
    }

    // point puts the cursor at an entry of the view, or nowhere.
    point(i, say) {
      this.cursor = i;
      if (this.u) {
        this.pointing = true;
        const left = i === null ? -10 : this.u.valToPos(this.view.at(i), "x");
        this.u.setCursor({ left, top: i === null ? -10 : 10 }, false);
        this.pointing = false;
      }
      this.show();
      if (say && i !== null) this.live.textContent = this.spoken();
      if (i === null) this.live.textContent = "";
    }

    spoken() {
      const values = this.view.values(this.cursor);
      return [this.view.title(this.cursor), ...this.spec.legend.flatMap((entry, i) =>
        values[i] === "" ? [] : [`${entry.name} ${values[i]}`])].join(", ");
    }

    // show writes the values at the cursor, or the sums, into the legend.
    show() {
      const { view } = this;
      if (!view) return;
      if (this.cursor !== null && this.cursor >= view.xs.length) this.cursor = null;
      const at = this.cursor;
      this.when.textContent = at === null ? view.total : view.title(at);
      const values = at === null ? view.totals : view.values(at);
      this.values.forEach((e, i) => { e.textContent = values[i] ?? ""; });
      this.host.classList.toggle("chart-pointed", at !== null);
      if (!this.spec.zoom) return;
      const [min, max] = this.spec.full();
      const all = this.range[0] <= min && this.range[1] >= max;
      for (const b of [...this.pans, this.less, this.reset]) b.setAttribute("aria-disabled", all);
      const least = this.range[1] - this.range[0] <= this.spec.zoom * 1.001;
      this.more.setAttribute("aria-disabled", least);
    }

    // zoom shows x from one value to another; without them, everything.
    zoom(from, to) {
      const [min, max] = this.spec.full();
      if (from === undefined) {
        this.range = [min, max];
      } else {
        const width = Math.min(max - min, Math.max(this.spec.zoom, to - from));
        const start = Math.min(max - width, Math.max(min, (from + to) / 2 - width / 2));
        this.range = [start, start + width];
      }
      this.cursor = null;
      this.draw();
      this.spec.onZoom?.(this.range[0], this.range[1]);
    }

    scale(factor) {
      const [a, b] = this.range;
      const middle = this.cursor === null ? (a + b) / 2 : this.view.at(this.cursor);
      const half = (b - a) * factor / 2;
      this.zoom(middle - half, middle + half);
    }

    pan(part) {
      const [a, b] = this.range;
      const [min, max] = this.spec.full();
      const shift = Math.min(max - b, Math.max(min - a, (b - a) * part));
      if (shift !== 0) this.zoom(a + shift, b + shift);
    }

    key(e) {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const count = this.view?.xs.length ?? 0;
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
      const middle = Math.floor(count / 2);
      if (this.spec.zoom && this.zoomKey(e)) {
        this.live.textContent = `${this.view.total}. ` + this.spec.legend.map((entry, i) =>
          `${entry.name} ${this.view.totals[i]}`).join(", ");
      } else if (step && count) {
        const from = this.cursor ?? (Math.abs(step) > 1 ? middle : middle - step);
        this.point(Math.min(count - 1, Math.max(0, from + step)), true);
      } else if (e.key === "Home" && count) {
        this.point(0, true);
      } else if (e.key === "End" && count) {
        this.point(count - 1, true);
      } else if (e.key === "Escape" && this.cursor !== null) {
        this.point(null);
      } else {
        return;
      }
      e.preventDefault();
    }

    zoomKey(e) {
      if (e.key === "+" || e.key === "=") this.scale(.5);
      else if (e.key === "-" || e.key === "_") this.scale(2);
      else if (e.key === "0") this.zoom();
      else if (e.shiftKey && e.key === "ArrowLeft") this.pan(-.25);
      else if (e.shiftKey && e.key === "ArrowRight") this.pan(.25);
      else return false;
      return true;
    }

    // update draws another spec of the same kind, and keeps the zoom.
    update(spec) {
      const [min, max] = this.spec.full();
      const all = this.range[0] <= min && this.range[1] >= max;
      const same = spec.series.length === this.spec.series.length &&
        spec.legend.every((entry, i) => entry.name === this.spec.legend[i]?.name &&
          entry.style === this.spec.legend[i].style);
      this.spec = spec;
      if (all || !spec.zoom) this.range = spec.full();
      if (!same) {
        const focused = document.activeElement === this.box;
        this.u?.destroy();
        this.u = null;
        this.observer.disconnect();
        this.build();
        this.observer.observe(this.box);
        if (focused) this.box.focus();
      }
      this.draw();
    }

    destroy() {
      this.observer.disconnect();
      this.unwatch();
      this.u?.destroy();
      this.host.replaceChildren();
    }
  }

  window.Charts.Plot = Plot;
  window.Charts.FONT = FONT;
})();
