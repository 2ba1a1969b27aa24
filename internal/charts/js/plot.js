// Plot draws one chart with uPlot in an element, with a legend that shows values, and a cursor for
// mouse and keyboard. The kinds of charts are specs for it:
//
//   label     what the chart shows, for those who do not see it
//   height    of the plot, in CSS pixels
//   range     [min, max] of x
//   view(width)  what to draw in so many pixels: {xs, data, title(i), values(i), at(i), total,
//             totals, top}; data as uPlot's, values and totals as many as the legend has entries
//   legend    [{name, style}]
//   series    uPlot's, without the first
//   xTicks(min, max, n), xLabels(ticks), yTicks(max, n), yLabels(ticks)
//   bare      whether no lines are behind the series, since an overlay has its own
//   overlay(u)  draws above the series
(() => {
  "use strict";
  const { theme, dom: { h } } = window.Charts;
  const PAD = 28; // pixels at the right
  const FONT = "12px system-ui, -apple-system, \"Segoe UI\", Roboto, \"DejaVu Sans\", sans-serif";
  const PAPER = 700; // CSS pixels of the text of a printed page

  class Plot {
    constructor(host, spec) {
      this.host = host;
      this.spec = spec;
      this.build();
      this.watch();
    }

    build() {
      const { spec } = this;
      this.host.replaceChildren();
      this.host.classList.add("chart");
      this.when = h("span", { class: "chart-when" });
      this.values = spec.legend.map(() => h("b"));
      const legend = h("ul", { class: "chart-legend" }, ...spec.legend.map((entry, i) =>
        h("li", {}, theme.swatch(entry.style), h("span", {}, entry.name),
          this.values[i])));
      this.box = h("div", { class: "chart-plot", tabindex: 0, role: "application",
        "aria-roledescription": "chart",
        "aria-label": `${spec.label}. Left and right arrow keys read the values.`,
        keydown: (e) => this.key(e), blur: () => this.point(null) });
      this.live = h("p", { class: "chart-live hidden", role: "status" });
      this.host.append(h("div", { class: "chart-head" }, this.when, legend), this.box, this.live);
    }

    watch() {
      let queued = 0;
      this.observer = new ResizeObserver(() => {
        cancelAnimationFrame(queued);
        queued = requestAnimationFrame(() => {
          if (!theme.printing() && this.width() !== this.u?.width) this.draw();
        });
      });
      this.observer.observe(this.box);
      this.unwatch = theme.onRefresh(() => this.draw());
      this.draw();
    }

    width() {
      const { width } = this.box.getBoundingClientRect();
      return Math.floor(theme.printing() ? Math.min(width, PAPER) : width);
    }

    // draw draws the chart anew, if it has a width.
    draw() {
      const width = this.width();
      if (width < 40) return;
      this.cursor = null;
      this.view = this.spec.view(Math.max(40, width - 60));
      this.u?.destroy();
      this.u = new uPlot(this.options(width), this.view.data, this.box);
      this.show();
    }

    options(width) {
      const { spec } = this;
      const axis = { font: FONT, stroke: () => theme.colour("--quiet"), gap: 6, labelGap: 0,
        grid: { stroke: () => theme.colour("--grid"), width: 1, show: !spec.bare },
        ticks: { show: false } };
      return {
        width, height: spec.height, legend: { show: false }, padding: [14, PAD, 0, 0],
        scales: {
          x: { time: false, range: () => this.spec.range },
          y: { range: () => [0, this.view.top] },
        },
        cursor: {
          y: false, points: { show: false },
          drag: { x: false, y: false },
          move: (u, left, top) => { this.hover(u, left); return [left, top]; },
        },
        series: [{}, ...spec.series],
        axes: [
          { ...axis, size: (u, values) => values?.some((v) => v.includes("\n")) ? 42 : 26,
            grid: { show: false },
            splits: (u, i, min, max) =>
              spec.xTicks(min, max, Math.max(2, Math.floor((u.width - 70) / 76))),
            values: (u, ticks) => this.apart(u, ticks, spec.xLabels(ticks)) },
          { ...axis, size: (u, values) => 14 + 7 * Math.max(3, ...(values ?? []).map((v) =>
              v.length)),
            splits: (u, i, min, max) => spec.yTicks(max, Math.max(2, Math.floor(spec.height / 52))),
            values: (u, ticks) => spec.yLabels(ticks) },
        ],
        hooks: {
          draw: [(u) => spec.overlay?.(u)],
          ready: [(u) => u.over.addEventListener("mouseleave", () => this.point(null))],
        },
      };
    }

    // apart leaves out labels of x that would touch the one before, or leave the chart.
    apart(u, ticks, labels) {
      const [min, max] = this.spec.range, c = u.ctx;
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
      const { view, cursor: at } = this;
      this.when.textContent = at === null ? view.total : view.title(at);
      const values = at === null ? view.totals : view.values(at);
      this.values.forEach((e, i) => { e.textContent = values[i] ?? ""; });
      this.host.classList.toggle("chart-pointed", at !== null);
    }

    key(e) {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const count = this.view?.xs.length ?? 0;
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
      const middle = Math.floor(count / 2);
      if (step && count) {
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
