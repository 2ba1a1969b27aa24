// The 15 minutes of all rules or of one, with a scale, a cursor and the numbers below it.

import { byId, h, setAttribute, setText } from "./dom.js";
import { plural, rate } from "./format.js";
import { Spark } from "./spark.js";
import { time, timeOfDay } from "./times.js";
import { describe } from "./words.js";

const spark = new Spark(130);
let shown = null; // the history that is drawn
let done = []; // the acts that are marked
let cursor = null; // the step that a person looks at

export function start() {
  const plot = byId("plot");
  plot.prepend(spark.element);
  new ResizeObserver(() => shown && drawActs()).observe(plot);
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

// draw draws the history of what, which is a rule or "all rules", and when acts were done.
export function draw(history, what, acts) {
  [shown, done] = [history, acts];
  const { up, down, base } = spark.draw(history.counts, history.gaps);
  setText(byId("plot-what"), what);
  setText(byId("scale-up"), up ? `${rate(up / history.step_s)}/s` : "");
  setText(byId("scale-down"), down ? `${rate(down / history.step_s)}/s` : "");
  byId("plot-box").style.setProperty("--base", `${base * 100}%`);
  drawTicks(history);
  drawActs();
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

const labelWidth = 92; // pixels, of the longest label

// place is where an act is on the plot, from 0 to 1.
const place = (act) => (act.at / 1000 - shown.from) / (steps() * shown.step_s);

// drawActs marks the acts, so that it can be seen what changed with them. Where labels would
// overlap, one says how many acts there are.
function drawActs() {
  const width = byId("plot").clientWidth;
  const marks = done.filter((act) => place(act) > 0 && place(act) <= 1)
    .map((act) => ({ act, x: place(act) * width })).sort((a, b) => b.x - a.x);
  byId("acts-marks").replaceChildren(...cluster(marks, width).flatMap(drawCluster));
}

// cluster groups marks, which are sorted from right to left, so that the labels have room.
function cluster(marks, width) {
  const groups = [];
  let end = width; // of the room that is left
  for (const mark of marks) {
    const last = groups.at(-1);
    if (last && mark.x + labelWidth > end) {
      last.acts.push(mark);
      // A label to the right of its line begins at the first act.
      end = last.left ? Math.min(end, mark.x) : mark.x;
      continue;
    }
    const left = mark.x + labelWidth > end; // only the first: its label is to the left
    groups.push({ acts: [mark], left });
    end = left ? mark.x - labelWidth : mark.x;
  }
  return groups;
}

function drawCluster({ acts, left }) {
  const [newest] = acts;
  const text = acts.length > 1 ? plural(acts.length, "action")
    : newest.act.undone ? `${newest.act.act}, undone` : newest.act.act;
  const labelled = left ? newest : acts.at(-1);
  return acts.map((mark) => {
    const line = h("span", { class: left ? "left" : null },
      mark === labelled ? h("b", {}, text) : null);
    line.style.left = `${mark.x}px`;
    return line;
  });
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
  const at = cursor === null ? "" : sayStep(cursor);
  setText(byId("readout"), at);
}

function sayStep(i) {
  const { from, step_s, counts } = shown;
  const per = (name) => rate((counts[name][i] ?? 0) / step_s);
  const parts = [`allowed ${per("allowed")}/s`, `denied ${per("denied")}/s`];
  if (counts.shadow_denied[i]) parts.push(`would be denied ${per("shadow_denied")}/s`);
  if (counts.degraded[i]) parts.push(`without the store ${per("degraded")}/s`);
  if (counts.error[i]) parts.push(`errors ${per("error")}/s`);
  if (shown.gaps[i]) parts.splice(0, parts.length, "other instances are not known");
  const near = done.filter((act) => Math.abs(act.at / 1000 - from - (i + 0.5) * step_s) < step_s);
  parts.push(...near.slice(0, 2).map((act) => describe(act)));
  return `${timeOfDay((from + i * step_s) * 1000)}  ${parts.join(", ")}`;
}
