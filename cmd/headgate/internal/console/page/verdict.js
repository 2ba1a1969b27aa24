// The first sentences of the page: is it bad, since when, which rule, who, and what began it.

import { after, causeOf, causes, causeTime, deniedWithoutStore, nameIn } from "./causes.js";
import { longSpan, percent, rate } from "./format.js";
import { breadth, inRules, listOf } from "./key_breadth.js";
import { manyText, seenText } from "./key_requests.js";
import { brief } from "./key_text.js";
import { present, time, timeOfDay } from "./times.js";

const loud = 1; // denials a second, below which nobody is troubled
const share = 0.05; // of the decisions of a rule, above which denials are many
const culpable = 0.3; // of the denials of a rule, above which one key is at fault
const notable = 0.1; // of them, above which a further key is named

// judge returns {level, title, detail, culprit, seen, rule, advice, hasChange}: level is none,
// calm, warn or bad. Culprit is the key at fault, or null, and seen what it asked for. Advice says
// what can be done with it or with the rule: "ban", "look", "mode" or "change"; "" is nothing.
export function judge(model, now = present()) {
  return { detail: "", culprit: null, seen: "", rule: null, advice: "", ...judged(model, now) };
}

function judged(model, now) {
  const rules = model.rules().map((rule) => ({ ...rule, banned: bannedOf(model, rule) }));
  const sum = (name) => rules.reduce((total, rule) => total + rule[name], 0);
  const [denied, banned] = [sum("denied"), sum("banned")];
  const total = sum("allowed") + denied;
  if (model.state.store.state === "down") return storeDown(model, sum("error"), sum("degraded"));
  const past = Object.values(model.history(null).counts).flat();
  if (past.every((n) => n === 0) && total + sum("error") === 0) {
    return { level: "none", title: "No decisions in the last 15 minutes" };
  }
  const keys = keysOf(model, rules);
  const idle = keys.filter((k) => k.banned && k.mode !== "enforce" && k.per_s >= loud
    && !differs(model, k.rule)); // another instance may deny it
  const found = incidents(model, rules, keys);
  const warnings = [
    idle.length > 0 ? idleBan(idle) : null,
    { title: "Instances have different rules", detail: differences(model) },
    { title: "Decisions fail", detail: failing(sum("error")) },
    { title: "The files have errors", detail: fileErrors(model) },
    storeSlow(model, sum("degraded"), now),
    { title: "Instances end soon after their start", detail: restartText(model) },
  ].filter((w) => w?.detail);
  const warningTexts = warnings.map((w) => w.detail);
  if (found.length > 0) return denials(model, found, { total, banned, warningTexts, now });
  const free = rules.reduce((n, rule) => n + notBanned(rule), 0);
  if (isHigh({ free, history: model.history(null), decisions: total })) {
    return { level: "bad", title: `${rate(free)} denials a second by all rules together`,
      detail: [`${percent(free / total)} of all decisions. Each rule alone denies few.`, ...warningTexts]
        .join(" ") };
  }
  const byHand = switchedByHand(model, rules.filter((r) => r.mode !== r.file_mode));
  const all = [...warnings, byHand].filter(Boolean);
  if (all.length === 0) return calm(model, keys, { denied, banned, total });
  return { ...all[0], level: "warn", detail: all.map((w) => w.detail).join(" ") };
}

function calm(model, keys, { denied, banned, total }) {
  const held = mostDenied(keys.filter((k) => k.mode === "enforce")
    .map((k) => ({ ...k, weight: k.per_s })), 0);
  if (held?.banned && held.per_s >= loud) {
    const open = keys.filter((k) => k.key === held.key && !k.banned).map((k) => k.rule);
    return {
      level: "calm", title: "The top denied key is banned", culprit: held, rule: held.rule,
      detail: `Rule ${held.rule} denies all of its requests, ${rate(held.per_s)} a second. `
        + (open.length ? `It is not banned in ${inRules(open)}. ` : "")
        + `Keys that are not banned: ${rate(Math.max(0, denied - banned))} denials a second.`,
    };
  }
  const end = causes(model).findLast((c) => c.isEnd && c.at > model.history(null).from * 1000);
  return {
    level: "calm", title: "Nothing unusual",
    detail: (total === 0 ? "No decisions in the last seconds."
      : `${percent(denied / total)} of ${rate(total)} decisions a second are denials.`)
      + (end ? ` At ${timeOfDay(end.at)} ${end.text}.` : ""),
  };
}

