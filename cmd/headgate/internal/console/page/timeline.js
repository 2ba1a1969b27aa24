// The 15 minutes of all rules or of one, with a scale, a cursor and the numbers below it.

import { byId, h, setAttribute, setText } from "./dom.js";
import { rate } from "./format.js";
import { Spark } from "./spark.js";
import { time, timeOfDay } from "./times.js";

const most = 4; // marks with their words below the chart
const spark = new Spark(130);
let shown = null; // the history that is drawn
let marked = []; // what was done and what changed, as {at, text}
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

// draw draws the history of what, which is a rule or "all rules", with marks.
export function draw(history, what, marks) {
  [shown, marked] = [history, marks];
  const { up, down, base } = spark.draw(history.counts, history.gaps);
  setText(byId("plot-what"), what);
  setText(byId("scale-up"), up ? `${rate(up / history.step_s)}/s` : "");
  setText(byId("scale-down"), down ? `${rate(down / history.step_s)}/s` : "");
  byId("plot-box").style.setProperty("--base", `${base * 100}%`);
  drawTicks(history);
  drawMarks();
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

// drawMarks marks the times, so that the reader sees what changed after each.
function drawMarks() {
  const { from, step_s } = shown;
  byId("actions-marks").replaceChildren(...marked.flatMap(({ at, text }) => {
    const place = (at / 1000 - from) / (steps() * step_s);
    if (place <= 0 || place > 1) return [];
    const mark = h("span", { title: text });
    mark.style.left = `${place * 100}%`;
    return [mark];
  }));
  setText(byId("plot-causes"), marked.filter(({ at }) => at / 1000 > from).slice(-most)
    .map(({ at, text }) => `${timeOfDay(at)} ${text}`).join("; "));
}

function look(step, aloud = false) {
  cursor = step === null ? null : Math.max(0, Math.min(steps() - 1, step));
  const line = byId("cursor");
  line.hidden = cursor === null;
  if (cursor !== null) line.style.left = `${(cursor + 0.5) / steps() * 100}%`;
  sayCursor();
  if (aloud) setText(byId("plot-live"), byId("readout").textContent);
}

function sayCursor() {
  if (!shown?.from) return;
  setText(byId("readout"), cursor === null ? "" : sayStep(cursor));
}

function sayStep(i) {
  const { from, step_s, counts } = shown;
  const per = (name) => rate((counts[name][i] ?? 0) / step_s);
  const parts = [`allowed ${per("allowed")}/s`, `denied ${per("denied")}/s`];
  if (counts.shadow_denied[i]) parts.push(`would be denied ${per("shadow_denied")}/s`);
  if (counts.degraded[i]) parts.push(`without the store ${per("degraded")}/s`);
  if (counts.error[i]) parts.push(`errors ${per("error")}/s`);
  if (shown.gaps[i]) parts.push("other instances are not known");
  const near = marked.filter(({ at }) => Math.abs(at / 1000 - from - (i + 0.5) * step_s) < step_s);
  parts.push(...near.slice(0, 2).map(({ text }) => text));
  return `${timeOfDay((from + i * step_s) * 1000)}  ${parts.join(", ")}`;
}
