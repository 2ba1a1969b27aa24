// What is known of one key: its state under each limit, and what can be done about it.

import { getKey } from "./api.js";
import { arrange, disable, onAct } from "./controls.js";
import { h, setAttribute, setText } from "./dom.js";
import { number, plural, span } from "./format.js";
import { isShared } from "./key_breadth.js";
import { keyOverride } from "./key_override.js";
import { deniedKey, isCrowd, seenText, whoText } from "./key_requests.js";
import { brief, keyText } from "./key_text.js";

const interval = 2_000;

export class Panel {
  isOpen = false;
  #key = "";
  #rule = null;
  #only = false;
  #timer = 0;
  #parts = [];
  #shape = "";

  // opener is the button that says whether the panel is open; why says why nothing can be done.
  constructor(app, element, opener = null, why = "") {
    Object.assign(this, { app, element, opener, why });
  }

  // open shows a key under all rules that have such keys, rule first, or under rule only.
  async open(key, rule, only = false) {
    [this.#key, this.#rule, this.#only] = [key, rule, only];
    [this.isOpen, this.#shape] = [true, ""];
    this.element.hidden = false;
    setAttribute(this.opener ?? this.element, "aria-expanded", this.opener ? "true" : null);
    this.element.replaceChildren(h("p", { class: "quiet" }, "Loading…"));
    await this.#refresh();
  }

  close() {
    this.isOpen = false;
    clearTimeout(this.#timer);
    this.element.hidden = true;
    this.element.replaceChildren();
    this.opener?.setAttribute("aria-expanded", "false");
  }

  // draw brings the controls up to date with what this person may do.
  draw() {
    if (this.isOpen) for (const part of this.#parts) part.draw();
  }

  async #refresh() {
    clearTimeout(this.#timer);
    const [key, rule] = [this.#key, this.#rule];
    if (document.hidden) {
      this.#timer = setTimeout(() => this.#refresh(), interval);
      return;
    }
    try {
      const answer = await keyOf(key, rule, this.#only);
      if (!this.isOpen || key !== this.#key || rule !== this.#rule) return;
      this.#show(answer);
    } catch (error) {
      if (!this.isOpen || key !== this.#key) return;
      this.#shape = "";
      this.element.replaceChildren(h("p", { class: "problem" }, error.message));
    }
    if (this.isOpen && this.element.isConnected) {
      this.#timer = setTimeout(() => this.#refresh(), interval);
    }
  }

  #show(answer) {
    const shape = JSON.stringify(answer.rules.map((r) => [r.rule, r.limits.map((l) => l.limit)]));
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#parts = answer.rules.map((r) => new RulePart(this, answer.key, r));
      this.element.replaceChildren(...this.#parts.map((part) => part.element));
      if (this.opener === null || brief(answer.key) !== keyText(answer.key)) {
        this.element.prepend(h("p", { class: "key-full", tabindex: 0 },
          h("bdi", {}, h("code", {}, keyText(answer.key)))));
      }
      if (answer.rules.length === 0) {
        this.element.append(h("p", { class: "quiet" }, "No rule has such keys. A key looks like "
          + "ip:192.0.2.1 or header:abc. The table of rules below lists the keys of each rule."));
      }
    }
    answer.rules.forEach((r, i) => this.#parts[i].update(r));
  }
}

// keyOf asks for the state of a key, under rule first.
async function keyOf(key, rule, only) {
  const answer = await getKey(key, only ? rule : null);
  answer.rules.sort((a, b) => (b.rule === rule) - (a.rule === rule));
  return answer;
}

// A RulePart is a key under one rule.
class RulePart {
  constructor({ app, why }, key, { rule, limits }) {
    Object.assign(this, { app, why, key, rule });
    this.kind = app.model.rules().find((r) => r.name === rule)?.kind ?? "rule";
    this.mode = h("span", { class: "quiet" });
    this.override = h("span", { class: "key-override" });
    this.isPattern = this.kind === "rule" && key.includes("*");
    this.limits = this.isPattern ? [] : limits.map(() => makeLimit());
    this.permits = h("p", { class: "quiet" });
    this.seen = h("p", { class: "quiet key-seen" });
    const acts = [["ban", "Ban…"], ["raise", "Raise…"], ["reset", "Reset…"]];
    this.buttons = acts.map(([act, text]) => {
      const button = h("button", {
        type: "button", class: "small",
        "aria-label": `${text.slice(0, -1)} ${brief(key)} in rule ${rule}…`,
      }, text);
      return onAct(button, () => app.acting.open(act, { rule, key }));
    });
    this.element = h("section", { class: "rule-part" },
      h("p", { class: "rule-part-head" }, h("strong", {}, h("bdi", {}, rule)), this.mode,
        this.override),
      ...this.limits.map((l) => l.element), this.permits, this.seen,
      h("p", { class: "buttons" }, ...this.buttons));
  }

  update(r) {
    setText(this.mode, r.mode === "enforce" ? "" : r.mode);
    this.limits.forEach((limit, i) => limit.update(r.limits[i], r));
    this.permits.hidden = !r.permits && !this.isPattern;
    if (this.isPattern) setText(this.permits, "* matches any text, so this stands for many keys.");
    else if (r.permits) setText(this.permits, permitText(r.permits));
    this.draw();
  }

  draw() {
    const has = keyOverride(this.app, this.override, this.rule, this.key);
    const denied = deniedKey(this.app.model, this.rule, this.key);
    setText(this.seen, `${whoText(denied)} ${seenText(denied)}`.trim());
    const [ban, raise, reset] = this.buttons;
    arrange(ban, raise, isCrowd(denied));
    reset.hidden = this.isPattern;
    const override = has ? this.app.model.override(this.rule, this.key) : null;
    ban.hidden = Boolean(override?.ban) || isShared(this.key);
    raise.hidden = Boolean(override?.ban) && override.key === this.key; // it must be lifted first
    for (const button of [ban, raise]) disable(button, this.app.cannotAct(this.kind) || this.why);
    disable(reset, this.app.cannotAct() || this.why);
  }
}

const permitText = (p) => `${number(p.in_use)} of ${plural(p.limit, "permit")} in use`;

function makeLimit() {
  const name = h("code");
  const text = h("span", { class: "limit-text" });
  return {
    element: h("p", { class: "limit" }, name, text),
    update(limit, { banned, mode }) {
      setText(name, limit.limit);
      setText(text, limitText(limit, banned, mode));
    },
  };
}

function limitText(limit, banned, mode) {
  const { capacity, remaining, retry_after_s, reset_after_s, allowed } = limit;
  const left = limit.degraded ? `${number(remaining)} remain of this instance's share`
    : `${number(remaining)} of ${number(capacity)} remain`;
  if (banned) {
    return mode === "enforce" ? `denied by the ban; ${left}`
      : `banned, but nothing is denied in mode ${mode}`;
  }
  if (!allowed && retry_after_s === undefined) return `${left}, never allowed`;
  if (!allowed) return `${left}, next in ${span(retry_after_s)}`;
  return reset_after_s >= 1 ? `${left}, full after ${span(reset_after_s)} without requests` : left;
}
