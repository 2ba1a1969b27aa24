// The 15 minutes of all rules or of one, with a scale, a cursor and the numbers below it, and bands
// of what happened.

import { byId, h, setAttribute, setText } from "./dom.js";
import { rate } from "./format.js";
import { Spark } from "./spark.js";
import { time, timeOfDay } from "./times.js";

const names = { store: "Store", rules: "Rules", acts: "Actions", instances: "Instances" };
const spark = new Spark(130);
let shown = null; // the history that is drawn
let cursor = null; // the step that a person looks at

export function start() {
  const plot = byId("plot");
  plot.prepend(spark.element);
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    look(Math.floor((event.clientX - box.left) / box.width * steps()));
  });
  plot.addEventListener("pointerleave", () => look(null));
  plot.addEventListener("blur", () => look(null));
  plot.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -12, PageDown: 12 }[event.key];
    const end = { Home: 0, End: steps() - 1 }[event.key];
    if (move === undefined && end === undefined) return;
    event.preventDefault();
    look(end ?? (cursor ?? steps() - 1) + move, true);
  });
}

const steps = () => shown?.counts.allowed.length ?? 180;

// link links to the same time in Grafana.
export function link(dashboard) {
  byId("grafana").hidden = !dashboard || !shown?.from;
  if (byId("grafana").hidden) return;
  const at = new URL(dashboard);
  at.searchParams.set("from", shown.from * 1000);
  at.searchParams.set("to", (shown.from + steps() * shown.step_s) * 1000);
  byId("grafana").href = at;
}

// draw draws the history of what, which is a rule or "all rules", with events.
export function draw(history, what, events) {
  shown = history;
  const { up, down, base } = spark.draw(history.counts);
  setText(byId("plot-what"), what);
  setText(byId("scale-up"), up ? `${rate(up / history.step_s)}/s` : "");
  setText(byId("scale-down"), down ? `${rate(down / history.step_s)}/s` : "");
  byId("plot-box").style.setProperty("--base", `${base * 100}%`);
  drawTicks(history);
  drawBands(events);
  setAttribute(byId("plot"), "aria-label",
    `15 minutes of ${what}. Use the arrow keys to read other times.`);
  sayCursor();
}

function drawTicks({ from, step_s }) {
  if (!from) return;
  const end = from + steps() * step_s;
  const first = Math.ceil(from / 300) * 300;
  [...byId("ticks").children].forEach((tick, i) => {
    const at = first + i * 300;
    setText(tick, time(at * 1000));
    tick.style.left = `${(at - from) / (end - from) * 100}%`;
    tick.hidden = at > end - 45 || at < from + 20;
  });
}

// drawBands draws a band for each kind of events, with their words on hover and focus.
function drawBands(events) {
  const { from, step_s } = shown;
  const place = (at) => Math.max(0, Math.min(1, (at / 1000 - from) / (steps() * step_s))) * 100;
  const seen = events.filter((e) => e.to / 1000 > from && e.at > 0);
  const id = JSON.stringify([seen, from]);
  if (byId("bands").dataset.shows === id || byId("bands").contains(document.activeElement)) return;
  byId("bands").dataset.shows = id;
  const part = (e) => {
    const text = `${timeOfDay(e.at)}${e.to > e.at && e.to < Infinity ? ` to ${timeOfDay(e.to)}` : ""
    } ${e.text}`;
    const say = () => setText(byId("readout"), text);
    const mark = h("i", { tabindex: 0, role: "img", "aria-label": text, title: text,
      class: e.isBad ? "bad" : null, focus: say, pointerenter: say, pointerleave: sayCursor,
      blur: sayCursor });
    [mark.style.left, mark.style.right] = [`${place(e.at)}%`, `${100 - place(e.to)}%`];
    return mark;
  };
  byId("bands").replaceChildren(...Object.entries(names).flatMap(([kind, name]) => {
    const parts = seen.filter((e) => e.kind === kind).map(part);
    return parts.length === 0 ? [] : [h("div", { class: "band" }, h("span", {}, name),
      h("div", { class: "track" }, ...parts))];
  }));
}

function look(step, aloud = false) {
  cursor = step === null ? null : Math.max(0, Math.min(steps() - 1, step));
  const line = byId("cursor");
  line.hidden = cursor === null;
  if (cursor !== null) line.style.left = `${(cursor + 0.5) / steps() * 100}%`;
  sayCursor();
  if (aloud) setText(byId("verdict-live"), byId("readout").textContent);
}

function sayCursor() {
  if (!shown?.from || byId("bands").contains(document.activeElement)) return;
  setText(byId("readout"), cursor === null ? "" : sayStep(cursor));
}

function sayStep(i) {
  const { from, step_s, counts } = shown;
  const per = (name) => rate((counts[name][i] ?? 0) / step_s);
  const parts = [`allowed ${per("allowed")}/s`, `denied ${per("denied")}/s`];
  for (const [name, text] of [["shadow_denied", "would be denied"],
    ["degraded", "without the store"], ["error", "errors"]]) {
    if (counts[name][i]) parts.push(`${text} ${per(name)}/s`);
  }
  return `${timeOfDay((from + i * step_s) * 1000)}  ${parts.join(", ")}`;
}
