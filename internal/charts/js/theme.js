// The palette and the marks of all charts. Colours are CSS variables of charts.css; each style is
// told from the others by a hatching, a dash or a marker, too.
(() => {
  "use strict";

  const STYLES = {
    allowed: { colour: "--allowed", fill: "--allowed-fill", dash: [], marker: "circle" },
    denied: { colour: "--denied", fill: "--denied-soft", hatched: true, dash: [], marker: "cross" },
    s1: { colour: "--s1", fill: "--s1-fill", dash: [], marker: "circle" },
    s2: { colour: "--s2", fill: "--sunk", dash: [7, 4], marker: "square" },
    s3: { colour: "--s3", fill: "--sunk", dash: [2, 3], marker: "triangle" },
    s4: { colour: "--s4", fill: "--sunk", dash: [10, 3, 2, 3], marker: "diamond" },
    s5: { colour: "--s5", fill: "--sunk", dash: [12, 4], marker: "cross" },
    s6: { colour: "--s6", fill: "--sunk", dash: [3, 6], marker: "circle" },
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

  const MARKERS = {
    circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", square: "M-3.5 -3.5H3.5V3.5H-3.5Z",
    triangle: "M0 -4.5L4.5 3.5H-4.5Z", diamond: "M0 -5L5 0L0 5L-5 0Z",
    cross: "M-4 -4L4 4M-4 4L4 -4",
  };

  // swatch returns the sign of a style for a legend: an area or a line.
  function swatch(name, kind) {
    const style = styleOf(name);
    const parts = [];
    if (kind === "line") {
      parts.push(svg("path", { class: "line", d: "M0 7H26",
        "stroke-dasharray": style.dash.join(" ") || "none" }));
      parts.push(svg("path", { class: "mark", d: MARKERS[style.marker],
        transform: "translate(13 7)" }));
    } else {
      parts.push(svg("rect", { class: "area", x: .75, y: .75, width: 12.5, height: 12.5 }));
      if (style.hatched) {
        parts.push(svg("path", { class: "line", d: "M1 7L7 1M1 13L13 1M7 13L13 7" }));
      }
    }
    const width = kind === "line" ? 26 : 14;
    const e = svg("svg", { class: "chart-swatch", width, height: 14,
      viewBox: `0 0 ${width} 14`, "aria-hidden": "true" }, parts);
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
