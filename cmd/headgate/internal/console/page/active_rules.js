// The active rules, and what the last load changed.

import { byId, h, setText, show } from "./dom.js";
import { drawLines, Few, Rows } from "./rows.js";
import { timeOfDay } from "./times.js";

let app, rows;
let few; // rules that are shown at first

export function start(theApp) {
  app = theApp;
  rows = new Rows(byId("active-rules-rows"), makeRow);
  few = new Few("active-rules-all", 20, "rules", draw);
}

export function draw() {
  const { config } = app.model;
  show(byId("active-rules"), config !== null);
  if (!config) return;
  drawChange(config.changes.at(-1));
  rows.set(few.of(config.rules), (rule) => rule.name);
}

// drawChange shows what the last load changed.
function drawChange(change) {
  show(byId("change"), Boolean(change));
  if (!change) return;
  setText(byId("change-at"), `What changed at ${timeOfDay(change.at)}`);
  drawLines(byId("change-lines"), change);
}

// showChange opens what the last load changed.
export function showChange() {
  byId("change").open = true;
  byId("change").scrollIntoView({ block: "center" });
  byId("change-at").focus({ preventScroll: true });
}

function makeRow({ name }) {
  const names = ["Applies to", "Key", "Limits", "Cost", "Mode", "File and line"];
  const cells = names.map((label) => h("td", { role: "cell", "data-label": label }));
  const [match, key, limits, cost, mode, place] = cells;
  const head = h("th", { role: "rowheader", scope: "row" }, h("bdi", {}, name));
  limits.className = "code";
  const element = h("tr", { role: "row" }, head, ...cells);
  return {
    element,
    update(rule) {
      setText(match, rule.match || "every request");
      setText(key, rule.key || "one for all");
      setText(limits, rule.limits.join(", "));
      const headroom = rule.headroom ? `, headroom ${rule.headroom}` : "";
      setText(cost, (rule.cost || "1") + headroom);
      const inForce = rule.mode === rule.file_mode ? rule.mode
        : `${rule.mode} (file: ${rule.file_mode})`;
      setText(mode, rule.hold ? `${inForce}, ${rule.hold}` : inForce);
      place.title = rule.file;
      setText(place, rule.file.split("/").at(-1) + (rule.line ? `:${rule.line}` : ""));
    },
  };
}
