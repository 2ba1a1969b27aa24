// The first sentence of the page: is it bad, since when, which rule, and who.

import { percent, rate, span, time } from "./format.js";

const loud = 1; // denied requests a second, below which nobody is troubled
const share = 0.05; // of all requests, above which denials are many
const culpable = 0.3; // of all denials, above which one key is at fault

// judge returns {level, title, detail, culprit}: level is none, calm, warn or bad.
export function judge(model, now = Date.now()) {
  const rules = model.rules();
  const sum = (name) => rules.reduce((total, rule) => total + rule[name], 0);
  const [allowed, denied] = [sum("allowed"), sum("denied")];
  const history = model.history(null);
  if (model.state.store.state === "down") return storeDown(sum("error"), sum("degraded"));
  if (isSilent(history) && allowed + denied + sum("shadow_denied") + sum("error") === 0) {
    return {
      level: "none", title: "No decisions in the last 15 minutes", detail: "", culprit: null,
    };
  }
  const keys = keysOf(model, rules);
  const banned = keys.filter((key) => key.banned);
  const free = Math.max(0, denied - banned.reduce((total, key) => total + key.per_s, 0));
  const usual = median(history.counts.denied) / history.step_s;
  if (free >= loud && (free >= 3 * usual || free > share * (allowed + denied))) {
    const culprit = mostDenied(keys.filter((key) => !key.banned), free);
    return denials(rules, culprit, { allowed, denied, free, history, now });
  }
  if (model.state.store.state === "slow") {
    return {
      level: "warn", title: "The store is slow", culprit: null,
      detail: "Requests wait for it. If it gets slower, they are decided without it.",
    };
  }
  const held = mostDenied(banned, denied);
  if (held && held.per_s >= loud) {
    return {
      level: "calm", title: "The top denied key is banned", culprit: held,
      detail: `It sends ${rate(held.per_s)} requests a second, and all of them are denied. `
        + `Other keys: ${rate(free)} denied a second.`,
    };
  }
  return {
    level: "calm", title: "Nothing unusual", culprit: null,
    detail: `${percent(denied / (allowed + denied))} of ${rate(allowed + denied)} `
      + "requests a second are denied.",
  };
}

function storeDown(errors, degraded) {
  const without = degraded > 0
    ? `${rate(degraded)} decisions a second are made without it, as set in when_store_fails.`
    : "Requests are decided as set in when_store_fails.";
  return {
    level: "bad", title: "The store is down", culprit: null,
    detail: without + (errors > 0 ? ` ${rate(errors)} a second fail.` : ""),
  };
}

function denials(rules, culprit, { allowed, denied, free, history, now }) {
  const worst = rules.reduce((a, b) => (b.denied > a.denied ? b : a));
  const since = rising(history.counts.denied, free * history.step_s);
  const start = (history.from + since * history.step_s) * 1000;
  const long = since === 0 ? "for at least 15 minutes"
    : `since ${time(start, now)} (${span(minutes(now - start))})`;
  return {
    level: "bad", title: `Denying ${rate(free)} requests a second ${long}`, culprit,
    detail: (culprit ? "" : `${percent(free / (allowed + denied))} of all requests. `
      + `${percent(worst.denied / denied)} of the denials come from rule ${worst.name}, `
      + "for many keys. ")
      + (denied - free >= loud ? `Banned keys: another ${rate(denied - free)} a second.` : ""),
  };
}

// keysOf returns the keys that are denied, of all rules.
function keysOf(model, rules) {
  return rules.flatMap((rule) => rule.denied_keys.filter((key) => key.denied > 0).map((key) => ({
    ...key, rule: rule.name, kind: rule.kind,
    banned: Boolean(model.override(rule.name, key.key)?.ban),
  })));
}

// mostDenied returns the key that has most of the denials, if one has so many.
function mostDenied(keys, denied) {
  if (keys.length === 0) return null;
  const most = keys.reduce((a, b) => (b.per_s > a.per_s ? b : a));
  if (!(most.per_s >= culpable * denied)) return null;
  return { ...most, share: Math.min(1, most.per_s / denied) };
}

// rising returns the first step from which on there were about as many denials as now.
export function rising(counts, now) {
  let first = counts.length - 1;
  for (let i = counts.length - 1, low = 0; i >= 0 && low < 3; i--) {
    if (counts[i] >= now / 2) {
      first = i;
      low = 0;
    } else low++;
  }
  return first;
}

// minutes rounds milliseconds to seconds of whole minutes, but for the first one.
function minutes(ms) {
  return ms < 60_000 ? ms / 1000 : Math.floor(ms / 60_000) * 60;
}

function isSilent({ counts }) {
  return Object.values(counts).every((list) => list.every((n) => n === 0));
}

function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

