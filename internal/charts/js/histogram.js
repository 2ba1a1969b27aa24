// Charts.histogram draws how many there are of each size, with values marked by lines.
//
//   const chart = Charts.histogram(element, {
//     label: "Keys by the limit that they need",
//     x: {name: "need", format: (v) => text}, unit: "keys",
//     bins: [{from: 1, to: 1, count: 1159}, ...],           // the smallest first
//     marks: [{from: 60, to: 60, name: "60/m", strong: true}],  // a line, or from < to: a band
//     height: 260, about: "Number of keys",                   // optional
//   });
//   chart.destroy();
//
// Both axes are logarithmic: one is as visible as ten thousand.
(() => {
  "use strict";
  const { theme, format, axis, Plot, marks } = window.Charts;

  const histogram = (host, options) => new Plot(host, spec(options));

  // A bin from a to b is drawn from a - .5 to b + .5, since sizes are whole numbers.
  const fwd = (v) => Math.log10(Math.max(.5, v));
  const bwd = (v) => 10 ** v;
  // 1 has the height of .4 of a decade.
  const up = (n) => n > 0 ? Math.log10(n) + .4 : 0;
  const down = (v) => v < .2 ? 0 : 10 ** (v - .4);

  function spec(o) {
    const least = Math.min(o.bins[0].from - .5, ...o.marks.map((m) => m.from));
    const most = Math.max(o.bins.at(-1).to + .5, ...o.marks.map((m) => m.to * 1.15));
    const range = [fwd(least) - .02, fwd(most) + .02];
    const total = o.bins.reduce((sum, b) => sum + b.count, 0);
    const size = (b) => b.from === b.to ? o.x.format(b.from) :
      `${o.x.format(b.from)} to ${o.x.format(b.to)}`;
    const xs = o.bins.map((b) => fwd(b.from - .5));
    const view = { xs, data: [xs, o.bins.map((b) => up(b.count))],
      top: up(Math.max(...o.bins.map((b) => b.count))) * 1.25,
      at: (i) => (fwd(o.bins[i].from - .5) + fwd(o.bins[i].to + .5)) / 2,
      title: (i) => `${o.x.name} ${size(o.bins[i])}`,
      values: (i) => [format.number(o.bins[i].count)],
      total: o.about ?? "", totals: [format.number(total)] };
    return {
      label: o.label, height: o.height ?? 260, range, bare: true,
      legend: [{ name: o.unit, style: "keys" }],
      series: [{ points: { show: false }, width: 0, fill: () => theme.colour("--keys-fill"),
        stroke: () => theme.colour("--keys"), paths: (u) => paths(u, o) }],
      view: () => view,
      xTicks: (min, max, n) => axis.logarithmic(Math.max(1, bwd(min)), bwd(max), n).map((v) =>
        Math.log10(v)),
      xLabels: (ticks) => ticks.map((v) => o.x.format(Math.round(bwd(v)))),
      yTicks: (max, n) => [0, ...axis.logarithmic(1, Math.max(1, down(max)), n).map(up)],
      yLabels: (ticks) => ticks.map((v) => axis.short(Math.round(down(v)))),
      overlay: (u) => overlay(u, o),
    };
  }

  function paths(u, o) {
    const fill = new Path2D();
    for (const b of o.bins) {
      if (!b.count) continue;
      const left = u.valToPos(fwd(b.from - .5), "x", true) + uPlot.pxRatio;
      const right = u.valToPos(fwd(b.to + .5), "x", true);
      const top = u.valToPos(up(b.count), "y", true), bottom = u.valToPos(0, "y", true);
      fill.rect(left, top, Math.max(uPlot.pxRatio, right - left), bottom - top);
    }
    return { fill, stroke: null };
  }

  function overlay(u, o) {
    const c = u.ctx;
    c.save();
    const list = o.marks.map((m) => ({ mark: m, text: m.name, bold: m.strong,
      // A key that needs exactly m.to is denied nothing: the line is at the right of its bar.
      from: u.valToPos(fwd(m.from + .5), "x", true), x: u.valToPos(fwd(m.to + .5), "x", true),
      colour: theme.colour(m.strong ? "--ink" : "--quiet") }));
    marks.flags(u, list);
    counts(u, o, list.flatMap((f) => [f.from, f.x]).sort((a, b) => a - b));
    list.sort((a, b) => Boolean(a.bold) - Boolean(b.bold));
    for (const flag of list) drawMark(u, flag);
    c.restore();
    marks.writeFlags(u, list);
  }

  // drawMark draws the line or the band of a mark, below the labels of the others.
  function drawMark(u, { mark, from, x: to, y }) {
    const r = uPlot.pxRatio, c = u.ctx, { top, height } = u.bbox;
    c.strokeStyle = c.fillStyle = theme.colour(mark.strong ? "--accent" : "--quiet");
    c.globalAlpha = .12;
    if (to > from) c.fillRect(from, top, to - from, height);
    c.globalAlpha = 1;
    c.lineWidth = (mark.strong ? 2.5 : 1.5) * r;
    c.setLineDash(mark.strong ? [] : [5 * r, 4 * r]);
    c.beginPath();
    for (const x of to > from ? [from, to] : [to]) {
      c.moveTo(x, y);
      c.lineTo(x, top + height);
    }
    c.stroke();
    c.setLineDash([]);
  }

  // counts writes how many there are above each bar, in the widest part that no line crosses.
  function counts(u, o, lines) {
    const r = uPlot.pxRatio, c = u.ctx;
    c.font = marks.font(r);
    c.textAlign = "center";
    c.textBaseline = "bottom";
    for (const b of o.bins) {
      const left = u.valToPos(fwd(b.from - .5), "x", true);
      const right = u.valToPos(fwd(b.to + .5), "x", true);
      const parts = [left, ...lines.filter((x) => x > left && x < right), right];
      const [wide, at] = parts.slice(1).map((x, i) => [x - parts[i], (x + parts[i]) / 2])
        .reduce((a, p) => p[0] > a[0] ? p : a);
      const text = axis.short(b.count);
      if (!b.count || c.measureText(text).width > wide - 2 * r) continue;
      marks.write(c, text, at, u.valToPos(up(b.count), "y", true) - 2 * r, theme.colour("--ink"));
    }
  }

  window.Charts.histogram = histogram;
})();
