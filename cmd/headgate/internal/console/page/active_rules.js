// The active rules next to the files, and the last error with its line.

import { byId, h, setText, show } from "./dom.js";
import { plural } from "./format.js";
import { drawLines, Few, Rows } from "./rows.js";
import { timeOfDay } from "./times.js";

let app, rows;
let shown = ""; // the files that are shown
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
  const files = JSON.stringify([config.files, config.faults]);
  if (files === shown) return;
  shown = files;
  byId("files").replaceChildren(...config.files.map((file) => makeFile(file, config.faults)));
  showWrong();
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
      drawPlace(place, rule);
    },
  };
}

function drawPlace(cell, { file, line }) {
  const base = file.split("/").at(-1);
  const text = line ? `${base}:${line}` : base;
  if (cell.textContent === text) return;
  cell.title = file;
  cell.replaceChildren(line ? h("button", {
    type: "button", class: "link", click: () => goTo(file, line),
  }, text) : text);
}

const lineId = (file, line) => `line-${file}-${line}`;

// goTo opens a file at a line.
function goTo(file, line) {
  const element = document.getElementById(lineId(file, line));
  if (!element) return;
  element.closest("details").open = true;
  element.scrollIntoView({ block: "center" });
  for (const other of document.querySelectorAll("#files .pointed")) {
    other.classList.remove("pointed");
  }
  element.classList.add("pointed");
}

function makeFile({ name, text }, all) {
  const faults = (all ?? []).filter((fault) => fault.line > 0 && fault.file === name);
  const lines = text.replace(/\n$/, "").split("\n").map((line, i) => {
    const item = h("li", { id: lineId(name, i + 1) }, h("code", {}, line || " "));
    for (const fault of faults.filter((f) => f.line === i + 1)) {
      item.className = "wrong";
      item.append(h("p", { class: "problem" }, fault.text));
    }
    return item;
  });
  const more = faults.length ? h("span", { class: "fault-count" },
    plural(faults.length, "error")) : null;
  return h("details", { open: faults.length > 0 },
    h("summary", {}, h("code", {}, name), more ? " " : null, more),
    h("ol", { class: "file", tabindex: 0 }, ...lines));
}

// showWrong scrolls the files to their first errors, since a long file has its own bar.
function showWrong() {
  for (const list of document.querySelectorAll("#files .file")) {
    const line = list.querySelector(".wrong");
    if (line) list.scrollTop = line.offsetTop - list.offsetTop - 60;
  }
}
