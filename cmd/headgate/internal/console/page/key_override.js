// The override of one key, shown next to it with a button to undo it.

import { disable, onAct } from "./controls.js";
import { h, setText } from "./dom.js";
import { time, utc } from "./times.js";

// untilText says until when an override counts.
export const untilText = (until) => (until ? `until ${time(Date.parse(until))}` : "until lifted");

// idleText says that a rule that only counts does not deny its banned keys, or "".
export function idleText(model, rule) {
  const mode = model.state?.rules.find((r) => r.name === rule)?.mode ?? "enforce";
  return mode === "enforce" ? "" : `not denied: the rule is in mode ${mode}`;
}

// overrideText says what is in force for a key, or "".
export function overrideText(model, rule, key) {
  const override = model.override(rule, key);
  if (!override) return "";
  const what = override.ban ? "banned" : `raised to ${override.limits.join(", ")}`;
  const by = override.key === key ? "" : ` by ${override.key}`;
  const idle = override.ban && idleText(model, rule);
  return `${what}${by} ${untilText(override.until)}${idle ? `, but ${idle}` : ""}`;
}

// keyOverride fills element with the override of a key and a button to undo it.
export function keyOverride(app, element, rule, key) {
  const override = app.model.override(rule, key);
  const text = overrideText(app.model, rule, key);
  const act = override && app.model.lastAct(rule, key);
  const id = override ? `${text} ${act?.id} ${app.cannotAct()}` : "";
  if (element.dataset.shows === id) return Boolean(override);
  element.dataset.shows = id;
  if (!override) {
    element.replaceChildren();
    return false;
  }
  const label = h("span", { class: "badge" }, text);
  if (override.until) label.title = utc(Date.parse(override.until));
  const back = h("button", { type: "button", class: "small" });
  setText(back, act ? "Undo" : "Lift…");
  onAct(back, () => (act ? app.acting.undo([act]) : app.acting.open("lift", { rule, key })));
  disable(back, app.cannotAct());
  const mine = override.key === key && override.source !== "file";
  element.replaceChildren(label, ...(mine ? [back] : []));
  return true;
}
