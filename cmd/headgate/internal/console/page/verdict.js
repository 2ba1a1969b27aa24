// The first sentence of the page: is it bad, since when, which rule, and who.

import { longSpan, percent, rate } from "./format.js";
import { breadth, inRules } from "./key_breadth.js";
import { time } from "./times.js";

const loud = 1; // denials a second, below which nobody is troubled
const share = 0.05; // of all decisions, above which denials are many
const culpable = 0.3; // of all denials, above which one key is at fault
const doubt = 0.1; // of the rates of banned keys, which are not of the same seconds as the rule's
const listed = 20; // keys of a rule that the server lists at most

// judge returns {level, title, detail, culprit}: level is none, calm, warn or bad. The culprit says
// by its advice what can be done: "ban", "look" or "mode"; it is "" for a banned key.
export function judge(model, now = Date.now()) {
  const rules = model.rules();
  const sum = (name) => rules.reduce((total, rule) => total + rule[name], 0);
  const denied = sum("denied");
  const total = sum("allowed") + denied + sum("shadow_denied");
  if (model.state.store.state === "down") return storeDown(model, sum("error"), sum("degraded"));
  if (isSilent(model.history(null)) && total + sum("error") === 0) {
    return {
      level: "none", title: "No decisions in the last 15 minutes", detail: "", culprit: null,
    };
  }
  const keys = keysOf(model, rules);
  const free = rules.reduce((n, rule) => n + notBanned(rule, keys), 0);
  const idle = keys.filter((k) => k.banned && k.mode !== "enforce" && k.per_s >= loud);
  const { counts, step_s } = model.history(null);
  const usual = median(counts.denied) / step_s;
  if (free >= loud && (free >= 3 * usual || free > share * total)) {
    return denials(model, { rules, keys, denied, free, total, idle, now });
  }
  if (idle.length > 0) return idleBan(idle);
  if (model.state.store.state === "slow") {
    return storeSlow(sum("degraded"), { denied, free });
  }
  return calm(keys, { denied, free, total });
}

function calm(keys, { denied, free, total }) {
  const held = mostDenied(keys.filter((k) => k.banned && k.mode === "enforce"), denied);
  if (held && held.per_s >= loud) {
    const open = keys.filter((k) => k.key === held.key && !k.banned).map((k) => k.rule);
    return {
      level: "calm", title: "The top denied key is banned", culprit: { ...held, advice: "" },
      detail: `Rule ${held.rule} denies all of its requests, ${rate(held.per_s)} a second. `
        + (open.length ? `It is not banned in ${inRules(open)}. ` : "")
        + `Keys that are not banned: ${rate(free)} denials a second.`,
    };
  }
  return {
    level: "calm", title: "Nothing unusual", culprit: null,
    detail: total === 0 ? "No decisions in the last seconds."
      : `${percent(denied / total)} of ${rate(total)} decisions a second are denials.`,
  };
}

// idleBan is about bans that deny nothing, since their rule only counts.
function idleBan(keys) {
  const top = keys.reduce((a, b) => (b.per_s > a.per_s ? b : a));
  return {
    level: "warn", title: "A banned key is not denied", culprit: { ...top, advice: "mode" },
    detail: idleText(keys),
  };
}

const idleText = (keys) => keys.slice(0, 3).map((k) =>
  `Rule ${k.rule} is in mode ${k.mode}, so its ban of ${k.key} has no effect: ${
    rate(k.per_s)} of its requests a second pass the rule.`).join(" ");

function storeSlow(degraded, { denied, free }) {
  return {
    level: "warn", title: "The store is slow", culprit: null,
    detail: (degraded > 0 ? `Requests wait for it, and ${rate(degraded)} decisions a second are `
      + "made without it."
      : "Requests wait for it. If it gets slower, they are decided without it.")
      + (denied >= 0.05 ? ` Denials a second: ${rate(denied - free)} of banned keys, ${
        rate(free)} of others.` : ""),
  };
}

const withoutStore = {
  closed: "Requests that need it are denied (when_store_fails: closed).",
  open: "Requests are allowed without limits (when_store_fails: open).",
  share: "Each instance decides in its own memory by its share of each limit "
    + "(when_store_fails: share).",
  unknown: "This instance denies all requests that need it, because it does not know how many "
    + "instances share each limit (when_store_fails: share, without instances).",
};

function storeDown(model, errors, degraded) {
  const how = withoutStore[model.state.store.when_store_fails] ?? "Requests that need it fail.";
  return {
    level: "bad", title: "The store is down", culprit: null,
    detail: how + (degraded > 0 ? ` ${rate(degraded)} decisions a second are made this way.` : "")
      + (errors > 0 ? ` ${rate(errors)} a second fail.` : "")
      + (model.state.alone ? " The numbers below are of this instance only." : ""),
  };
}

