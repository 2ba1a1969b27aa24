// The live part: the verdict, the numbers, and the rules.

import { outcome } from "./action_text.js";
import { causes } from "./causes.js";
import { arrange, disable, onAct } from "./controls.js";
import { byId, h, setAttribute, setText, show } from "./dom.js";
import { latency, percent, rate } from "./format.js";
import { keyOverride } from "./key_override.js";
import { manyText } from "./key_requests.js";
import { brief, cutOff, keyText } from "./key_text.js";
import { Few, Order, Rows } from "./rows.js";
import { Spark } from "./spark.js";
import * as timeline from "./timeline.js";
import { judge } from "./verdict.js";

const most = 10; // rules that are shown at first
const signs = { none: "·", calm: "✓", warn: "!", bad: "!" };

let app, rows, order, few;
let culprit = null;
let rule = null; // that the verdict is about

export function start(theApp) {
  app = theApp;
  timeline.start();
  rows = new Rows(byId("rules-rows"), makeRow);
  order = new Order(byId("rules-rows"));
  byId("rules-filter").addEventListener("input", draw);
  byId("numbers-all").addEventListener("click", () => app.choose(null));
  few = new Few("rules-all", most, "rules", () => { order.reset(); draw(); });
  onAct(byId("culprit-ban"), () => app.acting.open("ban", culprit));
  onAct(byId("culprit-raise"), () => app.acting.open("raise", culprit));
  onAct(byId("culprit-mode"), () => app.acting.open("mode", { rule }));
  byId("culprit-change").addEventListener("click", () => app.showChange());
  byId("culprit-look").addEventListener("click", () => app.look(culprit.key, culprit.rule));
}

export function draw() {
  if (!app.model.state) return;
  drawVerdict();
  const rules = app.model.rules();
  drawNumbers(rules);
  drawRules(rules);
}

export function drawHistory() {
  const { model, rule: chosen } = app;
  const acts = (model.acts ?? []).filter((act) => chosen === null || act.rule === chosen);
  const marks = causes(model).filter((c) => !chosen || !c.rules || c.rules.has(chosen));
  const failed = model.state?.instances.find((i) => i.config?.error)?.config.error;
  timeline.draw(model.history(chosen), chosen === null ? "all rules" : `rule ${chosen}`,
    [...acts.map((act) => ({ at: act.at, text: outcome(act).slice(0, -1) })),
      ...failed ? [{ at: failed.at, text: "the files could not be loaded" }] : [], ...marks]
      .sort((a, b) => a.at - b.at));
  timeline.link(model.config?.grafana);
  show(byId("legend-gap"), model.history(chosen).gaps.includes(true));
}

function drawVerdict() {
  const verdict = judge(app.model);
  app.model.told = verdict;
  ({ culprit, rule } = verdict);
  document.body.dataset.level = verdict.level;
  setText(byId("verdict-sign"), signs[verdict.level]);
  setText(byId("verdict-title"), verdict.title);
  setText(byId("verdict-detail"), verdict.detail);
  show(byId("verdict-detail"), verdict.detail !== "");
  setText(byId("culprit-seen"), verdict.seen);
  show(byId("culprit-seen"), verdict.seen !== "");
  show(byId("culprit"), culprit !== null);
  show(byId("culprit-acts"), culprit !== null || verdict.advice !== "");
  document.title = `${verdict.level === "bad" ? "(!) " : ""}Headgate console`;
  speak(verdict);
  drawAdvice(verdict);
  if (!culprit) return;
  setText(byId("culprit-share"), culprit.banned ? "Key "
    : `${culprit.share > 0.9 ? "Nearly all" : percent(culprit.share)} of them are from one key: `);
  setText(byId("culprit-key"), brief(culprit.key));
  byId("culprit-key").title = keyText(culprit.key);
  setText(byId("culprit-rule"), culprit.rule);
  setText(byId("culprit-ban"), `Ban ${brief(culprit.key)}…`);
  setText(byId("culprit-raise"), `Raise ${brief(culprit.key)}…`);
}

let spoken = "";

// speak tells those who do not see the page what the matter is, but not every number.
function speak({ level, title, culprit: key }) {
  const matter = `${level} ${key?.rule} ${key?.key} ${key?.banned}`;
  if (matter === spoken) return;
  spoken = matter;
  setText(byId("verdict-live"), key ? `${title}. ${brief(key.key)} in rule ${key.rule}` : title);
}

function drawAdvice({ advice, hasChange }) {
  const kind = culprit?.kind ?? app.model.rule(rule)?.kind;
  const isDomain = kind === "domain";
  const why = app.cannotAct(kind);
  for (const id of ["culprit-ban", "culprit-raise"]) {
    show(byId(id), advice === "ban" && !isDomain);
    disable(byId(id), why || (culprit ? cutOff(culprit.key) : ""));
  }
  arrange(byId("culprit-ban"), byId("culprit-raise"), manyText(culprit) !== "");
  show(byId("culprit-change"), advice === "change" || Boolean(hasChange));
  show(byId("culprit-mode"), advice === "mode" || (advice === "change" && !isDomain));
  setText(byId("culprit-mode"), advice === "change" ? `Switch ${rule} to shadow…`
    : `Change the mode of ${rule}…`);
  disable(byId("culprit-mode"), why);
  show(byId("culprit-look"), culprit !== null);
  show(byId("culprit-domain"), isDomain && culprit !== null);
  show(byId("culprit-override"), culprit !== null);
  if (culprit) keyOverride(app, byId("culprit-override"), culprit.rule, culprit.key);
}

