// The top denied keys, a search, and the state of one key.

import { disable, onAct } from "./controls.js";
import { byId, h, setText, show } from "./dom.js";
import { number, percent, rate } from "./format.js";
import { breadth } from "./key_breadth.js";
import { keyOverride } from "./key_override.js";
import { Panel } from "./key_panel.js";
import { isCrowd, whoText } from "./key_requests.js";
import { brief, keyText, unusable } from "./key_text.js";
import { Few, Order, Rows } from "./rows.js";
import { ago, time, utc } from "./times.js";

let app, rows, order, found, few;
let opened = null; // the row whose key is looked at

export function start(theApp) {
  app = theApp;
  rows = new Rows(byId("keys"), makeRow);
  order = new Order(byId("keys"));
  found = new Panel(app, byId("found"));
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    app.look(completed(byId("search-key").value), null);
  });
  byId("search-key").addEventListener("input", () => {
    if (byId("search-key").value === "") found.close();
  });
  byId("denied-keys-rule").addEventListener("click", () => app.choose(null));
  few = new Few("keys-all", 12, "keys", () => { order.reset(); draw(); });
}

// completed lets a person paste an address as logs have it.
function completed(text) {
  const key = text.trim();
  const isV4 = /^\d{1,3}(\.\d{1,3}){3}$/.test(key);
  const isV6 = /^[0-9a-f]*:[0-9a-f:]+(\/\d+)?$/i.test(key);
  return isV4 || isV6 ? `ip:${key}` : key;
}

// look shows a key at the search.
export function look(key, rule = null) {
  if (key === "") return found.close();
  byId("search-key").value = key;
  found.open(key, rule, Boolean(rule?.includes("/")));
  byId("denied-keys").scrollIntoView({ block: "start" });
}

export function resetOrder() {
  order.reset();
  opened?.close();
}

export function draw() {
  if (!app.model.state) return;
  found.draw();
  const items = keys();
  rows.set(few.of(order.sort(items, id)), id);
  const chip = byId("denied-keys-rule");
  show(chip, app.rule !== null);
  setText(chip, `rule ${app.rule} ×`);
  chip.setAttribute("aria-label", `Only rule ${app.rule}. Show all rules`);
  show(byId("keys-none"), items.length === 0);
  setText(byId("keys-none"), app.rule === null ? "No key was denied in this time."
    : `Rule ${app.rule} denied no key in this time.`);
  setText(byId("denied-keys-period"), period());
}

// period says for how long denied keys have been counted: from the first viewer on, and 5 to 10
// minutes at most.
function period() {
  const { at, denied_since: since } = app.model.state;
  return at - since < 600_000 ? `counted since ${time(since)}`
    : "last 5 to 10 minutes";
}

const id = (item) => `${item.rule} ${item.key}`;

// keys returns those of all rules or of the chosen one: first those that are denied, then those
// that would be.
function keys() {
  const items = [];
  let total = 0;
  for (const rule of app.model.rules()) {
    if (app.rule !== null && rule.name !== app.rule) continue;
    total += rule.denied + rule.shadow_denied;
    for (const key of rule.denied_keys) {
      const would = key.denied === 0 || (rule.mode === "shadow" && rule.mode !== rule.file_mode);
      items.push({ rule: rule.name, kind: rule.kind, would, ...key });
    }
  }
  items.sort((a, b) => (a.per_s === 0) - (b.per_s === 0) || a.would - b.would || b.per_s - a.per_s
    || sum(b) - sum(a));
  return items.map((item) => ({ ...item, share: total ? Math.min(1, item.per_s / total) : 0 }));
}

const textOf = ({ denied, shadow_denied: would }) => [
  ...denied ? [`${number(denied)} denied`] : [],
  ...would ? [`${number(would)} would be denied`] : [],
].join(", ");

const sum = (item) => item.denied + item.shadow_denied;

function makeRow({ rule, key, kind, foreign }) {
  const name = h("button", {
    type: "button", class: "key-name", title: keyText(key), "aria-expanded": "false",
  }, h("bdi", {}, h("code", {}, brief(key))));
  const meta = h("span", { class: "key-meta" });
  const state = h("span", { class: "key-override" });
  const note = h("span", { class: "rule-note" });
  const per = h("b");
  const would = h("span", { class: "key-would" }, "shadow");
  const bar = h("i", { class: "bar" });
  const [ban, raise] = ["Ban", "Raise"].map((act) => onAct(h("button", {
    type: "button", class: `small ${act.toLowerCase()}`,
    "aria-label": `${act} ${brief(key)} in rule ${rule}…`,
  }, `${act}…`), () => app.acting.open(act.toLowerCase(), { rule, key })));
  const details = h("div", { class: "key-panel", hidden: true });
  const cut = unusable({ key, foreign });
  const panel = new Panel(app, details, name, cut);
  const isShared = () => kind !== "domain" && breadth(app.model, rule, key) !== null;
  name.addEventListener("click", () => {
    if (opened !== panel) opened?.close();
    opened = panel;
    if (panel.isOpen) panel.close();
    else panel.open(key, rule, kind === "domain");
  });
  const element = h("li", { class: "key-row" },
    h("div", { class: "key-text" }, name, meta, state, note),
    h("p", { class: "key-rate" }, would, per, "/s"),
    h("p", { class: "key-acts" }, raise, ban), bar, details);
  return {
    element,
    update(item) {
      setText(per, rate(item.per_s));
      show(would, item.would);
      setText(meta, `${app.rule === null ? `${rule} · ` : ""}${textOf(item)
      } · last ${ago(item.last)}`);
      const all = app.rule === null ? "all rules deny" : "the rule denies";
      meta.title = `Last denied ${utc(item.last)}; ${percent(item.share)} of what ${all}`;
      bar.classList.toggle("would", item.would);
      bar.style.width = `${item.share * 100}%`;
      const caution = whoText(item, true);
      const isFree = !keyOverride(app, state, rule, key) && !isShared() && !caution;
      setText(note, caution);
      for (const button of [ban, raise]) {
        show(button, isFree);
        disable(button, app.cannotAct(kind) || cut);
      }
      raise.classList.toggle("primary", isCrowd(item));
      panel.draw();
    },
  };
}
