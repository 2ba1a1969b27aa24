// The first sentences of the page: is it bad, since when, which rule, who, and what began it.

import { after, causesOf, causeTime, events, lostText, nameIn, storeSince } from "./causes.js";
import { longSpan, percent, plural, rate } from "./format.js";
import { breadth, inRules, listOf } from "./key_breadth.js";
import { seenText, whoText } from "./key_requests.js";
import { brief } from "./key_text.js";
import { present, time, timeOfDay } from "./times.js";

const loud = 1; // denials a second, below which a rule is judged by its share only
const share = 0.05; // of the decisions of a rule, above which denials are many
const few = { steps: 6, requests: 10, share: 0.5 }; // a rule that denies so much of few requests
const stays = 15_000; // milliseconds for which a rule stays in the headline
const culpable = 0.3; // of the denials of a rule, above which one key is at fault
const notable = 0.1; // of them, above which a further key is named

// judge returns {level, title, lines, culprit, seen, rule, advice}: level is none, calm, warn or
// bad. Culprit is the key at fault, or null, and seen what it asked for. Advice is what to do with
// it or with the rule: "ban", "look", "mode", "change" or "fleet"; "" is nothing.
export function judge(model, now = present()) {
  const v = { lines: [], culprit: null, seen: "", rule: null, advice: "", ...judged(model, now) };
  return { ...v, lines: v.lines.filter(Boolean) };
}

function judged(model, now) {
  const rules = model.rules().map((rule) => ({ ...rule, banned: bannedOf(model, rule) }));
  const sum = (name) => rules.reduce((total, rule) => total + rule[name], 0);
  const [denied, banned] = [sum("denied"), sum("banned")];
  const total = sum("allowed") + denied;
  if (model.state.store.state === "down") {
    return storeDown(model, sum("error"), sum("degraded"), now);
  }
  const past = Object.values(model.history(null).counts).flat();
  if (past.every((n) => n === 0) && total + sum("error") === 0 && !model.lost?.at) {
    return { level: "none", title: "No decisions in the last 15 minutes" };
  }
  const keys = keysOf(model, rules);
  const found = incidents(model, rules, keys, now);
  const warnings = [
    lost(model), idleBan(model, keys), differences(model),
    { title: "Decisions fail", lines: [sum("error") < loud ? ""
      : `${rate(sum("error"))} decisions a second fail.`] },
    { title: "The files have errors", lines: [fileErrors(model)] },
    storeSlow(model, sum("degraded"), now),
    { title: "Clocks differ", lines: clocks(model) },
  ].filter((w) => w?.lines.some(Boolean));
  const more = warnings.flatMap((w) => w.lines);
  if (found.length > 0) return denials(model, found, { banned, more, now });
  const all = [...warnings, switchedByHand(model, rules)].filter(Boolean);
  if (all.length === 0) return calm(model, keys, { denied, banned, total });
  return { ...all[0], level: "warn", lines: all.flatMap((w) => w.lines) };
}

function calm(model, keys, { denied, banned, total }) {
  const held = mostDenied(keys.filter((k) => k.mode === "enforce")
    .map((k) => ({ ...k, weight: k.per_s })), 0);
  if (held?.banned && held.per_s >= loud) {
    const open = keys.filter((k) => k.key === held.key && !k.banned).map((k) => k.rule);
    return {
      level: "calm", title: "The top denied key is banned", culprit: held, rule: held.rule,
      lines: [`Rule ${held.rule} denies every request of this key, ${rate(held.per_s)} a second. ${
        open.length ? `It is not banned in ${inRules(open)}. ` : ""}Keys that are not banned: ${
        rate(Math.max(0, denied - banned))} denials a second.`],
    };
  }
  return { level: "calm", title: "Nothing unusual",
    lines: [total === 0 ? "No decisions in the last seconds." : ""] };
}

function lost({ lost: gone }) {
  const n = gone && Object.values(gone.count).reduce((a, b) => a + b);
  return n > 0 ? { title: `${lostText(gone)} lost`, lines: [`Redis lost its data at ${
    timeOfDay(gone.at)}: ${lostText(gone)} lost. For an hour, they can be put back.`] } : null;
}

