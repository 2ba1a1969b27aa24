// The palette of all charts. Colours are CSS variables of theme.css; denied is hatched, too.
(() => {
  "use strict";

  const STYLES = {
    allowed: { colour: "--allowed", fill: "--allowed-fill" },
    denied: { colour: "--denied", fill: "--denied-soft", hatched: true },
    keys: { colour: "--keys", fill: "--keys-fill" },
  };

  let read = null; // the computed style, until the theme changes
  const patterns = new Map();
  const refreshers = new Set();

  const colour = (name) => {
    read ??= getComputedStyle(document.documentElement);
    return read.getPropertyValue(name).trim() || "#808080";
  };
  const styleOf = (name) => STYLES[name];

  // fill returns what an area of a style is filled with: a colour, or lines on one.
  function fill(name, ratio) {
    const style = styleOf(name);
    if (!style.hatched) return colour(style.fill);
    const id = name + ratio;
    if (!patterns.has(id)) patterns.set(id, hatching(style, ratio));
    return patterns.get(id);
  }

  function hatching(style, ratio) {
    const size = Math.max(4, Math.round(6 * ratio));
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const c = tile.getContext("2d");
    c.fillStyle = colour(style.fill);
    c.fillRect(0, 0, size, size);
    c.strokeStyle = colour(style.colour);
    c.lineWidth = 1.6 * ratio;
    c.beginPath();
    for (const shift of [-size, 0, size]) { // with its neighbours, so that tiles join
      c.moveTo(shift, size);
      c.lineTo(shift + size, 0);
    }
    c.stroke();
    return c.createPattern(tile, "repeat");
  }

  const SVG = "http://www.w3.org/2000/svg";
  function svg(name, attributes, children = []) {
    const e = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    e.append(...children);
    return e;
  }

  // swatch returns the sign of a style for a legend.
  function swatch(name) {
    const style = styleOf(name);
    const parts = [svg("rect", { class: "area", x: .75, y: .75, width: 12.5, height: 12.5 })];
    if (style.hatched) {
      parts.push(svg("path", { class: "line", d: "M1 7L7 1M1 13L13 1M7 13L13 7" }));
    }
    const e = svg("svg", { class: "chart-swatch", width: 14, height: 14, viewBox: "0 0 14 14",
      "aria-hidden": "true" }, parts);
    e.style.setProperty("--swatch", `var(${style.colour})`);
    e.style.setProperty("--swatch-fill", `var(${style.fill})`);
    return e;
  }

  function refresh() {
    read = null;
    patterns.clear();
    for (const f of refreshers) f();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
  // Paper is light, and narrower than most screens.
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.printing = "true";
    refresh();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.printing;
    refresh();
  });

  window.Charts = {
    theme: { colour, fill, styleOf, swatch,
      onRefresh: (f) => { refreshers.add(f); return () => refreshers.delete(f); },
      printing: () => "printing" in document.documentElement.dataset },
  };
})();
