// Charts.time draws values over time, in UTC.
//
//   const chart = Charts.time(element, {
//     label: "Requests over time",     // for those who do not see it
//     from: 1766000000, step: 60,      // the first bar, and the width of each, in seconds
//     series: [                        // bars are stacked, the first at the bottom
//       {name: "allowed", style: "allowed", values: [...]},
//       {name: "denied", style: "denied", values: [...]},
//     ],
//     height: 220,                     // optional
//   });
//   chart.destroy();
//
// Bars that are too thin to see are put together.
(() => {
  "use strict";
  const { theme, format, axis, Plot } = window.Charts;
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
    43200, 86400, 172800, 432000, 864000, 2592000, 7776000, 31536000];

  const time = (host, options) => new Plot(host, spec(options));

  const sum = (values) => values.reduce((a, b) => a + b, 0);

  // widthOf is how many bars are put together, so that at most so many are drawn, of a round width.
  function widthOf(o, count, most) {
    const round = STEPS.map((s) => s / o.step).filter(Number.isInteger);
    return [1, ...round].find((f) => count / f <= most) ?? Math.ceil(count / most);
  }

  // gather puts values from first on together, so many at a time. first may be below 0.
  function gather(values, first, factor) {
    const result = [];
    for (let i = first; i < values.length; i += factor) {
      result.push(sum(values.slice(Math.max(0, i), i + factor)));
    }
    return result;
  }

  function spec(o) {
    const count = Math.max(1, ...o.series.map((s) => s.values.length));
    const range = [o.from, o.from + count * o.step];
    return {
      label: o.label, height: o.height ?? 220, range,
      legend: o.series.map((s) => ({ name: s.name, style: s.style })),
      series: o.series.map(barSeries),
      view: (width) => view(o, count, range, width),
      xTicks: timeTicks, xLabels: axis.timeTicks,
      yTicks: (max, n) => axis.linear(0, max, n, true),
      yLabels: (ticks) => ticks.map(axis.short),
    };
  }

  const least = 3; // pixels of a bar

  function view(o, count, [from, to], width) {
    const factor = widthOf(o, count, width / least);
    // Bars begin at multiples of their width.
    const first = Number.isInteger(from / o.step) ? -(from / o.step % factor) : 0;
    const all = o.series.map((s) => gather(s.values, first, factor));
    const xs = [];
    for (let i = first; i < count; i += factor) xs.push(from + i * o.step);
    const stacked = [];
    for (const values of all) {
      const below = stacked.at(-1);
      stacked.push(values.map((v, k) => v + (below ? below[k] : 0)));
    }
    const top = stacked.at(-1).reduce((a, b) => Math.max(a, b), 0);
    const width1 = o.step * factor;
    const start = (i) => Math.max(xs[i], from);
    const end = (i) => Math.min(xs[i] + width1, to);
    return { xs, data: [xs, ...stacked], top: top * 1.06 || 1,
      at: (i) => (start(i) + end(i)) / 2,
      title: (i) => axis.range(start(i), end(i)),
      values: (i) => all.map((values) => format.number(values[i])),
      total: `${axis.range(from, to)}, each bar ${format.span(width1)}`,
      totals: o.series.map((s) => format.number(sum(s.values))) };
  }

  // timeTicks are at most n times from min to max, evenly spaced or at the first of months.
  function timeTicks(min, max, n) {
    const fits = TICKS.findIndex((step) => (max - min) / step.seconds <= n);
    const at = fits < 0 ? TICKS.length - 1 : fits;
    const ticks = ticksOf(min, max, TICKS[at]);
    if (ticks.length > 1 || at === 0) return ticks;
    const finer = ticksOf(min, max, TICKS[at - 1]), each = Math.ceil(finer.length / n);
    return finer.filter((_, i) => i % each === 0);
  }

  const MONTH = 365.25 * 86400 / 12;
  const TICKS = [...STEPS.filter((s) => s <= 864000).map((seconds) => ({ seconds })),
    ...[1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].map((months) => ({ months,
      seconds: months * MONTH }))];

  function ticksOf(min, max, { seconds: step, months }) {
    const ticks = [];
    if (months) {
      const date = new Date(min * 1000);
      const month = date.getUTCFullYear() * 12 + date.getUTCMonth();
      const begin = (m) => Date.UTC(Math.floor(m / 12), m % 12) / 1000;
      for (let m = Math.floor(month / months) * months; begin(m) <= max; m += months) {
        if (begin(m) >= min) ticks.push(begin(m));
      }
      return ticks;
    }
    for (let t = Math.ceil(min / step) * step; t <= max; t += step) ticks.push(t);
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