// fileErrors says which instances refuse their files, or is "".
function fileErrors({ state: { instances } }) {
  const names = instances.filter((i) => i.config?.error).map((i) => i.name);
  return names.length ? `The files of ${listOf(names)} have errors.` : "";
}

// clocks says which clocks are not that of this instance.
const clocks = ({ state: { instances } }) => instances.filter((i) => i.clock_ms).map((i) =>
  `The clock of ${i.name} is ${longSpan(Math.abs(i.clock_ms) / 1000)} ${i.clock_ms > 0 ? "ahead"
    : "behind"}: its times are wrong, such as "since", and its counts are in other steps.`);

// differences says which rules of other instances differ from those of this one, how, and what to
// do about it, or is null.
function differences({ state: { instances } }) {
  const texts = instances.filter((i) => i.differs).slice(0, 3).map(({ name, differs: other }) => {
    const { removed, added } = other;
    if (!added) return `${name} has other files, with too many rules to compare.`;
    const [here, there] = [listed(removed), listed(added)];
    return !there ? `${name} lacks ${here}.`
      : `${name} has ${there}${here ? `, and this instance has ${here}` : ""}.`;
  });
  return texts.length === 0 ? null : { title: "Instances have different rules", advice: "fleet",
    lines: [`${texts.join(" ")} Instances agree when all have loaded the same files.`] };
}

// differs is whether a rule is another one on an instance.
export const differs = ({ state: { instances } }, rule) => instances.some((i) =>
  [...i.differs?.removed ?? [], ...i.differs?.added ?? []].some((line) => nameIn(line) === rule));

const listed = (lines) => lines.slice(0, 2).join(" and ")
  + (lines.length > 2 ? ` and ${lines.length - 2} more` : "");

// switchedByHand is about rules that are in another mode than in the file, or null.
function switchedByHand(model, all) {
  const rules = all.filter((r) => r.mode !== r.file_mode)
    .sort((a, b) => b.shadow_denied - a.shadow_denied);
  if (rules.length === 0) return null;
  return {
    rule: rules[0].name, advice: "mode",
    title: `${rules.length === 1 ? `Rule ${rules[0].name} is` : `${rules.length} rules are`
    } switched by hand`,
    hasChange: events(model).findLast((e) => e.isChange)?.rules?.has(rules[0].name),
    lines: rules.slice(0, 3).map((r) => switchText(model, r)),
  };
}

function switchText(model, rule) {
  const until = model.config?.modes?.find((m) => m.rule === rule.name)?.until;
  const end = until ? ` until ${time(Date.parse(until))}` : "";
  return `Rule ${rule.name} is in mode ${rule.mode}${end}, and ${rule.file_mode} in the file${
    rule.mode === "shadow" ? `: it ${wouldDeny(rule)}` : ""}.`;
}

// wouldDeny says what a rule in shadow would deny.
export function wouldDeny({ allowed, denied, shadow_denied: n, denied_keys: keys, more_keys = 0 }) {
  if (!n) return "would deny 0 requests a second";
  const found = keys.filter((k) => k.shadow_denied > 0 && k.per_s > 0).length;
  return `would deny ${percent(n, allowed + denied)} of its requests, ${rate(n)} a second${
    found ? `, of ${plural(found, "key")}` : ""}${more_keys ? " or more" : ""}`;
}

// idleBan is about bans that deny nothing, since their rule only counts, or is null.
function idleBan(model, keys) {
  const idle = keys.filter((k) => k.banned && k.mode !== "enforce" && k.per_s >= loud
    && !differs(model, k.rule)); // another instance may deny it
  if (idle.length === 0) return null;
  const top = idle.reduce((a, b) => (b.per_s > a.per_s ? b : a));
  return {
    title: "A banned key is not denied", culprit: top, rule: top.rule, advice: "mode",
    lines: idle.slice(0, 3).map((k) => `Rule ${k.rule} is in mode ${k.mode}, so its ban of ${
      brief(k.key)} has no effect: ${rate(k.per_s)} of its requests a second pass the rule.`),
  };
}

