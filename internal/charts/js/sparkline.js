// Charts.sparkline draws a small picture of values over time, without axes.
//
//   const line = Charts.sparkline(element, {
//     label: "15 minutes: at most 120 a second, 4 now",   // what it says, for those who do not see
//     series: [{style: "allowed", values: [...]}, {style: "denied", values: [...]}],  // stacked
//     width: 160, height: 32, top: 100,                   // optional; top: the least of the axis
//   });
//   line.update(options); line.destroy();
//
// It fills the width of the element, and is drawn as SVG: hundreds of them are cheap.
(() => {
  "use strict";
  const { theme } = window.Charts;

  function sparkline(host, options) {
    const draw = (o) => host.replaceChildren(picture(o));
    host.classList.add("chart-spark");
    draw(options);
    return { update: draw, destroy: () => host.replaceChildren() };
  }

  function picture(o) {
    const width = o.width ?? 180, height = o.height ?? 32;
    const count = Math.max(2, ...o.series.map((s) => s.values.length));
    const sums = new Array(count).fill(0);
    const layers = o.series.map((s) => {
      const below = [...sums];
      s.values.forEach((v, i) => { sums[i] += v ?? 0; });
      return { style: s.style, below, above: [...sums] };
    });
    const top = Math.max(o.top ?? 0, ...sums) || 1;
    const x = (i) => (i * width / count).toFixed(1);
    const y = (v) => (height - .5 - v / top * (height - 2)).toFixed(1);
    const parts = layers.filter((l) => l.above.some((v, i) => v > l.below[i])).map((l) => {
      const style = theme.styleOf(l.style);
      const path = theme.svg("path", { d: area(l, count, x, y) });
      path.style.fill = `var(${style.hatch ? style.colour : style.fill})`;
      return path;
    });
    const base = theme.svg("path", { class: "base", d: `M0 ${height - .5}H${width}` });
    return theme.svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none",
      role: "img", "aria-label": o.label ?? "", height }, [base, ...parts]);
  }

  // area is the outline of a layer, in steps, where it has a height.
  function area(l, count, x, y) {
    let d = "";
    for (let i = 0; i < count; i++) {
      let k = i;
      while (k < count && l.above[k] > l.below[k]) k++;
      if (k === i) continue;
      d += `M${x(i)} ${y(l.above[i])}`;
      for (let n = i; n < k; n++) d += `V${y(l.above[n])}H${x(n + 1)}`;
      for (let n = k - 1; n >= i; n--) d += `V${y(l.below[n])}H${x(n)}`;
      d += "Z";
      i = k;
    }
    return d;
  }

  window.Charts.sparkline = sparkline;
})();
