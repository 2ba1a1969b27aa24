// One lane of the page: its level, its marks, its timeline, and the form of its limit.

import { History } from "./history.js";
import { levelAt, nextText, thousands } from "./level.js";
import { Timeline } from "./timeline.js";

const inputs = ["algorithm", "capacity", "refill", "period"];
const mostMarks = 40;

export const algorithmNames = {
  "token-bucket": "token bucket",
  stepped: "stepped token bucket",
  "fixed-window": "fixed window",
  "sliding-window": "sliding window",
  "sliding-log": "sliding log",
};

export class Lane {
  history = new History();
  allowed = 0;
  denied = 0;
  state;
  #part = {};
  #timeline;

  // apply(name, settings) asks for another limit; it throws what is wrong with it.
  constructor(name, apply) {
    this.name = name;
    this.title = name === "left" ? "Left" : "Right";
    const root = document.getElementById("lane").content.cloneNode(true).firstElementChild;
    for (const element of root.querySelectorAll("[data-part]")) this.#part[element.dataset.part] = element;
    this.#label(root);
    document.getElementById("lanes").append(root);
    this.#timeline = new Timeline(this.#part.timeline);
    this.#wire(root, apply);
  }

  #label(root) {
    root.id = this.name;
    this.#part.title.id = `${this.name}-title`;
    root.setAttribute("aria-labelledby", this.#part.title.id);
    for (const label of root.querySelectorAll("label[data-for]")) {
      const input = this.#part[label.dataset.for];
      input.id = label.htmlFor = `${this.name}-${label.dataset.for}`;
    }
    this.#part.error.id = `${this.name}-error`;
    for (const name of inputs) this.#part[name].setAttribute("aria-describedby", this.#part.error.id);
    for (const button of root.querySelectorAll("[data-copy]")) {
      const what = button.dataset.copy === "go" ? "Go code" : "text form";
      button.setAttribute("aria-label", `Copy the ${what} of the ${this.name} limit`);
      button.addEventListener("click", () => copy(this.#part[button.dataset.copy], button));
    }
    this.#part.apply.setAttribute("aria-label", `Apply the ${this.name} limit`);
    this.#part.bar.setAttribute("aria-label", `Remaining in the ${this.name} lane`);
  }

  #wire(root, apply) {
    const { form } = this.#part;
    form.addEventListener("input", () => {
      this.#showFields();
      this.#markChanged();
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await apply(this.name, this.settings());
        this.complain();
        this.fill();
      } catch (error) {
        this.complain(error.message);
      }
    });
  }

  focus() {
    this.#part.algorithm.focus();
  }

  get isBucket() {
    return this.state.refill > 0;
  }