// fileErrors says which instances refuse their files, or is "".
function fileErrors({ state: { instances } }) {
  const names = instances.filter((i) => i.config?.error).map((i) => i.name);
  return names.length ? `The files of ${listOf(names)} have errors.` : "";
}

const failing = (errors) => (errors < loud ? "" : `${rate(errors)} decisions a second fail.`);

// restartText says on which host two instances have ended soon after their start, or is "".
function restartText({ comings, state: { instances, alone } }) {
  const hosts = alone ? [] : comings.filter((c) => c.who && !instances.some((i) =>
    i.started_at === c.at)).map((c) => c.who.replace(/-\d+$/, ""));
  const host = hosts.find((name, i) => hosts.indexOf(name) !== i);
  return host ? `${hosts.filter((name) => name === host).length} instances on ${host} ended within `
    + "15 minutes of their start. If one starts again and again, take it out of the load balancer, "
    + "and read its log." : "";
}

// differences says which rules of other instances differ from those of this one, how, and what to
// do about it, or "".
function differences({ state: { instances } }) {
  const texts = instances.filter((i) => i.differs).slice(0, 3).map(({ name, differs: other }) => {
    const { removed, added } = other;
    if (!added) return `${name} has other files, with too many rules to compare.`;
    const [here, there] = [listed(removed), listed(added)];
    return !there ? `${name} lacks ${here}.`
      : `${name} has ${there}${here ? `, and this instance has ${here}` : ""}.`;
  });
  return texts.length === 0 ? ""
    : `${texts.join(" ")} Instances agree when all have loaded the same files.`;
}

// differs is whether a rule is another one on an instance.
export const differs = ({ state: { instances } }, rule) => instances.some((i) =>
  [...i.differs?.removed ?? [], ...i.differs?.added ?? []].some((line) => nameIn(line) === rule));

const listed = (lines) => lines.slice(0, 2).join(" and ")
  + (lines.length > 2 ? ` and ${lines.length - 2} more` : "");

// switchedByHand is about rules that are in another mode than in the file.
function switchedByHand(model, rules) {
  if (rules.length === 0) return null;
  const [first] = [...rules].sort((a, b) => b.shadow_denied - a.shadow_denied);
  return {
    rule: first.name, advice: "mode",
    title: `${rules.length === 1 ? `Rule ${first.name} is` : `${rules.length} rules are`
    } switched by hand`,
    hasChange: causes(model).findLast((c) => c.isChange)?.rules?.has(first.name),
    detail: rules.slice(0, 3).map((r) => switchText(model, r)).join(" "),
  };
}

function switchText(model, { name, mode, file_mode, shadow_denied }) {
  const until = model.config?.modes?.find((m) => m.rule === name)?.until;
  return `Rule ${name} is in mode ${mode}${until ? ` until ${time(Date.parse(until))}` : ""}, and ${
    file_mode} in the file${mode === "shadow" ? `: it would deny ${rate(shadow_denied)
    } requests a second` : ""}.`;
}

// idleBan is about bans that deny nothing, since their rule only counts.
function idleBan(keys) {
  const top = keys.reduce((a, b) => (b.per_s > a.per_s ? b : a));
  return {
    title: "A banned key is not denied", culprit: top, rule: top.rule, advice: "mode",
    detail: idleText(keys),
  };
}

const idleText = (keys) => keys.slice(0, 3).map((k) =>
  `Rule ${k.rule} is in mode ${k.mode}, so its ban of ${brief(k.key)} has no effect: ${
    rate(k.per_s)} of its requests a second pass the rule.`).join(" ");

function storeSlow(model, degraded, now) {
  if (model.state.store.state !== "slow") return null;
  const began = causes(model).findLast((c) => "isOut" in c);
  const start = degraded > 0 && began?.isOut ? ` since ${time(began.at, now)}` : "";
  const without = degraded > 0 ? `, and ${rate(degraded)} decisions a second are made without it. `
    + `These ${withoutStore(model)}` : ".";
  return { title: `The store is slow${start}`, detail: `Requests wait for the store${without} Look `
    + "at the load of Redis and its network: docs/redis.md#if-redis-is-slow." };
}

