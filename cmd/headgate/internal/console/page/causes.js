// What may have begun denials, and when: the rules changed, an instance started or is gone, a ban
// ended. They are marks in the chart, and the headline names the one before it.

import { brief } from "./key_text.js";

const stepTolerance = 6_000; // milliseconds by which a step may begin before its cause
export const causeTime = 15_000; // between a cause and what it began
const burstTime = 60_000; // the same of a change, because a burst may be used up first

// causes returns {at, text, rules, isChange, isEnd}, the oldest first: rules is null for all.
export function causes(model) {
  const changes = (model.config?.changes ?? []).map(({ at, removed, added }) => {
    const lines = [...removed, ...added];
    const isChange = lines.some((line) => !line.startsWith("override of ")); // for many keys
    return { at, text: "the rules changed", rules: namesIn(lines), isChange };
  });
  const ends = (model.acts ?? []).filter((a) => a.undone || a.ended?.why === "expired")
    .map((a) => ({
      at: a.undone?.at ?? a.ended.at ?? a.until, rules: new Set([a.rule]), isEnd: true,
      text: `the ${a.act === "mode" ? `switch of rule ${a.rule}` : `${a.act} of ${
        brief(a.key ?? "")}`} ${a.undone ? "was undone" : "ended"}`,
    }));
  return [...changes, ...ends, ...model.comings, ...outages(model)].sort((a, b) => a.at - b.at);
}

// areMany says of each step whether many decisions were made without the store. A single one is
// none, nor are a few of very many: they trouble nobody.
const areMany = ({ degraded, allowed, denied }) =>
  degraded.map((n, i) => n > 1 && n >= 0.05 * (allowed[i] + denied[i]));

// deniedWithoutStore returns a function that says of a key that, from its first denial to its last,
// most decisions were made without the store, or "".
export function deniedWithoutStore(model) {
  const { counts: { degraded, allowed, denied }, from, step_s } = model.history(null);
  const isMost = (n, all) => n > 1 && 2 * n >= all;
  const most = degraded.map((n, i) => isMost(n, allowed[i] + denied[i]));
  const sum = (name) => model.rules().reduce((all, r) => all + (r[name] ?? 0), 0);
  const isNow = isMost(sum("degraded"), sum("allowed") + sum("denied"));
  const stepOf = (at) => Math.floor((at / 1000 - from) / step_s);
  const isOut = (first, last) => first >= 0 && first <= last
    && most.slice(first, last + 1).every(Boolean) && (last < most.length || isNow);
  return ({ first, last }) => (model.state.store.when_store_fails !== "open"
    && isOut(stepOf(first), Math.max(stepOf(first), stepOf(last - 1000))) ? "Denied only while most decisions were made without the "
    + "store: the limits of this key may allow what it sends." : "");
}

const pause = 6; // steps without a decision of the kind, after which the store is well again

// outages says when decisions without the store began and ended.
function outages(model) {
  const { counts, from, step_s, startOf } = model.history(null);
  const many = areMany(counts);
  const isOut = many.map((_, i) => many.slice(Math.max(0, i - pause), i + 1).some(Boolean));
  return isOut.flatMap((out, i) => (i === 0 || out === isOut[i - 1] ? [] : [{
    at: startOf(out ? i : i - pause), rules: null, isOut: out,
    text: !out ? "the store was well again" : startOf(i) > (from + i * step_s) * 1000
      ? "the store was away already, or too slow" : "the store failed, or was too slow",
  }]));
}

// nameIn returns the rule that a line of a change is about, or undefined if it is about all.
export const nameIn = (line) => /^(?:rule|override of) ([^: ]+)/.exec(line)?.[1];

// namesIn returns the rules that lines of a change are about, or null if it is about all.
function namesIn(lines) {
  const names = lines.map(nameIn);
  return names.includes(undefined) ? null : new Set(names);
}

// causeOf returns the last cause for a rule just before start, or null. Denials that rise at start
// may begin earlier, at first: then an instance or the store that changed between is no cause.
export function causeOf(model, rule, start, first) {
  return causes(model).findLast((c) => (c.rules === null || c.rules.has(rule))
    && c.at - stepTolerance <= (c.rules === null && !c.isChange ? first : start)
    && start <= c.at + (c.isChange ? burstTime : c.rules === null ? stepTolerance : causeTime))
    ?? null;
}

// after says how long after a cause something began.
export function after({ at, text }, start) {
  const seconds = Math.round((start - at) / 1000);
  return seconds < 1 ? `as ${text}`
    : `${seconds === 1 ? "a second" : `${seconds} seconds`} after ${text}`;
}