  // settings is what the form says.
  settings() {
    const settings = Object.fromEntries(inputs.map((name) => [name, this.#part[name].value]));
    if (!isBucket(settings.algorithm)) delete settings.refill;
    return settings;
  }

  // fill puts the limit as it is into the form.
  fill() {
    for (const name of inputs) {
      this.#part[name].value = this.state.settings[name] ?? (name === "refill" ? this.state.settings.capacity : "");
    }
    this.#showFields();
    this.#markChanged();
  }

  // complain shows what is wrong with the form, beside the field that it names.
  complain(message) {
    this.#part.error.hidden = !message;
    this.#part.error.textContent = message ?? "";
    const words = { capacity: /^(capacity|count) /, refill: /^refill /, period: /^(period|window) / };
    let first;
    for (const [name, named] of Object.entries(words)) {
      const wrong = Boolean(message) && named.test(message);
      this.#part[name].setAttribute("aria-invalid", String(wrong));
      if (wrong) first ??= this.#part[name];
    }
    first?.focus();
  }

  #showFields() {
    const bucket = isBucket(this.#part.algorithm.value);
    this.#part["refill-field"].hidden = !bucket;
    this.#part["capacity-label"].textContent = bucket ? "Capacity" : "Count";
    this.#part["period-label"].textContent = bucket ? "Each" : "Window";
  }

  #markChanged() {
    const now = JSON.stringify(this.settings());
    const { algorithm, capacity, refill, period } = this.state?.settings ?? {};
    this.#part.form.classList.toggle("changed", now !== JSON.stringify({ algorithm, capacity, refill, period }));
  }

  // update takes the truth from the server.
  update(state) {
    const untouched = !this.state || !this.#part.form.classList.contains("changed");
    const changed = this.state?.limit !== state.limit;
    this.state = state;
    if (changed) this.#showLimit();
    if (changed && untouched) this.fill();
    else if (changed) this.#markChanged();
    this.#showMost();
    set(this.#part.fields, state.fields?.map((f) => `${f.name}: ${f.value}`).join("\n") || "no request yet");
  }

  #showLimit() {
    const { limit, go, settings, capacity } = this.state;
    set(this.#part.title, `${this.title}: ${algorithmNames[settings.algorithm]}`);
    set(this.#part.text, limit);
    set(this.#part.plain, limit);
    set(this.#part.go, go);
    set(this.#part.of, `of ${thousands(capacity)} left`);
    this.#part.remaining.classList.toggle("long", capacity >= 1e6);
    this.#part.bar.setAttribute("aria-valuemax", capacity);
    this.#part.bar.classList.toggle("cells", capacity <= 50);
    this.#part.bar.style.setProperty("--cells", capacity);
  }

  #showMost() {
    const { most, bound, settings } = this.state;
    const over = most > bound;
    set(this.#part["most-label"], `Most in any ${settings.period}`);
    set(this.#part.most, `${thousands(most)} of ${thousands(bound)}`);
    this.#part["most-box"].classList.toggle("exceeded", over);
    this.#part.over.hidden = !over;
    set(this.#part.over, over ? `${(most / bound).toFixed(1)} times` : "");
  }

  // record adds what came of a batch.
  record(at, batch) {
    this.allowed += batch.allowed;
    this.denied += batch.denied;
    this.history.add(at, batch.allowed, batch.denied);
    set(this.#part.allowed, thousands(this.allowed));
    set(this.#part.denied, thousands(this.denied));
    const marks = batch.allowed + batch.denied <= mostMarks ? single(batch) : [sum(batch)];
    this.#part.marks.append(...marks);
    while (this.#part.marks.children.length > mostMarks) this.#part.marks.firstElementChild.remove();
  }

  clear() {
    this.allowed = this.denied = 0;
    this.history.clear();
    set(this.#part.allowed, "0");
    set(this.#part.denied, "0");
    this.#part.marks.replaceChildren();
  }

  // draw shows the lane as it is at now, by the clock of the store, and the minute
  // before end.
  draw(now, end, bins, top) {
    const elapsed = Math.max(0, now - this.state.at);
    const level = levelAt(this.state, elapsed);
    const whole = Math.floor(level + 1e-9);
    set(this.#part.remaining, thousands(whole));
    set(this.#part.next, nextText(this.state, elapsed));
    this.#part.fill.style.width = `${(100 * level) / this.state.capacity}%`;
    this.#part.bar.setAttribute("aria-valuenow", whole);
    set(this.#part.scale, `up to ${thousands(top)} each ¼ s`);
    this.#timeline.draw(bins, end, top, this.edges());
    const label = `The last minute of the ${this.name} lane`;
    if (this.#part.timeline.ariaLabel !== label) this.#part.timeline.ariaLabel = label;
  }

  // edges is the period of the fixed windows, or 0.
  edges() {
    return this.state.settings.algorithm === "fixed-window" ? this.state.period : 0;
  }

  // sentence says the lane for those who hear the page.
  sentence() {
    return `${this.title}: ${thousands(this.allowed)} allowed, ${thousands(this.denied)} denied, ` +
      `${this.#part.remaining.textContent} of ${thousands(this.state.capacity)} left.`;
  }
}

function isBucket(algorithm) {
  return algorithm === "token-bucket" || algorithm === "stepped";
}

// set changes a text only if it changes, which spares the browser a layout.
function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function single(batch) {
  return batch.turns.flatMap((n, i) => Array.from({ length: n }, () => mark(i % 2 === 0)));
}

function mark(allowed) {
  const item = document.createElement("li");
  item.className = allowed ? "allowed" : "denied";
  item.textContent = allowed ? "✓" : "×";
  return item;
}

function sum(batch) {
  const item = document.createElement("li");
  item.className = "sum";
  const allowed = document.createElement("b");
  allowed.textContent = `✓ ${thousands(batch.allowed)} `;
  const denied = document.createElement("i");
  denied.textContent = `× ${thousands(batch.denied)}`;
  item.append(allowed, denied);
  return item;
}

async function copy(source, button) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch { // not allowed, as on a page that is not local: select it for the person
    getSelection().selectAllChildren(source);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}
