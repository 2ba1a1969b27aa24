// The live part: the verdict, the numbers, and the rules.

import { events } from "./causes.js";
import { arrange, disable, onAct } from "./controls.js";
import { byId, h, setAttribute, setText, show } from "./dom.js";
import { latency, percent, rate } from "./format.js";
import { keyOverride } from "./key_override.js";
import { isCrowd } from "./key_requests.js";
import { brief, keyText, unusable } from "./key_text.js";
import { Few, Order, Rows } from "./rows.js";
import { Spark } from "./spark.js";
import * as status from "./status.js";
import * as timeline from "./timeline.js";
import { timeOfDay } from "./times.js";
import { judge, wouldDeny } from "./verdict.js";

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
  few = new Few("rules-all", most, "rules", () => { order.reset(); draw(); });
  onAct(byId("culprit-ban"), () => app.acting.open("ban", culprit));
  onAct(byId("culprit-raise"), () => app.acting.open("raise", culprit));
  onAct(byId("culprit-mode"), () => app.acting.open("mode", { rule }));
  onAct(byId("culprit-lost"), () => app.acting.putBack());
  byId("culprit-change").addEventListener("click", () => app.showChange());
  byId("culprit-fleet").addEventListener("click", () => status.showFleet());
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
  const happened = events(model).filter((e) => !e.isEnd
    && (!chosen || !e.rules || e.rules.has(chosen)));
  timeline.draw(model.history(chosen), chosen === null ? "all rules" : `rule ${chosen}`, happened);
  timeline.link(model.config?.grafana);
}

function drawVerdict() {
  const { live, at } = app.model.connection;
  const verdict = judge(app.model);
  app.model.told = verdict;
  if (!live) [verdict.level, verdict.title] = ["none", `No connection${at ? ` since ${timeOfDay(at)
  }. Before: ${verdict.title}` : ""}`];
  ({ culprit, rule } = verdict);
  document.body.dataset.level = verdict.level;
  setText(byId("verdict-sign"), live ? signs[verdict.level] : "?");
  setText(byId("verdict-title"), verdict.title);
  const lines = byId("verdict-detail");
  if (lines.dataset.shows !== verdict.lines.join("\n")) {
    lines.dataset.shows = verdict.lines.join("\n");
    lines.replaceChildren(...verdict.lines.map((line) => h("p", {}, line)));
  }
  setText(byId("culprit-seen"), verdict.seen);
  show(byId("culprit-seen"), verdict.seen !== "");
  show(byId("culprit"), culprit !== null);
  document.title = `${!live ? "(no connection) " : verdict.level === "bad" ? "(!) " : ""
  }Headgate console`;
  speak(verdict);
  drawAdvice(verdict);
  if (!culprit) return;
  setText(byId("culprit-share"), culprit.banned ? "Key "
    : `${culprit.share > 0.99 ? "All" : culprit.share > 0.9 ? "Nearly all" : percent(culprit.share)
    } of them are from one key: `);
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
  const { model } = app;
  const kind = culprit?.kind ?? model.rule(rule)?.kind;
  const isDomain = kind === "domain";
  const why = app.cannotAct(kind);
  const { file } = model.limits(rule, "");
  const hasLimits = file.length === 0 || file.some((limit) => limit.includes("/")); // not permits
  const shown = {
    ban: advice === "ban", raise: advice === "ban" && hasLimits,
    lost: Boolean(model.lost?.at), change: advice === "change" || Boolean(hasChange),
    fleet: advice === "fleet", docs: model.state.store.state === "slow",
    mode: !isDomain && (advice === "mode" || advice === "change"), look: culprit !== null,
    override: culprit !== null,
  };
  for (const [name, is] of Object.entries(shown)) show(byId(`culprit-${name}`), is);
  for (const id of ["culprit-ban", "culprit-raise"]) {
    disable(byId(id), why || (culprit ? unusable(culprit) : ""));
  }
  arrange(byId("culprit-ban"), byId("culprit-raise"), isCrowd(culprit));
  disable(byId("culprit-lost"), app.cannotAct());
  const { mode, file_mode } = model.rule(rule) ?? {};
  setText(byId("culprit-mode"), advice === "change" ? `Switch ${rule} to shadow…`
    : mode === file_mode ? `Change the mode of ${rule}…` : `End the switch of ${rule}…`);
  disable(byId("culprit-mode"), why);
  if (culprit) keyOverride(app, byId("culprit-override"), culprit.rule, culprit.key);
  show(byId("culprit-acts"), Object.values(shown).some(Boolean));
}

function drawNumbers(rules) {
  const chosen = rules.filter((rule) => app.rule === null || rule.name === app.rule);
  const sum = (name) => chosen.reduce((total, rule) => total + (rule[name] ?? 0), 0);
  const { requests = { asked: 0 }, store } = app.model.state;
  // Requests count once; what Envoy asks for is counted by rule only.
  const isAll = app.rule === null && requests.asked > 0;
  const of = isAll ? chosen.filter((rule) => rule.kind === "domain") : chosen;
  const [denied, asked] = [
    of.reduce((n, rule) => n + rule.denied, isAll ? requests.denied : 0),
    of.reduce((n, rule) => n + rule.allowed + rule.denied, isAll ? requests.asked : 0),
  ];
  setText(byId("n-denied"), rate(denied));
  setText(byId("n-asked"), rate(asked));
  setText(byId("n-share"), denied ? percent(denied, asked) : "");
  setText(byId("n-would"), percent(sum("shadow_denied"), asked));
  for (const [id, name] of [["shadow", "shadow_denied"], ["degraded", "degraded"],
    ["error", "error"]]) {
    const value = rate(sum(name));
    setText(byId(`n-${id}`), value);
    show(byId(`n-${id}`).closest("div"), value !== "0");
  }
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
  const shown = text ? kept : listed;
  rows.set(shown, (rule) => rule.name);
  const more = app.model.state.more_rules ?? 0;
  setText(byId("rules-count"), rules.length + more > 1 ? String(rules.length + more) : "");
  show(byId("rules-filter"), rules.length > most);
  show(byId("rules-none"), shown.length === 0 || (shown.length === rules.length && more > 0));
  setText(byId("rules-none"), shown.length === 0
    ? (text ? `No rule has "${text}" in its name.` : "The configuration has no rules.")
    : `${more} more rules with less traffic are not shown.`);
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
      spark.draw(app.model.history(name).counts);
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
  if (rule.mode === "shadow" && rule.shadow_denied) parts.push(wouldDeny(rule));
  if (rule.tokens) parts.push(`${rate(rule.tokens)} tokens/s`);
  if (rule.degraded >= 0.05) parts.push(`${rate(rule.degraded)}/s without the store`);
  if (rule.error >= 0.05) parts.push(`${rate(rule.error)}/s errors`);
  return parts.join(", ");
}