const withoutStore = ({ state: { store } }) => ({
  closed: "are denied (when_store_fails: closed).",
  open: "are allowed without limits (when_store_fails: open).",
  share: "are decided by each instance in its own memory, by its share of each limit "
    + "(when_store_fails: share).",
  unknown: "are denied by this instance, because it does not know how many instances share each "
    + "limit (when_store_fails: share, without instances).",
}[store.when_store_fails] ?? "fail.");

function storeDown(model, errors, degraded) {
  return {
    level: "bad", title: "The store is down",
    detail: `Requests that need it ${withoutStore(model)}`
      + (degraded > 0 ? ` ${rate(degraded)} decisions a second are made this way.` : "")
      + (errors > 0 ? ` ${rate(errors)} a second fail.` : "")
      + (model.state.store.when_store_fails === "share" ? " An instance that starts now denies all "
        + "of them, unless its file has instances." : "")
      + (model.state.store.when_store_fails === "unknown" ? " Start Redis, or take this instance "
        + "out of the load balancer. With instances in the file, it would know its share." : ""),
  };
}

// incidents returns what troubles clients, the worst first: rules with many denials of keys that
// are not banned. The one in the headline stays there as long as it can.
function incidents(model, rules, keys) {
  const open = keys.filter((k) => !k.banned && k.mode === "enforce");
  return rules.map((rule) => ({
    rule, free: notBanned(rule), weight: weight(model, rule.name, notBanned(rule)),
    history: model.history(rule.name), decisions: rule.allowed + rule.denied,
    keys: open.filter((k) => k.rule === rule.name),
  })).filter(isHigh).sort((a, b) => b.weight - a.weight);
}

// notBanned is 0 after a rule was switched by hand: what it denied before is still in the mean.
const notBanned = ({ mode, file_mode, denied, banned }) =>
  (mode !== file_mode && mode !== "enforce" ? 0 : Math.max(0, denied - banned));

const lead = 1.5; // times as many denials has what takes the place of a rule or key in the headline

const weight = ({ told }, rule, n, key = told?.culprit?.key) =>
  (told?.rule === rule && told.culprit?.key === key ? lead * n : n);

// bannedOf returns the denials of banned keys. Just after a ban or its undo, the mean of 5 seconds
// still has those before it, unless keys that are not in the list have many of them.
function bannedOf(model, { name, denied, banned, denied_keys: keys }) {
  const bans = (model.acts ?? []).filter((a) => a.act === "ban" && a.rule === name);
  const isRecent = (at) => model.state.at - at < 10_000;
  if (model.bans(name) === 0 && bans.some((a) => isRecent(a.undone?.at))) return 0;
  const isNew = bans.some((a) => !a.undone && isRecent(a.at));
  const sum = (list) => list.reduce((n, k) => n + k.per_s, 0);
  const open = sum(keys.filter((k) => !model.override(name, k.key)?.ban));
  return isNew && sum(keys) > (1 - culpable) * denied ? Math.max(banned, denied - open) : banned;
}

function isHigh({ free, history, decisions: total }) {
  const usual = median(openDenials(history)) / history.step_s;
  return free >= loud && (free >= 3 * usual || free > share * total);
}

// openDenials are the denials of keys that were not banned, in each step.
const openDenials = ({ counts }) => counts.denied.map((n, i) => Math.max(0, n - counts.banned[i]));

// denials is about incidents. WarningTexts are about what else is wrong.
function denials(model, [worst, ...more], { total, banned, warningTexts, now }) {
  const top = mostDenied(worst.keys, worst.free);
  const { text, cause } = since(model, worst, top, now);
  const isMixed = differs(model, worst.rule.name);
  const isEarly = model.state.at - model.state.denied_since < 1_000;
  const advice = cause?.isChange ? (top?.first > cause.at + causeTime ? "look" : "change")
    : isMixed || !top ? "" : top.caution ? "look" : "ban";
  const elsewhere = keysOf(model, model.rules())
    .filter((k) => top && k.key === top.key && k.banned).map((k) => k.rule);
  const sum = worst.keys.reduce((n, k) => n + k.per_s, 0); // just after a ban more than the mean
  const others = sum > 1.1 * worst.free ? []
    : worst.keys.filter((k) => k.key !== top?.key && k.per_s > notable * worst.free);
  const parts = [
    elsewhere.length ? `It is banned in ${inRules(elsewhere)}, but not in ${top.rule}.` : "",
    top ? top.caution : `${percent(worst.free / total)} of all decisions: rule ${
      worst.rule.name} denies them${isEarly ? ", and their keys are being counted"
      : worst.keys.length > 1 ? ", for many keys" : ""}.`,
    advice === "ban" ? manyText(top) : "",
    advice === "look" && top.isWide ? "Look for what sends so much." : "",
    ...others.slice(0, 2).map((k) => `${top ? "Another " : ""}${
      percent(k.per_s / worst.free)} are from ${brief(k.key)}.`),
    ...more.slice(0, 3).map((m) => also(model, m, now)),
    banned >= 0.05 ? `Banned keys: another ${rate(banned)} denials a second, which are not counted `
      + "here." : "",
    ...warningTexts,
  ];
  return {
    level: "bad", culprit: top, advice, title: `${rate(worst.free)} denials a second ${text}${
      isMixed && !cause ? ": instances have different rules" : ""}`,
    rule: worst.rule.name, detail: parts.filter(Boolean).join(" "), seen: seenText(top),
  };
}