function drawNumbers(rules) {
  const chosen = rules.filter((rule) => app.rule === null || rule.name === app.rule);
  const sum = (name) => chosen.reduce((total, rule) => total + rule[name], 0);
  const [allowed, denied] = [sum("allowed"), sum("denied")];
  const total = allowed + denied;
  show(byId("numbers-rule"), app.rule !== null);
  setText(byId("numbers-name"), app.rule ?? "");
  setText(byId("n-allowed"), rate(allowed));
  setText(byId("n-share"), denied ? `${percent(denied / total)} of decisions` : "");
  for (const [id, name] of [["denied", "denied"], ["shadow", "shadow_denied"],
    ["degraded", "degraded"], ["error", "error"]]) {
    const value = rate(sum(name));
    setText(byId(`n-${id}`), value);
    byId(`n-${id}`).closest("div").classList.toggle("some", value !== "0");
  }
  const { store } = app.model.state;
  setText(byId("n-p50"), latency(store.p50_us));
  setText(byId("n-p99"), latency(store.p99_us));
}

function drawRules(rules) {
  const sorted = [...rules].sort((a, b) => b.denied - a.denied
    || b.shadow_denied - a.shadow_denied || b.allowed - a.allowed);
  const text = byId("rules-filter").value.trim().toLowerCase();
  const found = sorted.filter((rule) => rule.name.toLowerCase().includes(text));
  const kept = order.sort(found, (rule) => rule.name);
  const listed = few.of(kept, !text && rules.length > most);
  const shown = text ? kept : withChosen(listed, kept);
  rows.set(shown, (rule) => rule.name);
  const more = app.model.state.more_rules ?? 0;
  setText(byId("rules-count"), rules.length + more > 1 ? String(rules.length + more) : "");
  show(byId("rules-filter"), rules.length > most);
  show(byId("rules-none"), shown.length === 0 || (shown.length === rules.length && more > 0));
  setText(byId("rules-none"), shown.length === 0
    ? (text ? `No rule has "${text}" in its name.` : "The configuration has no rules.")
    : `${more} more rules with less traffic are not shown.`);
}

function withChosen(first, rules) {
  const chosen = rules.find((rule) => rule.name === app.rule);
  return chosen && !first.includes(chosen) ? [...first, chosen] : first;
}

function makeRow({ name }) {
  const spark = new Spark(34);
  const cell = (kind) => h("td", { role: "cell", class: `number ${kind}` });
  const [allowed, denied, would] = [cell("allowed"), cell("denied"), cell("would")];
  const choose = h("button", {
    type: "button", class: "rule-name", click: () => app.choose(app.rule === name ? null : name),
  }, h("bdi", {}, name));
  const mode = onAct(h("button", { type: "button", class: "mode" }), () =>
    app.acting.open("mode", { rule: name }));
  const note = h("span", { class: "rule-note" });
  const element = h("tr", { role: "row" },
    h("td", { role: "cell", class: "rule-cell" }, choose, mode, note),
    h("td", { role: "cell", class: "spark-cell" }, spark.element), allowed, denied, would);
  return {
    element,
    update(rule) {
      setText(allowed, rate(rule.allowed));
      setText(denied, rate(rule.denied));
      setText(would, rule.shadow_denied ? rate(rule.shadow_denied) : "");
      denied.classList.toggle("some", rule.denied >= 1
        && rule.denied > 0.05 * (rule.allowed + rule.denied));
      setAttribute(choose, "aria-pressed", String(app.rule === name));
      element.classList.toggle("chosen", app.rule === name);
      drawMode(mode, rule);
      setText(note, notes(rule));
      const { counts, gaps } = app.model.history(name);
      spark.draw(counts, gaps);
    },
  };
}

function drawMode(button, rule) {
  const changed = rule.mode !== rule.file_mode;
  setText(button, rule.kind === "domain" ? "domain" : rule.mode);
  button.dataset.mode = rule.kind === "domain" ? "domain" : rule.mode;
  setAttribute(button, "aria-label", `Mode of ${rule.name}: ${rule.mode}. Change it…`);
  disable(button, app.cannotAct(rule.kind));
  button.classList.toggle("changed", changed);
}

function notes(rule) {
  const parts = [];
  if (rule.mode !== rule.file_mode) parts.push(`in the file: ${rule.file_mode}`);
  if (rule.degraded >= 0.05) parts.push(`${rate(rule.degraded)}/s without the store`);
  if (rule.error >= 0.05) parts.push(`${rate(rule.error)}/s errors`);
  return parts.join(", ");
}

