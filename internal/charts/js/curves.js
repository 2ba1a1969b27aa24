// Charts.curves draws curves on log axes, with points marked on them.
//
//   const chart = Charts.curves(element, {
//     label: "Denied share against burst",
//     x: {name: "burst", format: (v) => text},
//     y: {name: "denied", zero: true, format: (v) => text},  // zero: 0 is on the axis
//     curves: [{name: "60/m", style: "s1", points: [[x, y], ...], strong: true}],  // sorted by x
//     marks: [{x, y, name: "60/m burst 100", style: "s1", strong: true}],
//     height: 320, about: "Share denied, by burst",   // optional
//   });
//   chart.destroy();
//
// On an axis with zero, 0 is one decade below the smallest power of ten that is needed.
(() => {
  "use strict";
  const { theme, axis, Plot, marks } = window.Charts;

  const curves = (host, options) => new Plot(host, spec(options));

  // scale returns how values lie on an axis, from least to most.
  function scale(o, values) {
    const positive = values.filter((v) => v > 0);
    const least = positive.length ? Math.min(...positive) : 1;
    const most = positive.length ? Math.max(...positive) : 1;
    const floor = o.zero ? 10 ** Math.floor(Math.log10(least)) : least;
    const shift = o.zero ? 1 : 0;
    const fwd = (v) => v <= 0 ? 0 : Math.log10(v / floor) + shift;
    const bwd = (v) => o.zero && v < .5 ? 0 : floor * 10 ** (v - shift);
    return { fwd, bwd, least: o.zero ? 0 : least, most, floor, ticks: (a, b, n) => {
      const some = axis.logarithmic(o.zero ? floor : Math.max(bwd(a), 1e-12), bwd(b) * 1.0001,
        o.zero ? n - 1 : n);
      return (o.zero ? [0, ...some] : some).map(fwd);
    } };
  }

  function spec(o) {
    const points = [...o.curves.flatMap((c) => c.points), ...(o.marks ?? []).map((m) =>
      [m.x, m.y])];
    const x = scale(o.x, points.map((p) => p[0])), y = scale(o.y, points.map((p) => p[1]));
    const range = [x.fwd(x.least) - .04, x.fwd(x.most) + .04];
    if (range[1] - range[0] < .1) { range[0] -= .1; range[1] += .1; }
    const places = [...new Set(points.map((p) => p[0]))].sort((a, b) => a - b);
    const xs = places.map(x.fwd);
    const lines = o.curves.map((c) => values(c, places));
    const top = Math.ceil(y.fwd(y.most) - 1e-9) || 1;
    const view = { xs, data: [xs, ...lines.map((l) => l.map((v) => v === null ? null : y.fwd(v)))],
      top, at: (i) => xs[i], title: (i) => `${o.x.name} ${o.x.format(places[i])}`,
      values: (i) => lines.map((l) => l[i] === null ? "" : o.y.format(l[i])),
      total: o.about ?? "", totals: lines.map(() => "") };
    return {
      label: o.label, height: o.height ?? 320, range, xGrid: true, paper: o.paper,
      legend: o.curves.map((c) => ({ name: c.name, style: c.style, kind: "line" })),
      series: o.curves.map((c) => line(c)),
      view: () => view,
      xTicks: x.ticks, xLabels: (ticks) => ticks.map((v) => o.x.format(round(x.bwd(v)))),
      yTicks: (max, n) => y.ticks(0, max, Math.max(n, 4)),
      yLabels: (ticks) => ticks.map((v) => o.y.format(round(y.bwd(v)))),
      overlay: (u) => overlay(u, o, x, y),
    };
  }

  const round = (v) => Number(v.toPrecision(6));

  // values are those of a curve at places: between its points, those that lie on the line; after
  // its last point, 0 if it has come down to that.
  function values(curve, places) {
    const { points } = curve;
    let k = 0;
    return places.map((p) => {
      while (k < points.length - 1 && points[k + 1][0] <= p) k++;
      if (!points.length || p < points[0][0]) return null;
      if (p > points.at(-1)[0]) return points.at(-1)[1] === 0 ? 0 : null;
      const [x1, y1] = points[k];
      if (x1 === p || k === points.length - 1) return y1;
      const [x2, y2] = points[k + 1];
      return y1 + (y2 - y1) * (p - x1) / (x2 - x1);
    });
  }

  function line(c) {
    const style = theme.styleOf(c.style);
    return { width: c.strong ? 3 : 1.75, dash: style.dash, spanGaps: true,
      points: { show: false }, stroke: () => theme.colour(style.colour), alpha: 1,
      paths: uPlot.paths.linear() };
  }

  // overlay draws the marks and their names.
  function overlay(u, o, x, y) {
    const r = uPlot.pxRatio, c = u.ctx;
    const place = (px, py) => ({ x: u.valToPos(x.fwd(px), "x", true),
      y: u.valToPos(y.fwd(py), "y", true) });
    const list = [];
    c.save();
    c.setLineDash([]);
    for (const m of [...(o.marks ?? [])].sort((a, b) => Boolean(a.strong) - Boolean(b.strong))) {
      const p = place(m.x, m.y), style = theme.styleOf(m.style);
      marks.marker(c, style.marker === "cross" ? "circle" : style.marker, p.x, p.y,
        (m.strong ? 7 : 5) * r);
      c.fillStyle = theme.colour(m.strong ? style.colour : "--card");
      c.strokeStyle = theme.colour(m.strong ? "--card" : style.colour);
      c.lineWidth = 2 * r;
      c.fill();
      c.stroke();
      list.unshift({ ...p, text: m.name, bold: m.strong, gap: 9, size: 8 * r,
        colour: theme.colour(m.strong ? "--ink" : "--quiet") });
    }
    c.restore();
    marks.labels(u, list);
  }

  window.Charts.curves = curves;
})();
