// What the page knows: the newest state, 15 minutes of history, the configuration and the acts.

const steps = 180;
const series = ["allowed", "denied", "shadow_denied", "error", "degraded", "banned"];

export class Model {
  access = { may_read: false, may_act: false, why: "", instance: "" };
  config = null;
  acts = null;
  lost = null; // what the store has lost, as {at, count}; at 0: nothing
  connection = { live: false, error: "", at: 0 };
  state = null; // the newest one
  fleet = 0; // instances when all were known; 0: they never were
  wholeAt = 0; // when they were
  told = null; // the verdict that is shown
  loud = new Map(); // when a rule denied much last
  #step_s = 5;
  #steps = new Array(steps).fill({ at: 0, rules: {}, total: [] });

  // isPartial is whether there are instances of which nothing is known now.
  get isPartial() {
    return Boolean(this.state?.alone) && this.fleet !== 1;
  }

  setHistory({ step_s, steps: list }) {
    [this.#step_s, this.#steps] = [step_s, list];
  }

  addStep(step) {
    this.#steps = [...this.#steps.slice(1), step];
  }

  // addState reports whether state is not the one that is known.
  addState(state) {
    if (state.at === this.state?.at) return false;
    this.state = state;
    const n = state.instances.length + (state.more_instances ?? 0);
    if (!state.alone) [this.fleet, this.wholeAt] = [n, state.at];
    return true;
  }

  // history returns the counts of a rule, or of all.
  history(rule) {
    const list = this.#steps.map(({ rules, total }) => (rule === null ? total : rules[rule]) ?? []);
    const counts = series.map((name, i) => [name, list.map((values) => values[i] ?? 0)]);
    return {
      step_s: this.#step_s, from: this.#steps[0].at, counts: Object.fromEntries(counts),
      calls: this.#steps.map(({ all = [] }) => ({ called: all[2] ?? 0, late: all[3] ?? 0 })),
      startOf: (i) => { // when a step began, or the first instance started if that was in it
        const at = (this.#steps[0].at + i * this.#step_s) * 1000;
        const all = [...this.state?.instances ?? [], ...this.state?.gone ?? []];
        const first = Math.min(...all.map((one) => one.started_at));
        return first < at + this.#step_s * 1000 ? Math.max(at, first) : at;
      },
    };
  }

  // rules returns those of the newest state.
  rules() {
    return this.state?.rules ?? [];
  }

  // rule finds a rule by its name. The state lists only the rules with the most decisions.
  rule(name) {
    const isIt = (r) => r.name === name;
    return this.rules().find(isIt) ?? this.config?.rules.find(isIt);
  }

  // hasCost is whether a request of a rule can take more than one token.
  hasCost(name) {
    return !/^1(,|$)/.test(this.config?.rules.find((r) => r.name === name)?.cost ?? "1");
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

// matches reports whether a key matches that of an override, in which * stands for any text.
export function matches(pattern, key) {
  const parts = pattern.split("*").map((part) => part.replace(/\W/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(key);
}