function storeSlow(model, degraded, now) {
  if (model.state.store.state !== "slow") return null;
  const at = storeSince(model, now);
  return { title: `The store is slow${at ? ` since ${timeOfDay(at)}` : ""}`,
    lines: [`Requests wait for the store${degraded > 0 ? `, and ${rate(degraded)
    } decisions a second are made without it. These ${withoutStore(model)}` : "."}`] };
}

const withoutStore = ({ state: { store: { when_store_fails: policy } } }) => `${{
  closed: "are denied", open: "are allowed without limits",
  share: "are decided by each instance, by its share of each limit",
  unknown: "are denied by this instance, which does not know how many instances share each limit",
}[policy] ?? "fail"} (when_store_fails: ${policy === "unknown" ? "share" : policy}).`;

function storeDown(model, errors, degraded, now) {
  const at = storeSince(model, now, true);
  const { when_store_fails: policy, knows_instances: knows } = model.state.store;
  return {
    level: "bad", title: `The store is down${at ? ` since ${timeOfDay(at)}` : ""}`,
    lines: [[`Requests that need it ${withoutStore(model)}`,
      degraded > 0 ? `${rate(degraded)} decisions a second are made this way.` : "",
      errors > 0 ? `${rate(errors)} a second fail.` : ""].filter(Boolean).join(" "),
    policy === "share" && !knows
      ? "An instance that starts now denies all of them: its file has no instances." : "",
    policy === "unknown" ? "Start Redis, or take this instance out of the load balancer. With "
      + "instances in the file, it would know its share." : ""],
  };
}

// incidents returns what troubles clients, the worst first: rules with many denials of keys that
// are not banned. One that was bad stays for a while, unless an operator acts on the rule.
function incidents(model, rules, keys, now) {
  const open = keys.filter((k) => !k.banned && k.mode === "enforce");
  return rules.map((rule) => {
    const history = model.history(rule.name);
    return {
      rule, free: notBanned(rule), weight: weight(model, rule.name, notBanned(rule)), history,
      decisions: rule.allowed + rule.denied,
      lately: lately(rule, history, isActed(model, rule, now)),
      keys: open.filter((k) => k.rule === rule.name),
    };
  }).filter((i) => {
    i.isBad = isMany(i) || (i.lately.share >= few.share && i.lately.isNow);
    if (i.isBad) model.loud.set(i.rule.name, now);
    return i.isBad || (now - model.loud.get(i.rule.name) < stays && i.lately.isNow);
  }).sort((a, b) => b.weight - a.weight || b.lately.denied - a.lately.denied);
}

const isActed = ({ acts }, { name }, now) => acts?.some((a) => a.rule === name
  && now - (a.undone?.at ?? a.at) < few.steps * 5_000);

// lately returns what a rule denied of its last requests, without those of banned keys. A few have
// no share, nor has what was before an act.
function lately(rule, { counts: { allowed, denied, banned } }, isBefore) {
  const last = (list, n = few.steps) => list.slice(-n).reduce((a, b) => a + b, 0);
  const isOver = isBefore || rule.mode !== "enforce" || (rule.denied > 0 && !notBanned(rule));
  const n = isOver ? 0 : Math.max(0, last(denied) - last(banned));
  const all = last(allowed) + n;
  return { denied: n, all, share: all >= few.requests ? n / all : 0,
    isNow: n > 0 && last(denied, few.steps / 2) > 0 };
}

// notBanned is 0 after a rule was switched by hand: what it denied before is still in the mean.
const notBanned = ({ mode, file_mode, denied, banned }) =>
  (mode !== file_mode && mode !== "enforce" ? 0 : Math.max(0, denied - banned));

const lead = 1.5; // times as many denials has what takes the place of a rule or key in the headline

