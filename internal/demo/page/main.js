// Puts the page together: what is sent, when the server is asked for the truth, and
// when it is drawn.

import { rateAt, stepOf, steps } from "./rate.js";
import * as api from "./api.js";
import * as edge from "./edge.js";
import { scaleOf } from "./timeline.js";
import { span } from "./history.js";
import { Lane } from "./lane.js";
import { pause, Stream } from "./stream.js";
import { Summary } from "./summary.js";
import { thousands } from "./level.js";

const $ = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const lanes = [new Lane("left", apply), new Lane("right", apply)];
const summary = new Summary($("summary"));
const stream = new Stream(sendNow);

const examples = {
  edge: [
    { algorithm: "fixed-window", capacity: "10", period: "5s" },
    { algorithm: "sliding-log", capacity: "10", period: "5s" },
  ],
  refill: [
    { algorithm: "stepped", capacity: "20", refill: "10", period: "2s" },
    { algorithm: "token-bucket", capacity: "20", refill: "10", period: "2s" },
  ],
  sliding: [
    { algorithm: "sliding-window", capacity: "100", period: "10s" },
    { algorithm: "sliding-log", capacity: "100", period: "10s" },
  ],
};

// The clock of the store is this far ahead of performance.now(), and not less: the
// answer that came fastest tells best. Clocks drift, so old ones count for less.
let ahead = -Infinity;
let newest = 0;
let asked = 0;
const now = () => performance.now() + ahead;

function setClock(told) {
  const sample = told - performance.now();
  ahead = sample < ahead - 5000 ? sample : Math.max(sample, ahead - 1);
}

// take shows a state of the server, unless a newer one is shown already.
function take(state) {
  asked = performance.now();
  sayLost(); // it answers
  setClock(state.now);
  if (state.now < newest && state.now > newest - 5000) return; // unless a clock was set back
  newest = state.now;
  $("store").textContent = state.store;
  state.lanes.forEach((s, i) => lanes[i].update(s));
}

async function sendNow(n, at) {
  await beginning.catch(() => {}); // whoever asked for it says why not
  const before = generation;
  const batch = await api.send(n, at);
  if (batch.state) take(batch.state);
  if (generation !== before) return; // it was sent before all began anew
  batch.lanes.forEach((b, i) => lanes[i].record(batch.at, b));
  decided.push([performance.now(), n]);
  dirty = true;
  summary.tell(() => lanes.map((l) => l.sentence()).join(" "));
  if (batch.cut) throw new Error(`the store was too slow: ${decidedOf(batch, n)}`);
}

function decidedOf(batch, n) {
  const each = batch.lanes.map((b) => `${thousands(b.allowed + b.denied)}`);
  const decided = each[0] === each[1] ? each[0] : each.join(" on the left and ") + " on the right";
  return `of ${thousands(n)} requests ${decided} were decided, and the rest is not counted`;
}

async function apply(name, settings) {
  take(await api.setLimit(name, settings));
  dirty = true;
  summary.tell(() => `The ${name} limit is now ${lanes[name === "left" ? 0 : 1].state.limit}.`);
}

// A batch counts only if nothing has begun anew since it was sent.
let generation = 0;
// What is sent while all begins anew waits for that, so that nobody need know which
// of the two the server met first.
let beginning = Promise.resolve();

async function afresh() {
  beginning = api.reset();
  take(await beginning);
  generation++;
  lanes.forEach((l) => l.clear());
  dirty = true;
}

// alertIn shows a message in an element that speaks up whenever it is written, and
// so is written only when it says something else.
function alertIn(element, message = "") {
  if (element.textContent !== message) element.textContent = message;
  element.hidden = !message;
}

// complain shows what went wrong with the traffic, or nothing; sayLost, that the
// server or its store cannot be reached.
const complain = (message) => alertIn($("traffic-error"), message);
const sayLost = (message) => alertIn($("lost"), message);

// attempt does something that a person asked for, and shows what went wrong.
async function attempt(action) {
  try {
    await action();
    if (!document.querySelector("#traffic [aria-invalid=true]")) complain();
  } catch (error) {
    complain(error.message);
    error.field?.focus();
  }
}

// number reads a field, or throws what would be accepted.
function number(input, name) {
  const text = input.value.trim().replaceAll(",", "");
  const ok = /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 10_000;
  input.setAttribute("aria-invalid", String(!ok));
  if (ok) return Number(text);
  throw Object.assign(new Error(`${name} is "${input.value}"; want a whole number from 1 to 10,000`), { field: input });
}

const one = () => attempt(() => sendNow(1));
const burst = () => attempt(() => sendNow(number($("burst"), "the number of requests")));
const reset = () => attempt(afresh);

function toggleStream() {
  return attempt(async () => {
    if (stream.running) {
      stream.stop();
      return;
    }
    stream.rate = number($("rate"), "the rate");
    const ended = stream.start();
    tellStatus("");
    showStream();
    complain();
    await ended;
  }).finally(showStream);
}

