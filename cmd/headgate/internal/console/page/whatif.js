// What if: the last minutes of sampled requests under another limit, in the charts of the report.

import { whatIf } from "./api.js";
import { byId, h, setText, show } from "./dom.js";
import { split } from "./limits.js";
import { brief, count, percent, plural, span, time, utc, visible } from "./format.js";

let app;
let chart = null;
let asked = 0; // what was tried last is shown, whatever comes last

export function start(theApp) {
  app = theApp;
  byId("what-if-rule").addEventListener("change", suggest);
  byId("what-if").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
}

// draw offers the rules of the configuration.
export function draw() {
  const select = byId("what-if-rule");
  const names = (app.model.config?.rules ?? []).filter((r) => r.kind !== "domain")
    .map((r) => r.name);
  show(byId("what-if"), names.length > 0);
  if ([...select.options].map((o) => o.value).join("\n") === names.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
  if (names.includes(chosen)) select.value = chosen;
  else suggest();
}

export function choose(rule) {
  const select = byId("what-if-rule");
  if (rule === null || ![...select.options].some((o) => o.value === rule)) return;
  select.value = rule;
  suggest();
}

function suggest() {
  const rule = app.model.config?.rules.find((r) => r.name === byId("what-if-rule").value);
  byId("what-if-limits").value = (rule?.limits ?? []).join(", ");
}

async function run() {
  const [rule, input, error] = [byId("what-if-rule").value, byId("what-if-limits"),
    byId("what-if-error")];
  const limits = split(input.value);
  const mine = ++asked;
  error.hidden = true;
  input.removeAttribute("aria-invalid");
  try {
    show(byId("what-if-result"), false);
    show(byId("what-if-busy"), true);
    const answer = await whatIf(rule, limits, byId("what-if-lifted").checked);
    if (mine !== asked) return;
    drawResult(rule, answer);
    byId("what-if-result").focus();
  } catch (refusal) {
    if (mine !== asked) return;
    setText(error, refusal.message);
    error.hidden = false;
    if (refusal.status === 400) input.setAttribute("aria-invalid", "true");
  } finally {
    if (mine === asked) show(byId("what-if-busy"), false);
  }
}

function drawResult(rule, answer) {
  const region = byId("what-if-result");
  const results = answer.replay.limits;
  const choices = results.map((_, i) => h("input", {
    type: "radio", name: "what-if-shown", checked: i === 0, change: () => drawLimit(answer, i),
  }));
  const lines = results.map((result, i) => h(results.length > 1 ? "label" : "p",
    { class: "answer" }, results.length > 1 ? choices[i] : null,
    h("span", {}, h("strong", {}, `${result.limit} would deny ${shareOf(result)}`),
      `: ${count(result.denied)} of ${plural(result.requests, "request")}, from ${
        count(result.denied_keys)} of ${plural(result.keys, "key")}.`)));
  region.replaceChildren(missing(answer), ...lines,
    ...sampleTexts(rule, answer).map((text) => h("p", { class: "quiet" }, text)),
    h("div", { id: "what-if-chart" }), h("div", { id: "what-if-keys" }));
  show(region, true);
  drawLimit(answer, 0);
}

const shareOf = ({ denied, requests }) => percent(requests ? denied / requests : 0);

// drawLimit draws what one of the limits would do.
function drawLimit({ replay }, i) {
  chart?.destroy();
  chart = drawChart(byId("what-if-chart"), replay.detail.timeline, i);
  byId("what-if-keys").replaceChildren(...table(replay.detail, i));
}

// missing warns that not all instances are in the answer, or returns an empty text.
function missing({ alone, missing: without = [], instance, instances }) {
  const known = app.model.state?.instances.length ?? 1;
  const few = !instances && known > 1 // of a server that replays its own decisions only
    ? `Only the requests of ${instance} are replayed, 1 of ${known} instances.` : "";
  const text = alone ? `${alone[0].toUpperCase()}${alone.slice(1)}.`
    : without.length ? `The decisions of ${without.join(", ")} are missing.` : few;
  return text ? h("p", { class: "caution" },
    `${text.replace(/\.\.$/, ".")} The limits would deny more than is shown here.`) : "";
}

// sampleTexts says what was replayed, what the rule did with it, and what is left out.
function sampleTexts(rule, answer) {
  const { from, to, sampled_keys: keys, key_share: part, requests, denied, instances } = answer;
  const share = part >= 1 ? "all keys" : `1 of ${count(1 / part)} keys`;
  const where = !instances ? `of instance ${answer.instance}` : instances.length === 1
    ? `of the only instance, ${instances[0].name}`
    : `of ${count(instances.length)} instances: ${instances.map((i) => i.name).join(", ")}`;
  return [`As it was: rule ${rule} denied ${count(denied)} of the same ${
    plural(requests, "request")}.`, asideText(answer),
    `Sample: ${time(from)} to ${time(to)} (${span((to - from) / 1000)}), ${plural(keys, "key")} (${
      share}) ${where}.`].filter(Boolean);
}

// asideText says what bans and overrides decided, which no limit of the rule did.
function asideText({ aside = 0, denied_by: by }) {
  const parts = [["ban", "bans"], ["override", "overrides"]].filter(([name]) => by?.[name])
    .map(([name, text]) => `${count(by[name])} by ${text}`).join(" and ");
  if (byId("what-if-lifted").checked) {
    return parts && `Of these, ${parts} were denied: they are replayed as if there were none.`;
  }
  return aside === 0 ? "" : `Apart: ${plural(aside, "request")} that a ban or an override decided ${
    aside === 1 ? "is" : "are"} not in these numbers${parts ? `; denied were ${parts}` : ""}.`;
}

function drawChart(host, { from, width_s, requests, denied }, limit) {
  const refused = requests.map((_, i) => denied[limit]?.[i] ?? 0);
  return window.Charts.time(host, {
    label: "Requests under this limit over time",
    from: Date.parse(from) / 1000, step: width_s, height: 200, zoom: true,
    series: [
      { name: "allowed", style: "allowed", values: requests.map((n, i) => n - refused[i]) },
      { name: "denied", style: "denied", values: refused },
    ],
  });
}

function table({ keys, denied_keys_total }, limit) {
  const list = keys?.[limit] ?? [];
  if (list.length === 0) return [h("p", { class: "quiet" }, "It would deny no key.")];
  const few = list.slice(0, 20);
  const rows = few.map((k) => h("tr", { role: "row" },
    h("td", { role: "cell" }, h("button", {
      type: "button", class: "key-name", title: visible(k.key), click: () => app.look(k.key),
    }, h("bdi", {}, h("code", {}, brief(k.key))))),
    h("td", { role: "cell", class: "number", "data-label": "Requests" }, count(k.requests)),
    h("td", { role: "cell", class: "number", "data-label": "Denied" }, count(k.denied)),
    h("td", {
      role: "cell", class: "number", "data-label": "Last denial", title: utc(Date.parse(k.last)),
    }, time(Date.parse(k.last)))));
  const head = ["Key", "Requests", "Denied", "Last denial"].map((text, i) =>
    h("th", { scope: "col", role: "columnheader", class: i ? "number" : null }, text));
  const rest = (denied_keys_total?.[limit] ?? list.length) - few.length;
  const all = h("table", { class: "plain", role: "table" },
    h("thead", {}, h("tr", { role: "row" }, ...head)), h("tbody", {}, ...rows));
  return [h("div", { class: "scroll" }, all),
    ...(rest > 0 ? [h("p", { class: "quiet" }, `and ${plural(rest, "more key")}`)] : [])];
}
