// What happened: the store was slow or away, the rules changed, operators acted, instances came and
// went. These are the bands below the chart, and the headline names the one that explains denials.

import { outcome } from "./action_text.js";
import { plural } from "./format.js";
import { brief } from "./key_text.js";

const stepTolerance = 6_000; // milliseconds by which a step may begin before its cause
export const causeTime = 15_000; // between a cause and what it began
const burstTime = 60_000; // the same of a change, because a burst may be used up first

// The kinds of events, in the order in which they explain denials.
const kinds = ["rules", "acts", "store", "instances"];

// events returns {kind, at, to, text, rules, begins}, the oldest first: to is the end of what
// lasts, and rules is null for all. Begins is false for what cannot begin denials.
export function events(model) {
  return [...changes(model), ...acts(model), ...outages(model), ...fleet(model)]
    .map((e) => ({ rules: null, begins: true, to: e.at, ...e })).sort((a, b) => a.at - b.at);
}

function changes({ config, state }) {
  const failed = state?.instances.find((i) => i.config?.error)?.config.error;
  return [
    ...(config?.changes ?? []).map(({ at, removed, added }) => {
      const lines = [...removed, ...added];
      const isChange = lines.some((line) => !line.startsWith("override of ")); // for many keys
      return { kind: "rules", at, text: "the rules changed", rules: namesIn(lines), isChange };
    }),
    ...failed ? [{ kind: "rules", at: failed.at, to: Infinity, begins: false, isBad: true,
      text: "the files could not be loaded" }] : [],
  ];
}

// acts are events at their beginning and at their end. A client that may send more can use up other
// limits, too.
function acts({ acts: list, lost }) {
  const begun = (list ?? []).map((a) => ({
    kind: "acts", at: a.at, to: endOf(a) ?? (a.act === "reset" ? a.at : Infinity),
    text: outcome({ ...a, until: null }).slice(0, -1), cause: causeText(a),
    rules: a.act === "raise" || a.act === "reset" ? null : new Set([a.rule]),
    begins: a.act !== "ban" && !a.undone,
  }));
  const ended = (list ?? []).filter((a) => a.undone || a.ended?.why === "expired").map((a) => ({
    kind: "acts", at: endOf(a), isEnd: true, rules: a.act === "ban" ? null : new Set([a.rule]),
    text: `${causeText(a)} ${a.undone ? "was undone" : "ended"}`,
  }));
  return [...begun, ...ended, ...lost?.at ? [{ kind: "acts", at: lost.at, isBad: true,
    text: `${lostText(lost)} lost` }] : []];
}

const causeText = (a) => `the ${a.act === "mode" ? `switch of rule ${a.rule}`
  : `${a.act} of ${brief(a.key ?? "")} in rule ${a.rule}`}`;

const endOf = (a) => a.undone?.at ?? a.ended?.at ?? a.until;

// lostText says what the store has lost: "2 bans and 1 raise were".
export function lostText({ count }) {
  const parts = [["ban", "ban"], ["limits", "raise"], ["mode", "switched mode"]]
    .filter(([kind]) => count[kind] > 0).map(([kind, name]) => plural(count[kind], name));
  const isOne = Object.values(count).reduce((a, b) => a + b) === 1;
  return `${parts.join(" and ")} ${isOne ? "was" : "were"}`;
}

const away = "the store was away";
const pause = 6; // steps of a well store that do not end an outage

// outages says when the store was slow, or decisions were made without it.
function outages(model) {
  const { counts, calls, from, step_s, startOf } = model.history(null);
  const states = calls.map(({ called, late }, i) => {
    const all = counts.allowed[i] + counts.denied[i] + counts.error[i];
    const without = counts.degraded[i] + counts.error[i];
    if (without > 1 && 2 * without >= all) return away;
    return (without > 1 && without >= 0.05 * all) || (called > 1 && 2 * late >= called)
      ? "the store was slow, or failed" : ""; // a single one troubles nobody
  });
  const list = [];
  states.forEach((text, i) => {
    if (!text) return;
    const last = list.at(-1);
    const at = startOf(i), to = (from + (i + 1) * step_s) * 1000;
    const isSame = last && at - last.to <= pause * step_s * 1000;
    if (isSame && last.text === text) last.to = to;
    else list.push({ kind: "store", at, to, text, isBad: true, begins: !isSame });
  });
  return list;
}

// storeSince returns when the trouble with the store that lasts began, or, with isDown, when it did
// not answer any more; or null.
export function storeSince(model, now, isDown = false) {
  const list = outages(model);
  if (!(list.at(-1)?.to >= now - 20_000)) return null;
  const first = list.findLast((e) => (isDown ? e.text === away : e.begins));
  return first && (!isDown || first === list.at(-1)) ? first.at : null;
}

// fleet says which instances started, and which were gone.
function fleet(model) {
  const { instances = [], gone = [] } = model.state ?? {};
  const oldest = model.history(null).from * 1000;
  return [
    ...[...instances, ...gone].map((i) => ({ at: i.started_at, text: `${i.name} started` })),
    ...gone.map((i) => ({ at: i.at, text: `${i.name} was gone` })),
  ].filter((e) => e.at > oldest).map((e) => ({ kind: "instances", ...e }));
}

// nameIn returns the rule that a line of a change is about, or undefined if it is about all.
export const nameIn = (line) => /^(?:rule|override of) ([^: ]+)/.exec(line)?.[1];

// namesIn returns the rules that lines of a change are about, or null if it is about all.
function namesIn(lines) {
  const names = lines.map(nameIn);
  return names.includes(undefined) ? null : new Set(names);
}

// causesOf returns what may have begun the denials of a rule at start, one of each kind, the best
// first. They may begin earlier, at first: then an instance or the store that changed between is no
// cause. An instance that came or went does not explain a few denials.
export function causesOf(model, rule, start, first, isLoud) {
  const isNear = ({ kind, at, isChange }) => {
    const isAround = kind === "store" || kind === "instances";
    const most = isChange ? burstTime : isAround ? stepTolerance : causeTime;
    return at - stepTolerance <= (isAround ? first : start) && start <= at + most;
  };
  const near = events(model).filter((e) => e.begins && (!e.rules || e.rules.has(rule))
    && (isLoud || e.kind !== "instances") && isNear(e));
  return kinds.map((kind) => near.findLast((e) => e.kind === kind)).filter(Boolean);
}

// after says how long after a cause something began.
export function after({ at, text, cause = text }, start) {
  const seconds = Math.round((start - at) / 1000);
  return seconds < 1 ? `as ${cause}`
    : `${seconds === 1 ? "a second" : `${seconds} seconds`} after ${cause}`;
}
