// Marks on the canvas of a chart: points, lines and their labels.
(() => {
  "use strict";
  const { theme, FONT } = window.Charts;

  // marker draws a sign around a point.
  function marker(c, kind, x, y, size) {
    c.beginPath();
    if (kind === "circle") c.arc(x, y, size, 0, 2 * Math.PI);
    else if (kind === "square") c.rect(x - size, y - size, 2 * size, 2 * size);
    else if (kind === "cross") {
      c.moveTo(x - size, y - size); c.lineTo(x + size, y + size);
      c.moveTo(x - size, y + size); c.lineTo(x + size, y - size);
    } else {
      const points = kind === "diamond" ? [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]] :
        [[0, -1.2], [1.1, 1], [-1.1, 1]];
      points.forEach(([px, py], i) =>
        i ? c.lineTo(x + px * size, y + py * size) : c.moveTo(x + px * size, y + py * size));
      c.closePath();
    }
  }

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

  // labels writes texts beside points, moved so that none covers another, or a point of size, or
  // leaves the area. Labels are {x, y, text, colour, bold, size}; the first come first.
  function labels(u, list) {
    const c = u.ctx, r = uPlot.pxRatio, area = u.bbox;
    const high = 15 * r;
    const taken = list.filter((l) => l.size).map((l) => ({ x: l.x - l.size, y: l.y - l.size,
      w: 2 * l.size, h: 2 * l.size }));
    c.save();
    c.textBaseline = "middle";
    c.textAlign = "left";
    for (const l of list) {
      c.font = font(r, l.bold);
      const wide = c.measureText(l.text).width + 6 * r;
      const place = find(l, wide, high, area, taken, r, list);
      if (!place) continue;
      taken.push(place);
      write(c, l.text, place.x + 3 * r, place.y + high / 2 + .5 * r, l.colour);
    }
    c.restore();
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

  // nearest reports whether no other point is as near to a place as its own.
  function nearest(p, own, list) {
    const far = (l) => Math.hypot(Math.max(p.x - l.x, 0, l.x - p.x - p.w),
      Math.max(p.y - l.y, 0, l.y - p.y - p.h));
    return list.every((l) => l === own || !l.size || far(l) > far(own));
  }

  // find returns the first free place around a point.
  function find(l, wide, high, area, taken, r, list) {
    const gap = (l.gap ?? 7) * r;
    const right = area.left + area.width, bottom = area.top + area.height;
    const middle = Math.min(right - wide, Math.max(area.left, l.x - wide / 2)) - l.x;
    const up = -high - gap, down = gap;
    const spots = [[gap, up], [gap, down], [-wide - gap, up], [-wide - gap, down],
      [gap, -high / 2], [-wide - gap, -high / 2], [middle, up], [middle, down]];
    for (let row = 0; row < 3; row++) {
      for (const [dx, dy] of spots) {
        const p = { x: l.x + dx, y: l.y + dy + (dy < 0 ? -row : row) * high, w: wide, h: high };
        const inside = p.x >= area.left && p.x + wide <= right && p.y >= area.top - 12 * r &&
          p.y + high <= bottom;
        if (inside && !taken.some((t) => p.x < t.x + t.w && t.x < p.x + p.w && p.y < t.y + t.h &&
          t.y < p.y + p.h) && nearest(p, l, list)) return p;
      }
    }
    return null;
  }

  window.Charts.marks = { marker, labels, flags, writeFlags, write, font };
})();
