// The top of the page: instances, the store, the configuration, and what is wrong with them.

import { byId, h, setAttribute, setText, show } from "./dom.js";
import { latency, number, plural } from "./format.js";
import { sentence } from "./key_text.js";
import { drawLines, Rows } from "./rows.js";
import { ago, stop, time, timeOfDay, utc } from "./times.js";

let app, rows;

export function start(theApp) {
  app = theApp;
  rows = new Rows(byId("instances"), makeRow);
  byId("fact-fleet").addEventListener("click", () => showFleet(byId("fleet").hidden));
}

// showFleet shows the list of instances, or hides it.
export function showFleet(open = true) {
  show(byId("fleet"), open);
  byId("fact-fleet").setAttribute("aria-expanded", open);
  if (open) byId("fleet").scrollIntoView({ block: "nearest" });
}

export function draw() {
  const { state, access } = app.model;
  const self = state?.instances.find((i) => i.self); // another one after a restart
  setText(byId("instance"), self?.name ?? access.instance);
  if (!state) return;
  drawFleet(state);
  show(byId("alone"), Boolean(state.alone));
  if (state.alone) setText(byId("alone"), aloneText(state.alone));
  drawStore(state.store);
  drawConfig(state);
}

function aloneText(why) {
  const { fleet, wholeAt } = app.model;
  return `Numbers of this instance only: ${sentence(why)}${
    fleet > 1 ? ` ${fleet} instances were known at ${time(wholeAt)}.` : ""}`;
}

const brief = (hash) => hash.slice(0, 8);

function drawFleet(state) {
  const mixed = state.instances.some((i) => i.differs);
  const n = state.instances.length + (state.more_instances ?? 0);
  const text = app.model.isPartial ? "Other instances not known" : plural(n, "instance");
  setText(byId("fact-fleet"), text + (mixed ? ", with different rules" : ""));
  byId("fact-fleet").dataset.state = mixed || app.model.isPartial ? "warn" : "good";
  rows.set(state.instances, (i) => i.name);
}

function drawStore({ kind, name, state, p99_us }) {
  const element = byId("fact-store");
  const text = kind === "memory" ? "Store memory" : `Redis ${state}`;
  setText(element, state === "down" ? text : `${text}, decisions p99 ${latency(p99_us)}`);
  element.title = name;
  element.dataset.state = { up: "good", slow: "warn", down: "bad" }[state] ?? "good";
}

function drawConfig(state) {
  const self = state.instances.find((i) => i.self) ?? state.instances[0];
  const all = state.instances.filter((i) => i.config.error);
  const failed = all.find((i) => i.self) ?? all[0];
  const fact = byId("fact-config");
  setText(fact, failed ? "Rules: error" : `Rules loaded ${ago(self.config.loaded_at)}`);
  fact.title = `${utc(self.config.loaded_at)}, version ${brief(self.config.hash)}`;
  fact.dataset.state = failed ? "bad" : "good";
  show(byId("config-error"), Boolean(failed));
  if (!failed) return;
  const { error, loaded_at } = failed.config;
  setText(byId("config-error-text"), error.text);
  setText(byId("config-error-since"), `Since ${time(error.at)} on ${failed.name
  }; the rules loaded ${ago(loaded_at)} stay active. A restart with this file fails.`);
}

function makeRow({ name }) {
  const names = ["Store", "Decisions/s", "p50", "p99", "Rules", "Version"];
  const cells = names.map((label, i) => h("td", {
    role: "cell", "data-label": label, class: i > 0 && i < 4 ? "number" : null,
  }));
  const [store, decisions, p50, p99, rules, program] = cells;
  const self = h("span", { class: "quiet" });
  const version = h("span");
  const lines = h("ul", { class: "change-lines" });
  rules.append(version, lines);
  const element = h("tr", { role: "row" },
    h("th", { role: "rowheader", scope: "row" }, name, " ", self), ...cells);
  return {
    element,
    update(i) {
      setText(self, i.self ? "(this one)" : "");
      setText(store, i.store === "up" && app.model.state.store.state === "slow" ? "slow" : i.store);
      setText(decisions, number(i.decisions_per_s));
      setText(p50, latency(i.p50_us));
      setText(p99, latency(i.p99_us));
      setText(version, `loaded ${ago(i.config.loaded_at)}${
        i.config.error ? `; error: ${i.config.error.text}` : ""}${
        !i.differs ? "" : i.differs.added ? "; other rules than this one:"
          : "; other files than this one, with too many rules to compare"}`);
      drawLines(lines, i.differs);
      setText(program, i.version);
      setAttribute(element, "class", i.config.error || i.store === "down" ? "trouble" : null);
    },
  };
}

// drawConnection says that what is shown is old.
export function drawConnection() {
  const { live, error, at } = app.model.connection;
  stop(live ? null : at);
  document.body.classList.toggle("stale", !live);
  show(byId("lost"), !live);
  if (live) return;
  setText(byId("lost-text"), `No connection: ${error}. ${
    at ? `The numbers are from ${timeOfDay(at)}.` : ""} Trying again…`);
}
