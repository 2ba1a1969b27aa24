// What a denied key asked for, how much, and from where: is it a bot, or an office?

import { number, plural, visible } from "./format.js";
import { timeOfDay } from "./times.js";

// deniedKey returns what is known of a key that a rule denies, or null.
export const deniedKey = (model, rule, key) =>
  model.rules().find((r) => r.name === rule)?.denied_keys.find((k) => k.key === key) ?? null;

const kept = 64; // noted requests of an instance

// seenText says which of its requests were noted, or is "".
export function seenText(key) {
  if (!key?.seen) return "";
  const { requests, methods, paths, agents, kinds } = key.seen;
  const what = key.shadow_denied ? "Denied, or would be," : "Denied";
  return `${what} from ${timeOfDay(key.first)} to ${timeOfDay(key.last)}. The newest ${
    number(requests)} that were noted, from ${plural(kinds.clients, "address", "addresses")}: ${
    list(methods, requests)}${kinds.paths > 3 ? `; ${kinds.paths} paths: ` : " "}${
    list(paths, requests)}; user agents ${list(agents, requests)}.`;
}

const several = 3; // user agents and paths, from which on a key may be many people
const hasty = 10; // denials a second, from which on a client does not wait between its requests
const crowd = 8; // addresses, from which on a key that is no address is used by others

const atLeast = (n, requests) => `${n === requests && n >= kept ? "at least " : ""}${n} addresses`;

// whoText says who a key may be, or is "". With isCaution, only what makes a ban a mistake.
export function whoText(key, isCaution = false) {
  if (!key?.seen) return "";
  const { requests, kinds, paths, permits = 0 } = key.seen;
  if (2 * permits > requests) {
    return "All of its permits are in use, so the rule denies what comes at the same time: "
      + "requests or streams that take long, or hang.";
  }
  if (kinds.forwarded >= crowd) {
    return `Its requests name ${atLeast(kinds.forwarded, requests)} in X-Forwarded-For, which have `
      + "no effect: if it is a proxy of yours, add it to trust in the file; else it invents them, "
      + "and can be banned.";
  }
  if (!key.key.includes("ip:") && kinds.clients >= crowd) {
    return `${atLeast(kinds.clients, requests).replace(/^a/, "A")} use this key: a client with `
      + "many servers, or an attack on one account. The rule holds it to its limit; a ban locks "
      + "out its owner, too.";
  }
  if (isCaution) return "";
  if (isCrowd(key)) {
    return "It has several user agents and paths: one key can be many people, such as the address "
      + "of an office. A ban stops all of them.";
  }
  return key.per_s >= hasty && kinds.paths === 1 && kinds.agents === 1 && kinds.clients === 1
    ? `It repeats ${Object.keys(paths)[0]} only, like a client that retries without pause.`
    : "";
}

// isCrowd is whether a key may be many people. A bot with many agents still asks for one thing.
export const isCrowd = (key) => [key?.seen?.kinds.agents, key?.seen?.kinds.paths]
  .every((n) => n >= several);

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
    const more = Math.ceil(Number(burst) * n / Number(count)); // in the same proportion
    return `${n}/${unit}${burst ? ` burst ${Math.min(n, more)}` : ""}${rest}`;
  });
}

// rounded rounds up to two digits.
function rounded(n) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(n)) - 1);
  return Math.ceil(n / step) * step;
}
