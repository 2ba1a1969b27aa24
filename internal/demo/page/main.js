// Puts the page together: who sends what, and when it is drawn.

import { byId as $, copyText, setText } from "./dom.js";
import { Lane } from "./lane.js";
import { linkOf, read } from "./link.js";
import { Player } from "./player.js";
import { scaleOf } from "./scale.js";
import { Session } from "./session.js";
import { summaryIn } from "./summary.js";
import { Tour } from "./tour.js";
import { alertIn, complain, Traffic } from "./traffic.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const wide = matchMedia("(min-width: 60rem)");

const lanes = ["left", "right"].map((name) => new Lane(name, apply));
const session = new Session(show, (message) => alertIn($("lost"), message));
const summarise = summaryIn($("summary"));
const traffic = new Traffic(session, lanes, () => {
  dirty = true;
  summarise(() => lanes.map((l) => l.sentence(session.now())).join(" "));
});
const player = new Player((line, signal) => traffic.perform(line, signal));
const fail = (error) => complain(error.message);
const tour = new Tour({ begin, play, stop, limits, reveal, fail });

function show(state, own) {
  const before = limits(), decided = counts();
  $("store").textContent = state.store;
  state.lanes.forEach((s, i) => lanes[i].update(s));
  dirty = true;
  const changed = lanes.filter((l, i) => l.state.limit !== before[i]);
  if (changed.length > 0 || !own && counts() !== decided) traffic.tell("", 0); // it is of before
  if (own || changed.length === 0) return;
  const [{ name, state: { limit } }] = changed;
  const one = `The ${name} limit was changed in another tab or program to ${limit}`;
  traffic.tell(changed.length === 1 ? one : "Both limits were changed in another tab or program",
    6000);
}

function limits() {
  return lanes.map((l) => l.state?.limit);
}

function counts() {
  return lanes.map((l) => `${l.state?.allowed} ${l.state?.denied}`).join();
}

async function apply(name, text) {
  await session.setLimit(name, text);
  const lane = lanes[name === "left" ? 0 : 1];
  summarise(() => `The ${name} limit is now ${lane.state.limit}.`);
}

// begin sets the limits that are given, and resets both lanes.
async function begin(left, right) {
  await session.reset(left, right);
  lanes.forEach((l) => l.form.restore());
}

function stop() {
  player.stop();
  traffic.stop();
}

function play(script, tell) {
  complain();
  return player.play(script, tell);
}

// follow applies the settings that the address carries, and removes them from it, so
// that a reload does not begin again.
async function follow() {
  try {
    const settings = read(location.hash);
    if (!settings) return;
    stop();
    if (settings.left || settings.right) await begin(settings.left, settings.right);
    if (settings.burst) $("burst").value = settings.burst;
    if (settings.rate) traffic.setRate(settings.rate);
    history.replaceState(null, "", location.pathname + location.search);
    complain();
  } catch (error) {
    complain(`The link is not valid, so the limits are unchanged: ${error.message}`);
  }
}

async function copyLink() {
  const [left, right] = limits();
  const link = linkOf({ left, right, burst: $("burst").value, rate: $("rate").value });
  if (await copyText(link, $("copy-link"))) return;
  history.replaceState(null, "", link); // where a person can copy it
  $("copy-link").textContent = "Copy the address";
}

// reveal scrolls the lanes into view above the tour, and no further than that takes.
function reveal() {
  const { top, bottom } = $("lanes").getBoundingClientRect();
  const hidden = bottom - (innerHeight - $("tour").offsetHeight - 16) + 12;
  const by = top < 0 ? top - 12 : Math.min(Math.max(0, hidden), top - 12);
  scrollBy({ top: by, behavior: calm.matches ? "auto" : "smooth" });
}

function wire() {
  const on = (id, type, action) => $(id).addEventListener(type, (event) => {
    event.preventDefault();
    traffic.attempt(action);
  });
  on("one", "click", () => traffic.one());
  on("burst-form", "submit", () => traffic.burst());
  on("stream-form", "submit", () => {
    // Enter in the rate changes a stream that runs, and does not stop it.
    const entered = document.activeElement === $("rate");
    if (entered && $("stream").getAttribute("aria-pressed") === "true") return undefined;
    player.stop(); // whose stream it may be
    return traffic.toggleStream();
  });
  on("edge", "click", () => {
    player.stop();
    return traffic.acrossTheEdge();
  });
  on("reset", "click", () => {
    player.stop();
    traffic.tell("", 0);
    return session.reset();
  });
  $("copy-link").addEventListener("click", copyLink);
  $("more").addEventListener("click", () => {
    const open = $("traffic").classList.toggle("open");
    $("more").setAttribute("aria-expanded", String(open));
  });
  addEventListener("hashchange", follow);
}

// wireFolds opens the folds on a wide screen, where both lanes open and close theirs
// together, so that their boxes stay in line.
function wireFolds() {
  const folds = document.querySelectorAll(".fold");
  const unfold = () => folds.forEach((fold) => (fold.open = wide.matches));
  unfold();
  wide.addEventListener("change", unfold);
  for (const fold of folds) {
    fold.addEventListener("toggle", () => {
      if (!wide.matches) return;
      const twins = document.querySelectorAll(`[data-fold=${fold.dataset.fold}]`);
      for (const twin of twins) twin.open = fold.open;
    });
  }
}

// draw shows the present: thirty times a second while something moves, which is each pixel of the
// axis, ten times a second otherwise, and twice if the reader prefers less motion.
let drawn = 0;
let dirty = true;

function draw(frame) {
  requestAnimationFrame(draw);
  const now = session.now();
  const busy = dirty || lanes.some((l) => l.active(now));
  if (frame - drawn < (calm.matches ? 500 : busy ? 24 : 100)) return;
  drawn = frame;
  dirty = false;
  const end = calm.matches ? Math.floor(now / 1000) * 1000 + 1000 : now;
  const top = scaleOf(lanes.map((l) => l.bins(end)));
  for (const lane of lanes) lane.draw({ now, end, top });
  for (const place of [$("status"), $("tour-status")]) setText(place, traffic.status());
}

async function start() {
  wireFolds();
  wire();
  const places = document.querySelectorAll("[data-origin]");
  for (const place of places) place.textContent = location.origin;
  await session.first();
  await follow();
  requestAnimationFrame(draw);
  document.documentElement.dataset.ready = "true";
  session.poll(() => lanes.every((l) => l.state.reset === 0));
}

start();
