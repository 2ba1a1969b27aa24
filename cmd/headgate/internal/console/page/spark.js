// 15 minutes as a shape: what was allowed stands above a line, what was denied hangs below it, and
// what would be denied is an outline, so that no colour is needed to tell them apart.

const names = { svg: "http://www.w3.org/2000/svg" };

function node(tag, attributes) {
  const element = document.createElementNS(names.svg, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export class Spark {
  #paths;
  #height;
  #drawn = "";

  constructor(height) {
    this.#height = height;
    this.element = node("svg", {
      class: "spark", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false",
    });
    this.#paths = {
      line: node("path", { class: "spark-line" }),
      allowed: node("path", { class: "spark-allowed" }),
      denied: node("path", { class: "spark-denied" }),
      shadow: node("path", { class: "spark-shadow" }),
    };
    this.element.append(...Object.values(this.#paths));
  }

  // draw draws counts, and returns the scale: what is at the top and at the bottom.
  draw(counts) {
    const below = counts.denied.map((n, i) => n + counts.shadow_denied[i]);
    const [up, down] = [Math.max(...counts.allowed), Math.max(...below)];
    const shape = { steps: counts.allowed.length, base: (down ? 0.6 : 0.92) * this.#height };
    shape.unit = Math.min(
      up ? shape.base / up : Infinity, down ? (this.#height - shape.base) / down : Infinity);
    const paths = {
      allowed: area(counts.allowed, shape, -1),
      denied: area(counts.denied, shape, 1),
      shadow: outline(below, counts.shadow_denied, shape),
      line: `M0 ${shape.base}H${shape.steps}`,
    };
    const drawn = Object.values(paths).join();
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      this.element.setAttribute("viewBox", `0 0 ${shape.steps} ${this.#height}`);
      for (const [name, d] of Object.entries(paths)) this.#paths[name].setAttribute("d", d);
    }
    return { up, down, base: shape.base / this.#height };
  }
}

const least = 0.3; // what is lower would be a coloured line that says nothing

// area goes along the steps and back on the line.
function area(counts, { base, unit }, sign) {
  const values = counts.map((n) => (n * unit < least ? 0 : n));
  let d = "";
  for (let i = 0; i < values.length; i++) {
    if (!values[i]) continue;
    let end = i;
    let top = "";
    for (; end < values.length && values[end]; end++) {
      top += `V${(base + sign * Math.max(1, values[end] * unit)).toFixed(1)}H${end + 1}`;
    }
    d += `M${i} ${base}${top}V${base}Z`;
    i = end;
  }
  return d;
}

function outline(values, shadow, { base, unit }) {
  let d = "";
  let open = false;
  for (let i = 0; i < values.length; i++) {
    const y = (base + Math.max(1.5, values[i] * unit)).toFixed(1);
    const shows = shadow[i] * unit >= least;
    if (shows) d += open ? `V${y}H${i + 1}` : `M${i} ${y}H${i + 1}`;
    open = shows;
  }
  return d;
}