const weight = ({ told }, rule, n, key = told?.culprit?.key) =>
  (told?.rule === rule && told.culprit?.key === key ? lead * n : n);

// bannedOf returns the denials of banned keys: at least those in the list, which the mean has from
// before their ban, too. Just after an undo it has those from before it.
function bannedOf(model, { name, banned, denied_keys: keys }) {
  const isUndone = (model.acts ?? []).some((a) => a.act === "ban" && a.rule === name
    && model.state.at - a.undone?.at < 10_000);
  if (model.bans(name) === 0 && isUndone) return 0;
  return Math.max(banned, keys.filter((k) => model.override(name, k.key)?.ban)
    .reduce((n, k) => n + k.per_s, 0));
}

function isMany({ free, history, decisions: total }) {
  const usual = median(openDenials(history)) / history.step_s;
  return free >= loud && (free >= 3 * usual || free > share * total);
}

// openDenials are the denials of keys that were not banned, in each step.
const openDenials = ({ counts }) => counts.denied.map((n, i) => Math.max(0, n - counts.banned[i]));

// denials is about incidents. More is about what else is wrong.
function denials(model, [worst, ...others], { banned, more, now }) {
  const name = worst.rule.name;
  const top = mostDenied(worst.keys, worst.free);
  const isMixed = differs(model, name);
  let began = since(model, worst, isMixed ? null : top, now);
  const isLater = top?.first > began.found[0]?.at + causeTime; // of the cause
  const isChange = !isMixed && began.found[0]?.isChange;
  if (isChange && !isLater) began = since(model, worst, null, now);
  const { text, start, found: [cause, second] } = began;
  const isOver = !worst.isBad && rate(worst.free) === "0"; // it stays in the headline for a while
  const culprit = isMixed || (isChange && !isLater) ? null : top; // no client is to blame
  const advice = isMixed ? "fleet" : isOver ? "" : isChange ? (isLater ? "look" : "change")
    : !top ? isTooLow(worst, cause) ? "mode" : ""
    : top.caution || cause?.kind === "store" ? "look" : "ban";
  const elsewhere = keysOf(model, model.rules())
    .filter((k) => culprit && k.key === top.key && k.banned).map((k) => k.rule);
  const further = culprit ? worst.keys.filter((k) => k.key !== top.key
    && k.per_s > notable * worst.free) : [];
  return {
    level: isOver ? "warn" : "bad", culprit, advice, rule: name, seen: seenText(culprit),
    hasChange: isChange,
    title: `${worst.free >= loud ? `${rate(worst.free)} denials a second`
      : `Rule ${name} ${latelyText(worst)}`} ${text}${
      isMixed ? ": instances have different rules" : ""}`,
    lines: [
      elsewhere.length ? `It is banned in ${inRules(elsewhere)}, but not in ${top.rule}.` : "",
      culprit ? top.caution || whoText(top) : whoseText(worst, cause || isMixed),
      isMixed && cause ? `At ${timeOfDay(cause.at)}, ${cause.text}.`
        : second ? `Also, at ${timeOfDay(second.at)}: ${second.text}.` : "",
      ...isMixed ? more : [],
      ...others.slice(0, 3).map((m) => also(model, m, now)),
      ...further.slice(0, 2).map((k) => `Another ${percent(k.per_s, worst.free)} are from ${
        brief(k.key)}.`),
      banned >= 0.05 ? `Banned keys: another ${rate(banned)} denials a second, which are not `
        + "counted here." : "",
      ...isMixed ? [] : more,
    ], start,
  };
}

const latelyText = ({ lately: { denied, all } }) =>
  `denied ${percent(denied, all)} of its last ${plural(all, "request")}`;

// isTooLow is whether the limit of a rule may be too low: it denies many keys, for no known cause.
const isTooLow = ({ keys }, cause) => !cause && keys.filter((k) => k.per_s > 0).length >= 5;

