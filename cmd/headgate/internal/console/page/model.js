// What the page knows: the last states, 15 minutes of history, the configuration and the acts.

const steps = 180;
const averaged = 5; // seconds: one second by itself jumps too much to be read
const series = ["allowed", "denied", "shadow_denied", "error", "degraded", "banned"];

export class Model {
  access = { may_read: false, may_act: false, why: "", instance: "" };
  config = null;
  acts = null;
  connection = { live: false, error: "", at: 0 };
  fleet = 0; // instances when all were known; 0: they never were
  wholeAt = 0; // when they were
  told = null; // the verdict that is shown
  comings = []; // when instances started, or were gone, as causes
  #states = [];
  #partial = new Set(); // starts of the steps without data from other instances
  #step_s = 5;
  #steps = new Array(steps).fill({ at: 0, rules: {}, total: [] });

  // state is the newest one, or null.
  get state() {
    return this.#states.at(-1) ?? null;
  }

  // isPartial is whether there are instances of which nothing is known now.
  get isPartial() {
    return Boolean(this.state?.alone) && this.fleet !== 1;
  }

  setHistory({ step_s, steps: list }) {
    [this.#step_s, this.#steps] = [step_s, list];
    this.#partial.clear();
  }

  addStep(step) {
    this.#steps = [...this.#steps.slice(1), step];
    if (this.isPartial) this.#partial.add(step.at);
    for (const old of this.#partial) if (old < this.#steps[0].at) this.#partial.delete(old);
  }

  // addState reports whether state is not the one that is known.
  addState(state) {
    if (state.at === this.state?.at) return false;
    if (state.at < this.state?.at) this.#states = []; // of another instance, whose clock is behind
    this.#noteInstances(state);
    this.#states.push(state);
    const n = state.instances.length + (state.more_instances ?? 0);
    if (!state.alone) [this.fleet, this.wholeAt] = [n, state.at];
    if (this.#states.length > averaged) this.#states.shift();
    return true;
  }

  // setActs notes if none of the known acts is left: the bans may be gone, too.
  setActs(acts) {
    if (this.state && this.acts?.length && !this.acts.some(({ id }) =>
      acts.some((a) => a.id === id))) {
      this.comings.push({ at: this.state.at, rules: null, text: "the list of actions was lost" });
    }
    this.acts = acts;
  }

  // noteInstances notes which instances came and went since the last state, or lately.
  #noteInstances({ at, alone, instances }) {
    const oldest = at - steps * this.#step_s * 1000;
    const started = instances.filter((i) => i.started_at > oldest)
      .map((i) => ({ at: i.started_at, rules: null, text: `${i.name} started`, who: i.name }));
    const [before, last] = this.#states.slice(-2);
    const lacks = (state, { name }) => !state.alone && !state.instances.some((i) => i.name === name);
    const gone = !last || before.alone ? [] : before.instances // one state may lack it, when it is late
      .filter((i) => lacks(last, i) && lacks({ alone, instances }, i))
      .map((i) => ({ at: last.at, rules: null, text: `${i.name} was gone` }));
    const known = this.comings.filter((c) => c.at > oldest && !started.some((s) =>
      s.at === c.at && s.text === c.text));
    this.comings = [...known, ...started, ...gone];
  }

  // history returns the counts of a rule, or of all.
  history(rule) {
    const list = this.#steps.map(({ rules, total }) => (rule === null ? total : rules[rule]) ?? []);
    const counts = series.map((name, i) => [name, list.map((values) => values[i] ?? 0)]);
    return {
      step_s: this.#step_s, from: this.#steps[0].at, counts: Object.fromEntries(counts),
      gaps: this.#steps.map((step) => this.#partial.has(step.at)),
      startOf: (i) => { // when a step began, or the first instance started if that was in it
        const at = (this.#steps[0].at + i * this.#step_s) * 1000;
        const first = Math.min(...(this.state?.instances ?? []).map((one) => one.started_at));
        return first < at + this.#step_s * 1000 ? Math.max(at, first) : at;
      },
    };
  }

  // rules returns those of the newest state, each with its rates over the last seconds.
  rules() {
    if (!this.state) return [];
    const sums = new Map();
    for (const { rules } of this.#states) for (const rule of rules) add(sums, rule);
    return this.state.rules.map((rule) => {
      const sum = sums.get(rule.name);
      const rates = series.map((name) => [name, sum[name] / sum.seconds]);
      const all = Object.fromEntries(rates);
      const most = all.denied + (rule.mode === "enforce" ? 0 : all.shadow_denied);
      const keys = (rule.denied_keys ?? []).map((k) => // a rate may still have those in shadow
        ({ ...k, per_s: Math.min(k.per_s, most) }));
      return { ...rule, ...all, denied_keys: keys };
    });
  }

  // rule finds a rule by its name. The state lists only the rules with the most decisions.
  rule(name) {
    const isIt = (r) => r.name === name;
    return this.rules().find(isIt) ?? this.config?.rules.find(isIt);
  }

  // override returns the one that counts for a key: those of the file come first, and the key's own
  // before those of patterns.
  override(rule, key, now = Date.now()) {
    const all = (this.config?.overrides ?? []).filter((o) => o.rule === rule
      && matches(o.key, key) && (!o.until || Date.parse(o.until) > now));
    const best = (list) => list.find((o) => o.key === key) ?? list[0];
    return best(all.filter((o) => o.source === "file")) ?? best(all) ?? null;
  }

  // limits returns those that are in force for a key, and those of its rule.
  limits(rule, key) {
    const file = this.config?.rules.find((r) => r.name === rule)?.limits ?? [];
    const override = this.override(rule, key);
    const own = override?.limits?.length ? override.limits : null;
    return { file, now: own ?? file, override };
  }

  // bans returns how many keys of a rule are banned.
  bans(rule, now = Date.now()) {
    return (this.config?.overrides ?? []).filter((o) => o.rule === rule && o.ban
      && (!o.until || Date.parse(o.until) > now)).length;
  }

  // lastAct returns the newest act on a key that can be undone, if it is the newest on this key.
  lastAct(rule, key) {
    const act = this.acts?.find((a) => a.rule === rule && a.key === key && !a.undone);
    return act?.undoable ? act : null;
  }
}

function add(sums, rule) {
  const zero = Object.fromEntries(series.map((name) => [name, 0]));
  const sum = sums.get(rule.name) ?? { seconds: 0, ...zero };
  sum.seconds++;
  for (const name of series) sum[name] += rule[name];
  sums.set(rule.name, sum);
}

// matches reports whether a key matches that of an override, in which * stands for any text.
export function matches(pattern, key) {
  const parts = pattern.split("*");
  if (parts.length === 1) return pattern === key;
  const last = parts.pop();
  const first = parts.shift();
  if (!key.startsWith(first) || !key.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts) {
    at = key.indexOf(part, at);
    if (at < 0) return false;
    at += part.length;
  }
  return at <= key.length - last.length;
}
