// One lane of the page: its level, its chart, its counts, and the form of its limit.

import { Chart, span } from "./chart.js";
import { copyFrom } from "./copy.js";
import { number } from "./format.js";
import { LaneForm } from "./lane_form.js";
import { boundText, levelAt, nextText } from "./level.js";

export const algorithmNames = {
  "token-bucket": "Token bucket",
  stepped: "Stepped bucket",
  "fixed-window": "Fixed window",
  "sliding-window": "Sliding window",
  "sliding-log": "Sliding log",
};

export class Lane {
  state;
  #part = {};
  #chart;
  #form;

  // apply(name, settings) asks for another limit; it throws what is wrong with it.
  constructor(name, apply) {
    this.name = name;
    this.title = name === "left" ? "Left" : "Right";
    const template = document.getElementById("lane");
    this.root = template.content.cloneNode(true).firstElementChild;
    for (const element of this.root.querySelectorAll("[data-part]")) {
      this.#part[element.dataset.part] = element;
    }
    this.#label();
    document.getElementById("lanes").append(this.root);
    this.#chart = new Chart(this.#part.timeline);
    this.#form = new LaneForm(name, this.#part, (settings) => apply(name, settings));
  }

  #label() {
    this.root.id = this.name;
    this.#part.side.textContent = this.title;
    this.#part.title.id = `${this.name}-title`;
    this.root.setAttribute("aria-labelledby", this.#part.title.id);
    for (const label of this.root.querySelectorAll("label[data-for]")) {
      const input = this.#part[label.dataset.for];
      input.id = label.htmlFor = `${this.name}-${label.dataset.for}`;
    }
    for (const button of this.root.querySelectorAll("[data-copy]")) {
      const what = button.dataset.copy === "go" ? "Go code" : "text form";
      button.setAttribute("aria-label", `Copy the ${what} of the ${this.name} limit`);
      button.addEventListener("click", () => copyFrom(this.#part[button.dataset.copy], button));
    }
    this.#part.bar.setAttribute("aria-label", `Remaining requests of the ${this.name} limit`);
  }

  focus() {
    this.#form.focus();
  }

  // restore shows the limit that is in force in the form, and no error.
  restore() {
    this.#form.complain();
    this.#form.fill();
  }

  // update takes the truth from the server.
  update(state) {
    const changed = this.state?.limit !== state.limit;
    this.state = state;
    if (changed) {
      this.#showLimit();
      this.#form.update(state);
    }
    this.#showCounts();
    const fields = state.fields?.map((f) => `${f.name}: ${f.value}`).join("\n") ?? "";
    set(this.#part.fields, fields);
    this.#part["fields-box"].hidden = !fields;
  }

  #showLimit() {
    const { limit, go, settings, capacity } = this.state;
    set(this.#part.name, algorithmNames[settings.algorithm]);
    set(this.#part.text, limit);
    set(this.#part.plain, limit);
    set(this.#part.go, go);
    set(this.#part.of, `of ${number(capacity)} left`);
    this.#part.remaining.classList.toggle("long", capacity >= 1e6);
    this.#part.bar.setAttribute("aria-valuemax", capacity);
    this.#part.bar.classList.toggle("cells", capacity <= 50);
    this.#part.bar.style.setProperty("--cells", capacity);
  }

  #showCounts() {
    const { allowed, denied, most, bound, settings } = this.state;
    const over = most > bound;
    set(this.#part.allowed, number(allowed));
    set(this.#part.denied, number(denied));
    set(this.#part["most-label"], `Most in any ${settings.period}`);
    set(this.#part.most, most > 0 ? `${number(most)} of ${number(bound)}` : "–");
    set(this.#part["most-note"], boundText(this.state));
    this.#part["most-box"].classList.toggle("exceeded", over);
    this.#part.over.hidden = !over;
    set(this.#part.over, over ? `${(most / bound).toFixed(1)} times` : "");
  }

  // bins are those in view, of the fifteen seconds before end.
  bins(end) {
    return this.state.bins.filter((b) => b.start > end - span - 200 && b.start <= end);
  }

  // active is whether the picture changes while nothing is sent.
  active(now) {
    const last = this.state.bins.findLast((b) => b.allowed + b.denied > 0);
    const rest = this.state.at + this.state.reset - now;
    return this.#chart.busy || last?.start > now - span - 500 || (rest > 0 && rest < 60_000);
  }

  // draw shows the lane as it is at now, by the clock of the store, and what was
  // before end.
  draw({ now, end, top, wanted, moving }) {
    const elapsed = Math.max(0, now - this.state.at);
    const level = levelAt(this.state, elapsed);
    const { capacity, refill, period, settings } = this.state;
    const whole = Math.floor(level + 1e-9);
    set(this.#part.remaining, number(whole));
    set(this.#part.next, nextText(this.state, elapsed));
    this.#part.fill.style.width = `${(100 * level) / capacity}%`;
    this.#part.bar.setAttribute("aria-valuenow", whole);
    this.#chart.draw({
      bins: this.bins(end), end, top, wanted, moving, capacity, edges: this.edges(),
      points: this.#points(Math.min(now, end), level / capacity),
      inflow: settings.algorithm === "token-bucket" ? refill / period / capacity : 0,
    });
    const label = `The ${this.name} limit in the last 15 seconds: ` +
      `${this.#part.allowed.textContent} allowed, ${this.#part.denied.textContent} denied`;
    if (this.#part.timeline.ariaLabel !== label) this.#part.timeline.ariaLabel = label;
  }

  // points are the levels that were seen, and the present one. Before the first, the
  // level is taken to have been what it was just before the requests that came with it.
  #points(now, level) {
    const seen = this.state.bins.filter((b) => b.at > 0 && b.at < now);
    const first = seen[0] ?? { start: now, at: now, allowed: 0, level };
    const before = Math.min(1, first.level + first.allowed / this.state.capacity);
    return [
      { at: now - 2 * span, level: before }, { at: first.start, level: before, held: true },
      ...seen, { at: now, level },
    ];
  }

  // edges is the period of the fixed windows, or 0.
  edges() {
    return this.state.settings.algorithm === "fixed-window" ? this.state.period : 0;
  }

  // sentence says the lane for those who hear the page.
  sentence() {
    const { allowed, denied, capacity } = this.state;
    return `${this.title}: ${number(allowed)} allowed, ${number(denied)} denied, ` +
      `${this.#part.remaining.textContent} of ${number(capacity)} left.`;
  }
}

// set changes a text only if it changes, which spares the browser a layout.
function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