// also is the sentence about a further incident.
function also(model, incident, now) {
  const top = mostDenied(incident.keys, incident.free);
  return `Rule ${incident.rule.name} denies ${rate(incident.free)} a second ${
    since(model, incident, top, now).text}${top ? `, ${percent(top.share)} of them from ${
    brief(top.key)}` : ""}.`;
}

// keysOf returns the keys that are denied or would be, of all rules.
function keysOf(model, rules) {
  const withoutStoreText = deniedWithoutStore(model);
  return rules.flatMap((rule) => rule.denied_keys.map((key) => {
    const override = model.override(rule.name, key.key);
    return {
      ...key, rule: rule.name, kind: rule.kind, mode: rule.mode, banned: Boolean(override?.ban),
      weight: weight(model, rule.name, key.per_s, key.key),
      caution: cautionOf(model, rule, key.key, override) || withoutStoreText(key),
      isWide: isWide(model, rule, key.key),
    };
  }));
}

// cautionOf says why it would be wrong to propose a ban of a key, or "".
function cautionOf(model, rule, key, override) {
  if (model.config === null) return "The overrides are not known yet.";
  if (override && !override.ban) {
    return `It was raised to ${override.limits.join(", ")}${override.until
      ? ` until ${time(Date.parse(override.until))}` : ""}.`;
  }
  return isWide(model, rule, key) ? breadth(model, rule.name, key).text : "";
}

const isWide = (model, rule, key) => rule.kind !== "domain"
  && breadth(model, rule.name, key) !== null;

// mostDenied returns the key that has most of the denials, if one has so many.
function mostDenied(keys, denied) {
  const [most] = keys.filter((k) => k.per_s >= culpable * denied)
    .sort((a, b) => b.weight - a.weight);
  return most ? { ...most, share: Math.min(1, most.per_s / denied) } : null;
}

// since says since when an incident lasts, and what began it. If one key is at fault, it lasts
// since the first denial of this key. What a rule would have denied while it was in shadow counts,
// too: an act is no new beginning.
function since(model, { rule, free, history }, top, now) {
  const { counts, step_s, startOf } = history;
  const sums = openDenials(history);
  if (rule.mode === "enforce") counts.shadow_denied.forEach((n, i) => { sums[i] += n; });
  const first = rising(sums, free * step_s, loud * step_s);
  let start = first === 0 ? null : startOf(first);
  const isCounted = top?.first > model.state.denied_since + 2_000; // else it may be older
  if (isCounted && !(top.first < start)) start = top.first;
  if (start === null) return { text: "for at least 15 minutes", cause: null };
  let before = first; // when it was rising already
  while (before > 0 && sums[before - 1] > 0) before--;
  const cause = causeOf(model, rule.name, start, startOf(before));
  if (isFirstKnown(model, start) && !cause?.isChange) {
    const text = `since ${timeOfDay(start)} or earlier, when all instances were new`;
    return { text, cause: null };
  }
  if (cause) {
    start = Math.max(start, cause.at);
    return { text: `since ${timeOfDay(start)}, ${after(cause, start)}`, cause };
  }
  return { text: `since ${time(start, now)} (${longSpan(minutes(now - start))})`, cause: null };
}

// isFirstKnown is whether start is that of the history: instances forget theirs when they stop.
function isFirstKnown({ state }, start) {
  return start <= Math.min(...state.instances.map((i) => i.started_at)) + 15_000;
}

const calmSteps = 4; // 20 seconds with few denials end what was before

// rising returns the first step from which on there were more denials than usual.
function rising(counts, now, least) {
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

function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
