// Puts the page together: who sends what, and when it is drawn.

import { copyText } from "./copy.js";
import { byId as $ } from "./dom.js";
import { examples } from "./examples.js";
import { Lane } from "./lane.js";
import { linkOf, read } from "./link.js";
import { Player } from "./player.js";
import { scaleOf } from "./scale.js";
import { Session } from "./session.js";
import { Summary } from "./summary.js";
import { Tour } from "./tour.js";
import { alertIn, complain, Traffic } from "./traffic.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const wide = matchMedia("(min-width: 60rem)");

const chips = document.querySelectorAll("[data-example]");
const lanes = ["left", "right"].map((name) => new Lane(name, apply));
const session = new Session(show, (message) => alertIn($("lost"), message));
const summary = new Summary($("summary"));
const traffic = new Traffic(session, lanes, () => {
  dirty = true;
  summary.tell(() => lanes.map((l) => l.sentence()).join(" "));
});
const player = new Player(traffic.controls());
const fail = (error) => complain(error.message);
const tour = new Tour({ begin, play, stop, limits, reveal, fail });

function show(state, own) {
  const before = limits();
  $("store").textContent = state.store;
  state.lanes.forEach((s, i) => lanes[i].update(s));
  dirty = true;
  const changed = lanes.filter((l, i) => l.state.limit !== before[i]);
  if (own || changed.length === 0) return;
  const [{ name, state: { limit } }] = changed;
  const one = `The ${name} limit was changed in another tab or program to ${limit}`;
  traffic.tell(changed.length === 1 ? one : "Both limits were changed in another tab or program",
    6000);
}

function limits() {
  return lanes.map((l) => l.state?.limit);
}

async function apply(name, settings) {
  await session.setLimit(name, settings);
  const lane = lanes[name === "left" ? 0 : 1];
  summary.tell(() => `The ${name} limit is now ${lane.state.limit}.`);
}

// begin sets both limits, and resets both lanes.
async function begin(left, right) {
  await session.begin(left, right);
  lanes.forEach((l) => l.restore());
}

function stop() {
  player.stop();
  traffic.stop();
  for (const chip of chips) chip.setAttribute("aria-pressed", "false");
}

function play(script, tell) {
  complain();
  return player.play(script, tell);
}

// An example runs by itself. A second click stops it.
async function playExample(chip) {
  const running = chip.getAttribute("aria-pressed") === "true";
  stop();
  if (running) return;
  const { left, right, script } = examples[chip.dataset.example];
  chip.setAttribute("aria-pressed", "true");
  await traffic.attempt(async () => {
    try {
      await begin(left, right);
      if (chip.getAttribute("aria-pressed") === "true") await play(script);
    } finally {
      chip.setAttribute("aria-pressed", "false");
    }
  });
}

async function reset() {
  player.stop();
  await session.reset();
}

// follow applies the settings that the address carries, and removes them from it, so
// that a reload does not begin again.
async function follow() {
  try {
    const settings = read(location.hash);
    if (!settings) return;
    stop();
    const [left, right] = limits();
    if (settings.left || settings.right) {
      await begin(settings.left ?? left, settings.right ?? right);
    }
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

function wireKeys(actions) {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
    if (event.key === "Escape" && tour.running) {
      tour.leave();
      return;
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const action = actions[key];
    if (!action || typing || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (!$("shortcuts").checked || (key.startsWith("Arrow") && !tour.running)) return;
    event.preventDefault();
    action();
  });
}

function wire() {
  const attempt = (action) => () => traffic.attempt(action);
  const one = attempt(() => traffic.one());
  const burst = attempt(() => traffic.burst());
  const stream = attempt(() => {
    player.stop(); // whose stream it may be
    return traffic.toggleStream();
  });
  const edge = attempt(() => {
    player.stop();
    return traffic.acrossTheEdge();
  });
  const afresh = attempt(reset);
  $("one").addEventListener("click", one);
  $("edge").addEventListener("click", edge);
  $("reset").addEventListener("click", afresh);
  $("copy-link").addEventListener("click", copyLink);
  onSubmit($("burst-form"), burst);
  onSubmit($("stream-form"), () => {
    // Enter in the rate changes a stream that runs, and does not stop it.
    const entered = document.activeElement === $("rate");
    if (!entered || $("stream").getAttribute("aria-pressed") !== "true") stream();
  });
  for (const chip of chips) {
    chip.addEventListener("click", () => playExample(chip));
  }
  $("more").addEventListener("click", () => {
    const open = $("traffic").classList.toggle("open");
    $("more").setAttribute("aria-expanded", String(open));
  });
  wireKeys({
    s: one, b: burst, t: stream, e: edge, r: afresh,
    1: () => lanes[0].focus(), 2: () => lanes[1].focus(),
    ArrowRight: () => tour.next(), ArrowLeft: () => tour.back(),
  });
  addEventListener("hashchange", follow);
}

function onSubmit(form, action) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    action();
  });
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
// axis, ten times a second otherwise, and twice if the reader prefers less motion. The scale
// glides to a new one.
let drawn = 0;
let dirty = true;
let top = 10;

function draw(frame) {
  requestAnimationFrame(draw);
  const now = session.now();
  const busy = dirty || lanes.some((l) => l.active(now));
  if (frame - drawn < (calm.matches ? 500 : busy ? 24 : 100)) return;
  drawn = frame;
  dirty = false;
  const end = calm.matches ? Math.floor(now / 1000) * 1000 + 1000 : now;
  const wanted = scaleOf(lanes.map((l) => l.bins(end)));
  const near = Math.abs(wanted - top) < 0.05 * wanted;
  top = calm.matches || near ? wanted : top + 0.28 * (wanted - top);
  lanes.forEach((l) => l.draw({ now, end, top, wanted, moving: calm.matches ? 0 : frame }));
  const status = traffic.status();
  for (const place of [$("status"), $("tour-status")]) {
    if (place.textContent !== status) place.textContent = status;
  }
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
