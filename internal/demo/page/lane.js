// One lane of the page: its level, its chart, its counts, and the form of its limit.

import { Chart, span as inView } from "./chart.js";
import { copyFrom, setText } from "./dom.js";
import { number, span } from "./format.js";
import { LaneForm } from "./lane_form.js";
import { boundText, levelAt, nextText } from "./level.js";

export class Lane {
  state;
  #part = {};
  #chart;

  // apply(name, text) requests another limit; it throws if the limit is wrong.
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
    this.form = new LaneForm(name, this.#part, (text) => apply(name, text));
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
    const { copy, go } = this.#part;
    copy.setAttribute("aria-label", `Copy the Go code of the ${this.name} limit`);
    copy.addEventListener("click", () => copyFrom(go, copy));
    this.#part.bar.setAttribute("aria-label", `Remaining requests of the ${this.name} limit`);
  }

  // update takes the truth from the server.
  update(state) {
    const changed = this.state?.limit !== state.limit;
    this.state = state;
    if (changed) {
      this.#showLimit();
      this.form.update(state.limit);
    }
    this.#showCounts();
    const fields = state.fields?.map((f) => `${f.name}: ${f.value}`).join("\n") ?? "";
    setText(this.#part.fields, fields);
    this.#part["fields-box"].hidden = !fields;
  }

  #showLimit() {
    const { limit, go, algorithm, capacity } = this.state;
    const option = this.#part.algorithm.querySelector(`[value=${algorithm}]`);
    setText(this.#part.name, option.textContent);
    setText(this.#part.text, limit);
    setText(this.#part.go, go);
    setText(this.#part.of, `of ${number(capacity)} left`);
    this.#part.remaining.classList.toggle("long", capacity >= 1e6);
    this.#part.bar.setAttribute("aria-valuemax", capacity);
    this.#part.bar.classList.toggle("cells", capacity <= 50);
    this.#part.bar.style.setProperty("--cells", capacity);
  }

  #showCounts() {
    const { allowed, denied, most, bound, period } = this.state;
    const over = most > bound;
    setText(this.#part.allowed, number(allowed));
    setText(this.#part.denied, number(denied));
    setText(this.#part["most-label"], `Most in any ${span(period / 1000)}`);
    setText(this.#part.most, most > 0 ? `${number(most)} of ${number(bound)}` : "–");
    setText(this.#part["most-note"], boundText(this.state));
    this.#part["most-box"].classList.toggle("exceeded", over);
    this.#part.over.hidden = !over;
    setText(this.#part.over, over ? `${(most / bound).toFixed(1)} times` : "");
  }

  // bins are those in view, of the fifteen seconds before end.
  bins(end) {
    return this.state.bins.filter((b) => b.start > end - inView - 200 && b.start <= end);
  }

  // active is whether the picture changes while nothing is sent.
  active(now) {
    const last = this.state.bins.findLast((b) => b.allowed + b.denied > 0);
    const rest = this.state.at + this.state.reset - now;
    return last?.start > now - inView - 500 || (rest > 0 && rest < 60_000);
  }

  // draw shows the lane as it is at now, by the clock of the store, and what was
  // before end.
  draw({ now, end, top }) {
    const elapsed = Math.max(0, now - this.state.at);
    const level = levelAt(this.state, elapsed);
    const { algorithm, capacity, refill, period } = this.state;
    const whole = Math.floor(level + 1e-9);
    const part = level / (capacity || 1); // a limit of 0 denies all
    setText(this.#part.remaining, number(whole));
    setText(this.#part.next, nextText(this.state, elapsed));
    this.#part.fill.style.width = `${100 * part}%`;
    this.#part.bar.setAttribute("aria-valuenow", whole);
    this.#chart.draw({
      bins: this.bins(end), end, top, capacity, edges: this.edges(),
      points: this.#points(Math.min(now, end), part),
      inflow: algorithm === "token-bucket" ? refill / period / capacity : 0,
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
    const before = Math.min(1, first.level + first.allowed / (this.state.capacity || 1));
    return [
      { at: now - 2 * inView, level: before }, { at: first.start, level: before, held: true },
      ...seen, { at: now, level },
    ];
  }

  // edges is the period of the fixed windows, or 0.
  edges() {
    return this.state.algorithm === "fixed-window" ? this.state.period : 0;
  }

  // sentence returns the lane as text for screen readers. The drawing may be older.
  sentence(now) {
    const { allowed, denied, capacity, at } = this.state;
    const left = Math.floor(levelAt(this.state, Math.max(0, now - at)) + 1e-9);
    return `${this.title}: ${number(allowed)} allowed, ${number(denied)} denied, ` +
      `${number(left)} of ${number(capacity)} left.`;
  }
}