function denials(model, { rules, keys, denied, free, total, idle, now }) {
  const top = mostDenied(keys.filter((k) => !k.banned && k.mode === "enforce"), free);
  const worst = rules.map((r) => ({ name: r.name, free: notBanned(r, keys) }))
    .reduce((a, b) => (b.free > a.free ? b : a));
  const start = since(model, rules, free);
  const long = start === null ? "for at least 15 minutes"
    : `since ${time(start, now)} (${longSpan(minutes(now - start))})`;
  const culprit = top && { ...top, advice: top.caution ? "look" : "ban" };
  const banned = keys.filter((k) => culprit && k.key === culprit.key && k.banned);
  const parts = [
    banned.length ? `It is banned in ${inRules(banned.map((k) => k.rule))}, but not in ${
      culprit.rule}.` : "",
    culprit ? culprit.caution : `${percent(free / total)} of all decisions. ${
      percent(worst.free / free)} of these denials come from rule ${worst.name}, ${
      areKeysKnown(model) ? "for many keys." : "and their keys are being counted."}`,
    denied - free >= 0.05 ? `Banned keys: another ${rate(denied - free)} denials a second, which `
      + "are not counted here." : "",
    idleText(idle),
  ];
  return {
    level: "bad", title: `${rate(free)} denials a second ${long}`, culprit,
    detail: parts.filter(Boolean).join(" "),
  };
}

// areKeysKnown reports whether denied keys have been counted for a second.
const areKeysKnown = ({ state }) => state.at - state.denied_since >= 1_000;

// keysOf returns the keys that are denied or would be, of all rules.
function keysOf(model, rules) {
  return rules.flatMap((rule) => rule.denied_keys.map((key) => {
    const override = model.override(rule.name, key.key);
    return {
      ...key, rule: rule.name, kind: rule.kind, mode: rule.mode, banned: Boolean(override?.ban),
      caution: cautionOf(model, rule, key.key, override),
    };
  }));
}

// cautionOf says why it would be wrong to propose a ban of a key, or "".
function cautionOf(model, rule, key, override) {
  if (model.config === null) return "The overrides are not known yet.";
  if (override && !override.ban) {
    return `It was raised to ${override.limits.join(", ")}${override.until
      ? ` until ${time(Date.parse(override.until))}` : ""}, and sends more than that.`;
  }
  const wide = rule.kind === "domain" ? null : breadth(model, rule.name, key);
  return wide ? `${wide.text} Look for what sends so much.` : "";
}

// notBanned is how many of the denials of a rule are not those of banned keys. The rates of keys
// and of the rule are measured apart: their relation counts, and the sums agree.
function notBanned(rule, keys) {
  const mine = keys.filter((k) => k.rule === rule.name && k.mode === "enforce");
  const per = (list) => list.reduce((n, k) => n + k.per_s, 0);
  const banned = per(mine.filter((k) => k.banned));
  const open = per(mine.filter((k) => !k.banned));
  if (banned === 0) return rule.denied;
  const part = rule.denied * open / (open + banned);
  return mine.length < listed ? part : Math.max(part, rule.denied - (1 + doubt) * banned);
}

// mostDenied returns the key that has most of the denials, if one has so many.
function mostDenied(keys, denied) {
  if (keys.length === 0) return null;
  const most = keys.reduce((a, b) => (b.per_s > a.per_s ? b : a));
  if (!(most.per_s >= culpable * denied)) return null;
  return { ...most, share: Math.min(1, most.per_s / denied) };
}

// since returns when the denials began, or null if that was before the history. What a rule that
// denies would have denied while it was in shadow counts, too: an act is no new beginning.
function since(model, rules, now) {
  const { counts, step_s, from } = model.history(null);
  const sums = [...counts.denied];
  for (const rule of rules.filter((r) => r.mode === "enforce")) {
    model.history(rule.name).counts.shadow_denied.forEach((n, i) => { sums[i] += n; });
  }
  const first = rising(sums, now * step_s, loud * step_s);
  return first === 0 ? null : (from + first * step_s) * 1000;
}

const calmSteps = 12; // a minute with few denials ends what was before

// rising returns the first step from which on there were more denials than usual.
export function rising(counts, now, least = 0) {
  const background = [...counts].sort((a, b) => a - b)[Math.floor(counts.length / 10)];
  const high = Math.min(now / 2, Math.max(least, 2 * background));
  let first = counts.length - 1;
  for (let i = counts.length - 1, low = 0; i >= 0 && low < calmSteps; i--) {
    if (counts[i] >= high) {
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
