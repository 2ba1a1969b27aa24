// What a denied key asked for, and how much: is it a bot, or an office?

import { number, visible } from "./format.js";
import { timeOfDay } from "./times.js";

// deniedKey returns what is known of a key that a rule denies, or null.
export const deniedKey = (model, rule, key) =>
  model.rules().find((r) => r.name === rule)?.denied_keys.find((k) => k.key === key) ?? null;

// seenText says which of its requests were noted, or is "".
export function seenText(key) {
  if (!key?.seen) return "";
  const { requests, methods, paths, agents } = key.seen;
  const what = key.shadow_denied ? "Denied, or would be," : "Denied";
  return `${what} from ${timeOfDay(key.first)} to ${timeOfDay(key.last)}. The newest ${
    number(requests)} that were noted: ${list(methods, requests)} ${list(paths, requests)
  }; user agents ${list(agents, requests)}.`;
}

const several = 3; // user agents and paths, from which on a key may be many people

// manyText says that a key may be many people, or is "". A bot that names many agents still asks
// for one thing.
export const manyText = (key) => ([key?.seen?.agents, key?.seen?.paths].some((of) =>
  Object.keys(of ?? {}).length < several) ? ""
  : "It has several user agents and paths: one key can be many people, such as the address of an "
    + "office. A ban stops all of them.");

// list names texts with how often they were there, the most frequent first. A count is left out if
// it is that of all.
function list(texts, all) {
  const names = Object.entries(texts).sort(([, a], [, b]) => b - a);
  const rest = all - names.reduce((sum, [, n]) => sum + n, 0);
  const parts = names.map(([text, n]) =>
    `${visible(text) || "(none)"}${n === all ? "" : ` (${number(n)})`}`);
  return [...parts, ...rest > 0 ? [`others (${number(rest)})`] : []].join(", ");
}

// wanted returns limits that would let a key pass with what it asks for now, and a fifth more: what
// they grant and what is denied, in the unit of each. Other texts stay as they are.
export function wanted(limits, per_s) {
  return limits.map((limit) => {
    const parts = /^(\d+)\/(s|m|h|d)( burst (\d+))?(.*)$/.exec(limit);
    if (!parts || !(per_s > 0)) return limit;
    const [, count, unit, , burst, rest] = parts;
    const denied = per_s * { s: 1, m: 60, h: 3600, d: 86400 }[unit];
    const n = rounded((Number(count) + denied) * 1.2);
    return `${n}/${unit}${burst ? ` burst ${Math.max(n, Number(burst))}` : ""}${rest}`;
  });
}

// rounded rounds up to two digits.
function rounded(n) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(n)) - 1);
  return Math.ceil(n / step) * step;
}