function showStream() {
  $("stream").setAttribute("aria-pressed", String(stream.running));
  $("stream-label").textContent = stream.running ? "Stop stream" : "Start stream";
}

function acrossTheEdge() {
  return attempt(async () => {
    if ($("edge").getAttribute("aria-disabled") === "true") return;
    const bursts = edge.plan(lanes);
    complain();
    stream.stop();
    $("edge").setAttribute("aria-disabled", "true");
    try {
      await afresh();
      await edge.run(bursts, now, sendNow, (text) => tellStatus(text));
      tellStatus("across the edge: " + lanes.map((l) => `${l.name} ${l.state.most} of ${l.state.bound}`).join(", "), 10_000);
    } catch (error) {
      tellStatus("");
      throw error;
    } finally {
      $("edge").setAttribute("aria-disabled", "false");
    }
  });
}

async function tryExample(name) {
  await attempt(async () => {
    stream.stop();
    for (const [i, settings] of examples[name].entries()) await apply(lanes[i].name, settings);
    await afresh();
    lanes.forEach((l) => {
      l.complain();
      l.fill();
    });
  });
}

// The status line shows how far something is, or how fast the stream runs.
const decided = [];
let told = { text: "", until: 0 };

function tellStatus(text, keep = 1000) {
  told = { text, until: performance.now() + keep };
}

function statusText() {
  const second = performance.now() - 1000;
  while (decided.length && decided[0][0] < second) decided.shift();
  if (performance.now() < told.until) return told.text;
  if (!stream.running) return "";
  const n = decided.reduce((sum, [, requests]) => sum + requests, 0);
  return `${thousands(n)} decided in the last second`;
}

// The slider is logarithmic: each hundred of its steps is a power of ten.
function wireRate() {
  const follow = () => {
    try {
      stream.rate = number($("rate"), "the rate");
      $("slider").value = stepOf(stream.rate);
      $("slider").setAttribute("aria-valuetext", `${thousands(stream.rate)} a second`);
      complain();
    } catch (error) { // said, but whoever has left the field is not taken back
      complain(error.message);
    }
  };
  $("slider").max = steps;
  $("slider").addEventListener("input", () => {
    $("rate").value = rateAt(Number($("slider").value));
    follow();
  });
  $("rate").addEventListener("change", follow);
  follow();
}

function wireKeys() {
  const actions = { s: one, b: burst, t: toggleStream, e: acrossTheEdge, r: reset, 1: () => lanes[0].focus(), 2: () => lanes[1].focus() };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
    const action = actions[event.key.toLowerCase()];
    if (!action || typing || event.ctrlKey || event.altKey || event.metaKey || event.repeat || !$("shortcuts").checked) return;
    event.preventDefault();
    action();
  });
}

function wire() {
  $("one").addEventListener("click", one);
  $("edge").addEventListener("click", acrossTheEdge);
  $("reset").addEventListener("click", reset);
  const onSubmit = (form, action) => form.addEventListener("submit", (event) => {
    event.preventDefault();
    action();
  });
  onSubmit($("burst-form"), burst);
  onSubmit($("stream-form"), () => {
    const entered = document.activeElement === $("rate"); // Enter changes the rate of a stream, and does not stop it
    if (!entered || !stream.running) toggleStream();
  });
  for (const button of document.querySelectorAll("[data-example]")) {
    button.addEventListener("click", () => tryExample(button.dataset.example));
  }
  wireRate();
  wireKeys();
}

// poll asks for the truth while nothing else brings it: often while something
// refills, seldom when all is full.
async function poll() {
  let lost = false;
  for (;;) {
    const resting = lanes.every((l) => l.state && l.state.reset === 0);
    await pause(lost || resting ? 1000 : 250);
    if (document.hidden || performance.now() - asked < 200) continue;
    try {
      take(await api.getState());
      lost = false;
      sayLost();
    } catch (error) {
      lost = true;
      sayLost(error.message);
    }
  }
}

// draw shows the present some twenty times a second, or twice if less motion is
// wished for; and at once when something has been decided.
let drawn = 0;
let dirty = true;

function draw(frame) {
  requestAnimationFrame(draw);
  if (frame - drawn < (calm.matches ? 500 : 45) && !(dirty && !calm.matches)) return;
  drawn = frame;
  dirty = false;
  const end = calm.matches ? Math.floor(now() / 1000) * 1000 + 1000 : now();
  const bins = lanes.map((l) => l.history.since(end));
  const top = scaleOf(bins.map((b) => b.filter((bin) => bin.start > end - span)));
  lanes.forEach((l, i) => l.draw(now(), end, bins[i], top));
  const status = statusText();
  if ($("status").textContent !== status) $("status").textContent = status;
}

async function begin() {
  wire();
  for (;;) {
    try {
      take(await api.getState());
      break;
    } catch (error) {
      sayLost(error.message);
      await pause(1000);
    }
  }
  sayLost();
  lanes.forEach((l) => l.fill());
  requestAnimationFrame(draw);
  document.documentElement.dataset.ready = "true";
  poll();
}

begin();
