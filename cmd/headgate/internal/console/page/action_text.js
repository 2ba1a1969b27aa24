// What acts do, in words.

import { longSpan, number, plural } from "./format.js";
import { breadth, inRules, listOf, siblings } from "./key_breadth.js";
import { deniedKey, whoText } from "./key_requests.js";
import { brief } from "./key_text.js";
import { time } from "./times.js";
import { differs, wouldDeny } from "./verdict.js";

export const durations = [
  [600, "10 minutes"], [3600, "1 hour"], [86400, "1 day"], [null, "until lifted"],
];

const many = 5; // times the limit, from which on a raise is unusual

const names = { enforce: "enforce", shadow: "shadow", off: "off", file: "of the file" };

// outcome says what was done, as a sentence. rules are those of acts done together.
export function outcome({ act, rule, key, limits, mode, until, undone, ended }, rules = [rule]) {
  const end = until && !undone && !ended ? ` until ${time(until)}` : "";
  const of = `${brief(key ?? "")} in ${inRules(rules)}`;
  switch (act) {
    case "ban": return `Banned ${of}${end}.`;
    case "raise": return `Raised ${of} to ${limits.join(", ")}${end}.`;
    case "lift": return `Lifted the override of ${of}.`;
    case "reset": return `Reset ${of}.`;
    case "restore": return "Put back what the store had lost.";
    default: return `Switched rule ${rule} to mode ${names[mode] ?? mode}${end}.`;
  }
}

// idleBans says that bans deny nothing because their rule does not enforce, or is "".
export function idleBans({ rule, idle_bans: bans }) {
  return bans ? `Rule ${rule} does not enforce, so its ${bans === 1 ? "ban has"
    : `${number(bans)} bans have`} no effect.` : "";
}

// button is the text of the button that does it.
export function button(request) {
  const end = request.for_s ? ` for ${longSpan(request.for_s)}` : "";
  const where = request.also?.length ? ` in ${request.also.length + 1} rules` : "";
  switch (request.act) {
    case "ban": return `Ban${where}${end || " until lifted"}`;
    case "raise": return request.for_s ? `Raise${end}` : "Raise until lifted";
    case "lift": return "Lift";
    case "reset": return "Reset";
    default: return request.mode === "file" ? "Use the mode of the file"
      : `Switch to ${request.mode}${end}`;
  }
}

// effect says what a request will do, in sentences.
export function effect(request, model, now = Date.now()) {
  if (model.state.store.state === "down") {
    return "The store is down. If you have sent this already, it may have been done: when the "
      + "store answers, look at the list of actions, and send this again if it is not there.";
  }
  const rule = model.rule(request.rule);
  const until = request.for_s ? `until ${time(now + request.for_s * 1000, now)}`
    : `until it is ${request.act === "mode" ? "changed" : "lifted"}`;
  const all = fleet(model);
  switch (request.act) {
    case "ban": return `${banText(request, rule, until, model)} ${all}`;
    case "raise": return raiseText(request, until, model, all);
    case "lift": return "The override is deleted, and the limits in the file apply to this key "
      + `again. ${all}`;
    case "reset": return "The used tokens of this key are cleared, so that it can send as much "
      + `as a new key. This cannot be undone.${model.override(request.rule, request.key)?.ban
        ? " But it stays banned: lift the ban to let it send." : ""}`;
    default: return modeText(request, rule, until, model) + ` ${all}`;
  }
}

// caution warns of what a person may not expect of a request, or is "".
export function caution({ act, rule, key, limits }, model) {
  if (act === "ban") return whoText(deniedKey(model, rule, key));
  if (differs(model, rule) && act !== "reset") {
    return `Rule ${rule} is not the same on all instances.`;
  }
  if (act !== "raise") return "";
  const override = model.override(rule, key);
  if (!override?.ban) return raiseCaution(rule, key, limits, model);
  return override.key === key ? "This key is banned. Lift the ban first, then raise it."
    : `This key is banned by ${override.key}. The raise lets it through until it ends.`;
}

// raiseCaution compares limits with those in force.
function raiseCaution(rule, key, limits, model) {
  const split = (limit) => /^(\d+)(\/.*?)( burst .*)?$/.exec(limit) ?? [];
  const [[, now, per], [, wanted, unit]] = [model.limits(rule, key).now[0], limits[0]].map(split);
  const times = per === unit ? Math.round(wanted / now) : 0;
  return times < many ? ""
    : `This is ${number(times)} times the limit: raise it only for a client that you know.`;
}

const fleet = (model) => (model.state.store.state === "slow"
  ? "The store is slow: this may be late, or fail." : "It takes effect within a second.");

function banText({ rule, key, also }, state, until, model) {
  const wide = breadth(model, rule, key);
  const who = wide ? "Every request with such a key" : "Every request of this key";
  if (state && state.mode !== "enforce") {
    return `Rule ${rule} is in mode ${state.mode}, so the ban denies nothing now. It counts what `
      + `would be denied, ${until}.`;
  }
  const text = `${who} that ${inRules([rule, ...also ?? []])} ${also?.length ? "apply" : "applies"
  } to is denied ${until}.`;
  if (wide) return text;
  const others = siblings(model, rule, key).map((r) => r.name)
    .filter((name) => !also?.includes(name));
  return text + (others.length ? ` The key can still use ${listOf(others)}.` : "")
    + " Other keys are not affected.";
}

function raiseText({ rule, key, limits, keep_usage }, until, model, all) {
  if (!limits.length) return "Enter limits such as 100/m burst 20, or 10/s, 500/h.";
  const { now, override } = model.limits(rule, key);
  const instead = override?.limits?.length ? `${now.join(", ")}, to which it was raised`
    : `${now.join(", ")}, as in the file`;
  return `Rule ${rule} allows this key ${limits.join(", ")} ${until}`
    + (now.length ? `, instead of ${instead}. ` : ". ")
    + (keep_usage ? "Its used tokens still count. "
      : "Its used tokens are cleared, and an undo does not restore them. ") + all;
}

function modeText({ rule, mode }, state, until, model) {
  const wanted = mode === "file" ? state.file_mode : mode;
  const changed = wanted === state.file_mode ? "" : ` ${until}`;
  const n = (state.denied ?? 0) + (state.shadow_denied ?? 0);
  const present = !n ? "With the present traffic, that is about 0 requests a second."
    : `With the present traffic, it ${wouldDeny({ ...state, shadow_denied: n,
      denied_keys: state.denied_keys.map((k) => ({ ...k, shadow_denied: 1 })) })}.`;
  const bans = model.bans(rule);
  const idle = bans === 0 ? "" : ` Its ${plural(bans, "ban")} ${bans === 1 ? "has" : "have"
  } no effect then: requests of banned keys are allowed.`;
  switch (wanted) {
    case "enforce": return `Rule ${rule} denies requests over its limits${changed}. `
      + present;
    case "shadow": return `Rule ${rule} denies nothing${changed}, so it limits no client. It only `
      + `counts what it would deny. ${present}${idle}${model.state.store.state === "slow"
        ? " Requests still wait for the store." : ""}`;
    default: return `Rule ${rule} does not count or deny anything${changed}.${idle}`;
  }
}
