// What is in force for one key, said beside it, with the way back.

import { disable, h, onAct, setText } from "./dom.js";
import { time, utc } from "./format.js";

// untilText says until when an override counts.
export const untilText = (until) => (until ? `until ${time(Date.parse(until))}` : "until lifted");

function text(override, key) {
  const what = override.ban ? "banned" : `raised to ${override.limits.join(", ")}`;
  const by = override.key === key ? "" : ` by ${override.key}`;
  return `${what}${by} ${untilText(override.until)}`;
}

// standing fills element with the override of a key and a button to undo it.
export function standing(app, element, rule, key) {
  const override = app.model.override(rule, key);
  const act = override && app.model.lastAct(rule, key);
  const id = override ? `${text(override, key)} ${act?.id} ${app.cannotAct()}` : "";
  if (element.dataset.shows === id) return Boolean(override);
  element.dataset.shows = id;
  if (!override) {
    element.replaceChildren();
    return false;
  }
  const label = h("span", { class: "badge" }, text(override, key));
  if (override.until) label.title = utc(Date.parse(override.until));
  const back = h("button", { type: "button", class: "small" });
  setText(back, act ? "Undo" : "Lift…");
  onAct(back, () => (act ? app.acting.undo(act) : app.acting.open("lift", { rule, key })));
  disable(back, app.cannotAct());
  const mine = override.key === key && override.source !== "file";
  element.replaceChildren(label, ...(mine ? [back] : []));
  return true;
}
