// Charts.time draws values over time.
//
//   const chart = Charts.time(element, {
//     label: "Requests over time",     // for those who do not see it
//     from: 1766000000, step: 60,      // the first bar, and the width of each, in seconds
//     series: [                        // bars are stacked, the first at the bottom
//       {name: "allowed", style: "allowed", values: [...]},
//       {name: "p99", style: "s2", kind: "line", values: [...]},   // or "step"; null is a gap
//     ],
//     combine: "sum",                  // how neighbours are put together: sum, mean or max
//     utc: true,                       // else times are of the reader's zone
//     height: 220, zoom: true,
//     format: (v) => text, name: "requests",          // optional: of values, of the y axis
//     onZoom: (from, to) => {},                       // optional
//     compact: true,                                  // optional: a head of one line
//   });
//   chart.update(options); chart.zoom(from, to); chart.zoom(); chart.destroy();
//
// Bars that are too thin to see are put together; zooming in shows them one by one.
(() => {
  "use strict";
  const { theme, format, Plot } = window.Charts;
  const FACTORS = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 24, 30, 60, 120, 240, 360, 720, 1440];
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
    43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];

  function time(host, options) {
    const plot = new Plot(host, spec(options));
    return { update: (o) => plot.update(spec(o)), zoom: (a, b) => plot.zoom(a, b),
      destroy: () => plot.destroy(), plot };
  }

  const COMBINE = {
    sum: (values) => values.reduce((a, b) => a + b, 0),
    mean: (values) => values.reduce((a, b) => a + b, 0) / values.length,
    max: (values) => Math.max(...values),
  };

  // gather puts values from first to last together, so many at a time.
  function gather(values, first, last, factor, combine) {
    const result = [];
    for (let i = first; i < last; i += factor) {
      const some = [];
      for (let k = i; k < Math.min(i + factor, last); k++) {
        if (values[k] !== null && values[k] !== undefined) some.push(values[k]);
      }
      result.push(some.length ? combine(some) : null);
    }
    return result;
  }

  function spec(o) {
    const count = Math.max(1, ...o.series.map((s) => s.values.length));
    const full = [o.from, o.from + count * o.step];
    const bars = o.series.filter((s) => (s.kind ?? "bars") === "bars");
    const whole = (o.combine ?? "sum") === "sum";
    const say = o.format ?? ((v) => format.number(v, v < 10 && !Number.isInteger(v) ? 2 : 0));
    return {
      label: o.label, compact: o.compact, height: o.height ?? 220, full: () => full,
      zoom: o.zoom ? o.step * Math.min(8, count) : 0, paper: o.paper, onZoom: o.onZoom,
      legend: o.series.map((s) => ({ name: s.name, style: s.style,
        kind: (s.kind ?? "bars") === "bars" ? "area" : "line" })),
      series: [...bars.map((s, i) => barSeries(s, i)),
        ...o.series.filter((s) => !bars.includes(s)).map(lineSeries)],
      view: (min, max, width) => view(o, count, bars, say, min, max, width),
      xTicks: (min, max, n) => timeTicks(o, min, max, n),
      xLabels: (ticks) => format.timeTicks(ticks, ticks.length > 1 ? ticks[1] - ticks[0] : 86400,
        o.utc),
      yTicks: (max, n) => format.linear(0, max, n, whole),
      yLabels: (ticks) => ticks.map((v) => (o.formatAxis ?? o.format ?? format.short)(v)),
    };
  }

  function view(o, count, bars, say, min, max, width) {
    const least = o.barWidth ?? 3;
    const shown = (max - min) / o.step;
    const factor = FACTORS.find((f) => shown / f <= width / least) ?? Math.ceil(shown * least /
      width);
    const first = Math.max(0, Math.floor((min - o.from) / o.step / factor) * factor);
    const last = Math.min(count, Math.ceil((max - o.from) / o.step));
    const combine = COMBINE[o.combine ?? "sum"];
    const all = o.series.map((s) => gather(s.values, first, last, factor, combine));
    const xs = gather(Array.from({ length: count }, (_, i) => o.from + i * o.step), first, last,
      factor, (some) => some[0]);
    const stacked = [];
    let top = 0;
    o.series.forEach((s, i) => {
      if (!bars.includes(s)) return;
      const below = stacked.at(-1);
      stacked.push(all[i].map((v, k) => (v ?? 0) + (below ? below[k] : 0)));
    });
    const drawn = [...stacked, ...all.filter((_, i) => !bars.includes(o.series[i]))];
    for (const values of drawn) for (const v of values) if (v > top) top = v;
    const width1 = o.step * factor;
    const end = (i) => Math.min(xs[i] + width1, o.from + count * o.step);
    return { xs, data: [xs, ...drawn], factor, barWidth: width1, top: niceTop(o, top),
      at: (i) => (xs[i] + end(i)) / 2,
      title: (i) => o.compact ? format.moment(xs[i], o.utc) : format.range(xs[i], end(i), o.utc),
      values: (i) => all.map((values) => values[i] === null ? "–" : say(values[i])),
      total: o.compact ? "" : `${format.range(min, max, o.utc)}, each bar ${format.span(width1)}`,
      totals: o.series.map((s) => {
        const some = s.values.slice(Math.max(0, Math.floor((min - o.from) / o.step + 1e-6)),
          Math.ceil((max - o.from) / o.step - 1e-6)).filter((v) => v !== null && v !== undefined);
        return some.length ? say(combine(some)) : "–";
      }) };
  }

  const niceTop = (o, top) => Math.max(o.top ?? 0, top * 1.06) || 1;

  function timeTicks(o, min, max, n) {
    const step = STEPS.find((s) => (max - min) / s <= n) ?? STEPS.at(-1);
    const zone = o.utc ? 0 : -new Date(min * 1000).getTimezoneOffset() * 60;
    const ticks = [];
    for (let t = Math.ceil((min + zone) / step) * step - zone; t <= max; t += step) ticks.push(t);
    return ticks;
  }

  // barSeries draws the part of a stack between the series below and its own.
  function barSeries(s, index) {
    const hatched = Boolean(theme.styleOf(s.style).hatch);
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

  function lineSeries(s) {
    const style = theme.styleOf(s.style);
    return {
      width: 2, dash: style.dash, points: { show: false },
      stroke: () => theme.colour(style.colour),
      paths: s.kind === "step" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
    };
  }

  window.Charts.time = time;
})();