// whoseText says which part of its requests a rule denies, and whether its limit may be too low.
function whoseText(incident, cause) {
  const { rule, free, decisions, lately: l, keys } = incident;
  const n = keys.filter((k) => k.per_s > 0).length;
  return `${free >= loud ? `Rule ${rule.name} denies ${percent(free, decisions)} of its requests`
    : `It denied ${l.denied} of them`}${n > 1
    ? `, of ${rule.more_keys ? "more than " : ""}${n
    } keys` : ""}.${isTooLow(incident, cause)
    ? " If they are ordinary clients, its limit is too low." : ""}`;
}

// also is the sentence about a further incident.
function also(model, incident, now) {
  const { rule, free } = incident;
  const top = mostDenied(incident.keys, free);
  return `Rule ${rule.name} ${free >= loud ? `denies ${rate(free)} a second`
    : latelyText(incident)} ${since(model, incident, top, now).text}${
    top ? `, ${percent(top.share)} of them from ${brief(top.key)}` : ""}.`;
}

// keysOf returns the keys that are denied or would be, of all rules.
function keysOf(model, rules) {
  return rules.flatMap((rule) => rule.denied_keys.map((key) => {
    const override = model.override(rule.name, key.key);
    return {
      ...key, rule: rule.name, kind: rule.kind, mode: rule.mode, banned: Boolean(override?.ban),
      weight: weight(model, rule.name, key.per_s, key.key),
      caution: cautionOf(model, rule, key, override),
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
  const whole = rule.kind === "domain" ? null : breadth(model, rule.name, key.key);
  return whole ? `${whole.text} Look for what sends so much.` : whoText(key, true);
}

// mostDenied returns the key that has most of the denials, if one has so many.
function mostDenied(keys, denied) {
  const [most] = keys.filter((k) => k.per_s > 0 && k.per_s >= culpable * denied)
    .sort((a, b) => b.weight - a.weight);
  return most ? { ...most, share: Math.min(1, most.per_s / (denied || most.per_s)) } : null;
}

// since says since when an incident lasts, and what may have begun it. If one key is at fault, it
// lasts since the first denial of this key. What a rule would have denied while it was in shadow
// counts, too: an act is no new beginning.
function since(model, { rule, free, history, keys }, top, now) {
  const { counts, step_s, startOf } = history;
  const sums = openDenials(history);
  if (rule.mode === "enforce") counts.shadow_denied.forEach((n, i) => { sums[i] += n; });
  const isLoud = free >= loud;
  const first = rising(sums, free * step_s, isLoud ? loud * step_s : 1, isLoud ? 4 : 12);
  let start = first === 0 ? null : startOf(first);
  // The first denial of a key may be older than what is known.
  const firsts = keys.map((k) => k.first).filter((at) => at > model.state.denied_since + 2_000);
  const inStep = firsts.filter((at) => at >= start
    && (first === sums.length || at < start + step_s * 1000));
  if (firsts.includes(top?.first) && !(top.first < start)) start = top.first;
  else if (start !== null && inStep.length > 0) start = Math.min(...inStep);
  const { told } = model; // its time stays while it is about the same
  if (told?.rule === rule.name && told.start && (!top || told.culprit?.key === top.key)) {
    start = told.start;
  }
  if (start === null) return { text: "for at least 15 minutes", start, found: [] };
  let before = first; // when it was rising already
  while (before > 0 && sums[before - 1] > 0) before--;
  const found = causesOf(model, rule.name, start, startOf(before), isLoud);
  const [cause] = found;
  if (cause && !differs(model, rule.name)) {
    start = Math.max(start, cause.at);
    return { text: `since ${timeOfDay(start)}, ${after(cause, start)}`, start, found };
  }
  return { text: `since ${time(start, now)} (${longSpan(minutes(now - start))})`, start, found };
}

// rising returns the first step from which on there were more denials than usual. Some steps with
// few denials end what was before.
function rising(counts, now, least, calmSteps) {
  const background = [...counts].sort((a, b) => a - b)[Math.floor(counts.length / 10)];
  const high = least === 1 ? 1 : Math.min(now / 2, Math.max(least, 2 * background));
  let first = counts.length; // in none that is over
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
