// Charts.time draws values over time.
//
//   const chart = Charts.time(element, {
//     label: "Requests over time",     // for those who do not see it
//     from: 1766000000, step: 60,      // the first bar, and the width of each, in seconds
//     series: [                        // bars are stacked, the first at the bottom
//       {name: "allowed", style: "allowed", values: [...]},
//       {name: "denied", style: "denied", values: [...]},
//     ],
//     utc: true,                       // else times are of the reader's zone
//     height: 220, zoom: true,
//     onZoom: (from, to) => {},                       // optional
//     compact: true,                                  // optional: a head of one line
//   });
//   chart.update(options); chart.zoom(from, to); chart.zoom(); chart.destroy();
//
// Bars that are too thin to see are put together; zooming in shows them one by one.
(() => {
  "use strict";
  const { theme, format, axis, Plot } = window.Charts;
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
    43200, 86400, 172800, 432000, 864000, 2592000, 7776000, 31536000];

  function time(host, options) {
    const plot = new Plot(host, spec(options));
    return { update: (o) => plot.update(spec(o)), zoom: (a, b) => plot.zoom(a, b),
      destroy: () => plot.destroy(), plot };
  }

  const sum = (values) => values.reduce((a, b) => a + b, 0);

  // widthOf is how many bars are put together, so that at most so many are drawn, of a round width.
  function widthOf(o, shown, most) {
    const round = STEPS.map((s) => s / o.step).filter(Number.isInteger);
    return [1, ...round].find((f) => shown / f <= most) ?? Math.ceil(shown / most);
  }

  // gather puts values from first to last together, so many at a time. first may be below 0.
  function gather(values, first, last, factor) {
    const result = [];
    for (let i = first; i < last; i += factor) {
      result.push(sum(values.slice(Math.max(0, i), Math.min(i + factor, last))));
    }
    return result;
  }

  function spec(o) {
    const count = Math.max(1, ...o.series.map((s) => s.values.length));
    const full = [o.from, o.from + count * o.step];
    return {
      label: o.label, compact: o.compact, height: o.height ?? 220, full: () => full,
      zoom: o.zoom ? o.step * Math.min(8, count) : 0, paper: o.paper, onZoom: o.onZoom,
      legend: o.series.map((s) => ({ name: s.name, style: s.style, kind: "area" })),
      series: o.series.map(barSeries),
      view: (min, max, width) => view(o, count, min, max, width),
      xTicks: (min, max, n) => timeTicks(o, min, max, n),
      xLabels: (ticks) => axis.timeTicks(ticks, o.utc),
      yTicks: (max, n) => axis.linear(0, max, n, true),
      yLabels: (ticks) => ticks.map(axis.short),
    };
  }

  const least = 3; // pixels of a bar

  function view(o, count, min, max, width) {
    const shown = (max - min) / o.step;
    const factor = widthOf(o, shown, width / least);
    // Bars begin at multiples of their width.
    const offset = Number.isInteger(o.from / o.step) ? o.from / o.step % factor : 0;
    const first = Math.floor(((min - o.from) / o.step + offset) / factor) * factor - offset;
    const last = Math.min(count, Math.ceil((max - o.from) / o.step));
    const all = o.series.map((s) => gather(s.values, first, last, factor));
    const xs = [];
    for (let i = first; i < last; i += factor) xs.push(o.from + i * o.step);
    const stacked = [];
    for (const values of all) {
      const below = stacked.at(-1);
      stacked.push(values.map((v, k) => v + (below ? below[k] : 0)));
    }
    const top = stacked.at(-1).reduce((a, b) => Math.max(a, b), 0);
    const width1 = o.step * factor;
    const start = (i) => Math.max(xs[i], o.from);
    const end = (i) => Math.min(xs[i] + width1, o.from + count * o.step);
    return { xs, data: [xs, ...stacked], top: top * 1.06 || 1,
      at: (i) => (start(i) + end(i)) / 2,
      title: (i) => o.compact ? axis.moment(start(i), o.utc) :
        axis.range(start(i), end(i), o.utc),
      values: (i) => all.map((values) => format.number(values[i])),
      total: o.compact ? "" : `${axis.range(min, max, o.utc)}, each bar ${format.span(width1)}`,
      totals: o.series.map((s) => format.number(sum(s.values.slice(
        Math.max(0, Math.floor((min - o.from) / o.step + 1e-6)),
        Math.ceil((max - o.from) / o.step - 1e-6))))) };
  }

  // timeTicks are at most n times from min to max, evenly spaced or at the first of months.
  function timeTicks(o, min, max, n) {
    const fits = TICKS.findIndex((step) => (max - min) / step.seconds <= n);
    const at = fits < 0 ? TICKS.length - 1 : fits;
    const ticks = ticksOf(o, min, max, TICKS[at]);
    if (ticks.length > 1 || at === 0) return ticks;
    const finer = ticksOf(o, min, max, TICKS[at - 1]), each = Math.ceil(finer.length / n);
    return finer.filter((_, i) => i % each === 0);
  }

  const MONTH = 365.25 * 86400 / 12;
  const TICKS = [...STEPS.filter((s) => s <= 864000).map((seconds) => ({ seconds })),
    ...[1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].map((months) => ({ months,
      seconds: months * MONTH }))];

  function ticksOf(o, min, max, { seconds: step, months }) {
    const ticks = [];
    if (months) {
      const date = new Date(min * 1000);
      const year = o.utc ? date.getUTCFullYear() : date.getFullYear();
      const month = o.utc ? date.getUTCMonth() : date.getMonth();
      const first = Math.floor((year * 12 + month) / months) * months;
      const begin = (m) => (o.utc ? Date.UTC(Math.floor(m / 12), m % 12) :
        new Date(Math.floor(m / 12), m % 12).getTime()) / 1000;
      for (let m = first; begin(m) <= max; m += months) if (begin(m) >= min) ticks.push(begin(m));
      return ticks;
    }
    const zone = o.utc ? 0 : -new Date(min * 1000).getTimezoneOffset() * 60;
    for (let t = Math.ceil((min + zone) / step) * step - zone; t <= max; t += step) ticks.push(t);
    return ticks;
  }

  // barSeries draws the part of a stack between the series below and its own.
  function barSeries(s, index) {
    const { hatched } = theme.styleOf(s.style);
    return {
      width: hatched ? 1 : 0, points: { show: false },
      stroke: () => theme.colour(theme.styleOf(s.style).colour),
      fill: () => theme.fill(s.style, uPlot.pxRatio),
      paths: (u, seriesIdx, i0, i1) => barPaths(u, seriesIdx, i0, i1, index, hatched),
    };
  }

  function barPaths(u, seriesIdx, i0, i1, index, hatched) {
    const fill = new Path2D(), stroke = new Path2D();
    const xs = u.data[0], values = u.data[seriesIdx];
    const below = index > 0 ? u.data[seriesIdx - 1] : null;
    const width = xs.length > 1 ? xs[1] - xs[0] : u.scales.x.max - u.scales.x.min;
    const px = (x) => u.valToPos(x, "x", true), py = (y) => u.valToPos(y, "y", true);
    const each = px(xs[0] + width) - px(xs[0]);
    const gap = each > 5 * uPlot.pxRatio ? uPlot.pxRatio : 0;
    for (let i = i0; i <= i1; i++) {
      const low = below ? below[i] : 0;
      if (!(values[i] > low)) continue;
      const left = Math.round(px(xs[i])), right = Math.round(px(xs[i] + width)) - gap;
      const bottom = py(low);
      const height = Math.max(2 * uPlot.pxRatio, bottom - py(values[i]));
      const w = Math.max(uPlot.pxRatio, right - left);
      fill.rect(left, bottom - height, w, height);
      if (hatched) stroke.rect(left + .5, bottom - height + .5, Math.max(1, w - 1), height - .5);
    }
    return { fill, stroke: hatched ? stroke : null };
  }

  window.Charts.time = time;
})();
