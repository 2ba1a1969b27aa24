// What acts do, in words.

import { brief, count, rate, span, time } from "./format.js";

export const durations = [
  [600, "10 minutes"], [3600, "1 hour"], [86400, "1 day"], [null, "until lifted"],
];

const names = { enforce: "enforce", shadow: "shadow", off: "off", file: "of the file" };

// describe says what was done, as a part of a sentence.
export function describe({ act, rule, key, limits, mode }) {
  const of = `${brief(key ?? "")} in rule ${rule}`;
  switch (act) {
    case "ban": return `ban of ${of}`;
    case "raise": return `raise of ${of} to ${limits.join(", ")}`;
    case "lift": return `lift of the override of ${of}`;
    case "reset": return `reset of ${of}`;
    case "mode": return `rule ${rule} in mode ${names[mode] ?? mode}`;
    default: return `${act} of ${of}`;
  }
}

// outcome says what was done, as a sentence.
export function outcome({ act, rule, key, limits, mode, until }) {
  const end = until ? ` until ${time(until)}` : "";
  const of = `${brief(key ?? "")} in rule ${rule}`;
  switch (act) {
    case "ban": return `Banned ${of}${end}.`;
    case "raise": return `Raised ${of} to ${limits.join(", ")}${end}.`;
    case "lift": return `Lifted the override of ${of}.`;
    case "reset": return `Reset ${of}.`;
    default: return `Switched rule ${rule} to mode ${names[mode] ?? mode}${end}.`;
  }
}

// spanText is how long an act lasts.
export const spanText = (seconds) => (seconds ? `for ${span(seconds)}` : "until it is lifted");

// button is the text of the button that does it.
export function button(request) {
  const end = request.for_s ? ` for ${span(request.for_s)}` : "";
  switch (request.act) {
    case "ban": return request.for_s ? `Ban${end}` : "Ban until lifted";
    case "raise": return request.for_s ? `Raise${end}` : "Raise until lifted";
    case "lift": return "Lift";
    case "reset": return "Reset";
    default: return request.mode === "file" ? "Use the mode of the file"
      : `Switch to ${request.mode}${end}`;
  }
}

// effect says what a request will do, in sentences. rule is that of the newest state.
export function effect(request, model, now = Date.now()) {
  const rule = model.rules().find((r) => r.name === request.rule);
  const until = request.for_s ? `until ${time(now + request.for_s * 1000, now)}`
    : `until it is ${request.act === "mode" ? "changed" : "lifted"}`;
  const all = fleet(model);
  switch (request.act) {
    case "ban": return `${banText(request, rule, until)} ${all}`;
    case "raise": return raiseText(request, until) + ` ${all}`;
    case "lift": return "The override is deleted, and the limits in the file apply to this key "
      + `again. ${all}`;
    case "reset": return "The used tokens of this key are cleared, so that it can send as much "
      + "as a new key.";
    default: return modeText(request, rule, until) + ` ${all}`;
  }
}

function fleet(model) {
  const n = model.state.instances.length;
  return n > 1 ? `It takes effect on all ${count(n)} instances within a second.`
    : "It takes effect within a second.";
}

function banText({ rule }, state, until) {
  if (state?.mode === "shadow") {
    return `Rule ${rule} is in shadow mode, so this only counts: requests of this key would be `
      + `denied ${until}.`;
  }
  return `Every request of this key that rule ${rule} applies to is denied ${until}. `
    + "Other keys are not affected.";
}

function raiseText({ rule, limits, keep_usage }, until) {
  const list = limits.length ? limits.join(", ") : "…";
  return `Rule ${rule} allows this key ${list} ${until}, instead of its limits in the file. `
    + (keep_usage ? "Its used tokens still count." : "Its used tokens are cleared.");
}

function modeText({ rule, mode }, state, until) {
  const wanted = mode === "file" ? state.file_mode : mode;
  const changed = mode === "file" ? "" : ` ${until}`;
  const denied = rate(state.denied + state.shadow_denied);
  switch (wanted) {
    case "enforce": return `Rule ${rule} denies requests over its limits${changed}; `
      + `now that would be about ${denied} a second.`;
    case "shadow": return `Rule ${rule} counts what it would deny${changed}, but denies nothing; `
      + `now it denies ${denied} a second.`;
    default: return `Rule ${rule} does not count or deny anything${changed}.`;
  }
}

