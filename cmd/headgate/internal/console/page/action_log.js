// The actions of operators, newest first, and the overrides that they left.

import { outcome } from "./action_text.js";
import { disable, onAct } from "./controls.js";
import { byId, h, setAttribute, setText, show } from "./dom.js";
import { idleText, untilText } from "./key_override.js";
import { brief, keyText } from "./key_text.js";
import { Few, Rows } from "./rows.js";
import { time, utc } from "./times.js";

let app, rows, overrides, few;

export function start(theApp) {
  app = theApp;
  rows = new Rows(byId("actions-rows"), makeRow);
  overrides = new Rows(byId("overrides"), makeOverride);
  few = new Few("actions-all", 6, "actions", draw);
}

export function draw() {
  const { acts, config } = app.model;
  if (acts === null) return;
  rows.set(few.of(acts), (act) => act.id);
  show(byId("actions-none"), acts.length === 0 && !isStoreDown());
  drawOverrides(config);
}

const isStoreDown = () => app.model.state?.store.state === "down";

function makeRow(act) {
  const when = h("time", { title: utc(act.at) });
  const state = h("span", { class: "quiet" });
  const back = onAct(h("button", { type: "button", class: "small" }, "Undo"), () =>
    app.acting.undo([act]));
  const words = h("p", { class: "act-text", title: keyText(act.key ?? "") });
  back.setAttribute("aria-label", `Undo: ${outcome(act)}`);
  const note = act.note ? h("q", {}, h("bdi", {}, keyText(act.note))) : null;
  const element = h("li", { class: "act-row" }, when,
    h("div", {}, words, h("p", { class: "quiet" }, note, note ? " " : null,
      h("bdi", {}, `by ${keyText(act.by)}`)), state), back);
  return {
    element,
    update(now) {
      setText(when, time(now.at));
      setText(words, outcome(now));
      setText(state, stateText(now));
      state.hidden = state.textContent === "";
      element.classList.toggle("undone", Boolean(now.undone || now.ended));
      show(back, now.undoable && !now.undone);
      disable(back, app.cannotAct());
    },
  };
}

const ends = {
  expired: "Over", lift: "Lifted", ban: "Replaced by a ban", raise: "Replaced by a raise",
  mode: "Switched again", other: "Changed",
};

// stateText says that an act is not in force any more.
function stateText({ undone, ended }) {
  if (undone) return `Undone at ${time(undone.at)} by ${keyText(undone.by)}`;
  if (!ended) return "";
  const by = ended.by && ended.why !== "expired" ? ` by ${keyText(ended.by)}` : "";
  return `${ends[ended.why] ?? "Ended"}${ended.at ? ` at ${time(ended.at)}` : ""}${by}`;
}

function drawOverrides(config) {
  const items = [
    ...(config?.modes ?? []).map((m) => ({ ...m, isMode: true })),
    ...(config?.overrides ?? []).filter((o) => !o.until || Date.parse(o.until) > Date.now()),
  ];
  overrides.set(items, (o) => JSON.stringify([o.rule, o.key, o.isMode, o.ban, o.limits, o.mode]));
  show(byId("overrides-none"), items.length === 0);
  setText(byId("overrides-none"), isStoreDown() ? "The store is down: overrides cannot be read."
    : "There are no overrides: all keys and rules are as in the file.");
}

function makeOverride(o) {
  const what = o.isMode ? `mode ${o.mode}` : o.ban ? "banned" : o.limits.join(", ");
  const until = h("span", { class: "quiet" });
  const back = onAct(h("button", { type: "button", class: "small" },
    o.isMode ? "Change…" : "Lift…"), () =>
    (o.isMode ? app.acting.open("mode", { rule: o.rule })
      : app.acting.open("lift", { rule: o.rule, key: o.key })));
  const name = o.isMode ? h("strong", {}, h("bdi", {}, o.rule))
    : h("bdi", {}, h("code", { title: keyText(o.key) }, brief(o.key)));
  const element = h("li", { class: "override" },
    h("div", {}, h("p", {}, name, " ", h("span", { class: "badge" }, what)), until), back);
  return {
    element,
    update(now) {
      const rule = o.isMode ? "" : `rule ${o.rule}, `;
      const idle = o.ban && idleText(app.model, o.rule);
      const end = now.until ? untilText(now.until) : o.isMode ? "until changed" : "until lifted";
      const source = now.source === "file" ? ", in the file" : "";
      setText(until, rule + end + source + (idle ? `; ${idle}` : ""));
      setAttribute(until, "title", now.until ? utc(new Date(now.until).getTime()) : null);
      show(back, now.source !== "file");
      disable(back, app.cannotAct());
    },
  };
}
