// Marks on the canvas of a chart: lines and their labels.
(() => {
  "use strict";
  const { theme, FONT } = window.Charts;

  // font returns the font of labels at the ratio of the canvas.
  const font = (ratio, bold) =>
    (bold ? "600 " : "") + FONT.replace("12px", `${Math.round(12 * ratio)}px`);

  // write writes a text with a halo around its letters, so that the chart behind it stays in sight.
  function write(c, text, x, y, colour) {
    c.strokeStyle = theme.colour("--card");
    c.lineWidth = 5 * uPlot.pxRatio;
    c.lineJoin = "round";
    c.setLineDash([]);
    c.strokeText(text, x, y);
    c.fillStyle = colour;
    c.fillText(text, x, y);
  }

  // flags places the labels of vertical lines in rows from the top, beside their lines, and sets y,
  // where each line begins: no label covers another, or lies on a line. Flags are {x, from, text,
  // bold}, where from is a second line of the same flag.
  function flags(u, list) {
    const c = u.ctx, r = uPlot.pxRatio, area = u.bbox;
    const right = area.left + area.width + 24 * r;
    const order = [...list].sort((a, b) => a.x - b.x);
    for (const f of order) {
      c.font = font(r, f.bold);
      f.wide = c.measureText(f.text).width + 8 * r;
    }
    // From the right: a label that does not fit there, or would cover such a one, is at the left.
    const left = [];
    for (const f of [...order].reverse()) {
      f.left = f.x + f.wide > right || left.some((o) => o.x < f.x + f.wide && o.x > f.x);
      if (f.left) left.push(f);
    }
    const placed = [];
    const begin = (f) => f.left ? Math.max(area.left, f.x - f.wide) : f.x;
    for (const f of [...left, ...order.filter((o) => !o.left)]) {
      f.start = begin(f);
      const below = placed.filter((p) => {
        const crossed = (x) => x > p.start && x < p.start + p.wide;
        const covers = f.start < p.start + p.wide && p.start < f.start + f.wide;
        return crossed(f.x) || crossed(f.from) || covers;
      });
      f.row = Math.max(-1, ...below.map((p) => p.row)) + 1;
      placed.push(f);
    }
    for (const f of list) f.y = area.top + (f.row * 16 - 10) * r;
  }

  // writeFlags writes the labels that flags has placed.
  function writeFlags(u, list) {
    const c = u.ctx, r = uPlot.pxRatio;
    c.save();
    c.textBaseline = "middle";
    c.textAlign = "left";
    for (const f of list) {
      c.font = font(r, f.bold);
      write(c, f.text, f.start + 4 * r, f.y + 8 * r, f.colour);
    }
    c.restore();
  }

  window.Charts.marks = { flags, writeFlags, write, font };
})();
