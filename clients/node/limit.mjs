// Limits: their text form, their numbers, and the bounds of calendars. See docs/protocol.md.

import { wrong } from "./errors.cjs";

export const MAX_EXACT = Number.MAX_SAFE_INTEGER; // 2^53 - 1
export const ALGORITHMS = [
  "token-bucket", "stepped", "fixed-window", "sliding-window", "sliding-log", "calendar-window",
];
const ALSO = { __proto__: null, gcra: "token-bucket", "leaky-bucket": "token-bucket" };
const UNITS = { __proto__: null, w: 604800e6, d: 86400e6, h: 3600e6, m: 60e6, s: 1e6, ms: 1e3, us: 1 };
const WORDS = {
  __proto__: null,
  week: "w", day: "d", hour: "h", min: "m", minute: "m", sec: "s", second: "s", "µs": "us",
};
const CALENDARS = {
  __proto__: null, d: "day", day: "day", w: "week", week: "week", month: "month", year: "year",
};
const DAY = 86400; // in seconds

const gcd = (a, b) => (b ? gcd(b, a % b) : a);
const min = (...all) => all.reduce((least, n) => (n < least ? n : least));
const divide = (a, b) => Number(BigInt(a) / BigInt(b));

/** Writes the 7 lowest bytes of n, the lowest first. */
export function write7(buffer, n, at) {
  const high = Math.floor(n / 2 ** 32);
  buffer.writeUInt32LE(n - high * 2 ** 32, at);
  buffer.writeUIntLE(high & 0xffffff, at + 4, 3);
  return at + 7;
}

/** Reads 7 bytes with their sign. */
export const read7 = (buffer, at) => buffer.readIntLE(at + 4, 3) * 2 ** 32 + buffer.readUInt32LE(at);

const known = new Map();

/** A limit. Make one with parse or of, and keep it. */
export class Limit {
  #bounds;

  /** Reads the text form, such as "100/m burst 20" or "5/15m sliding-log". */
  static parse(text) {
    let limit = known.get(text);
    if (limit === undefined) {
      limit = parse(String(text));
      if (known.size >= 4096) known.clear();
      known.set(text, limit);
    }
    return limit;
  }

  /** Makes a limit of its parts. period is in seconds, or a text such as "15m" or "month". */
  static of({ count, period, burst, algorithm, name, zone, anchor }) {
    if (typeof period === "number") period = `${Math.round(period * 1e6)}us`;
    const words = { "": algorithm, burst, tz: zone, anchor };
    const options = Object.entries(words).filter(([, value]) => value !== undefined);
    const text = options.map(([word, value]) => ` ${word} ${value}`).join("");
    return Limit.parse(`${name ? name + "=" : ""}${count}/${period}${text}`);
  }

  /** @private */
  constructor(parts) {
    Object.assign(this, { name: "", unit: "", zone: "", month: 0, day: 0 }, parts);
    check(this);
    this.number = ALGORITHMS.indexOf(this.algorithm) + 1;
    const text = format(this);
    const end = `${this.unit || formatPeriod(this.period_us)} ${this.algorithm}`;
    const bucket = this.algorithm === "token-bucket" ? this.name : `${this.name} stepped`;
    this.id = !this.name ? text : this.refill ? bucket : `${this.name} ${end}`;
    this.text = (this.name ? this.name + "=" : "") + text;
    let [a, b] = [this.period_us, 0];
    if (this.algorithm === "token-bucket") {
      const g = gcd(this.refill, a);
      [a, b] = [this.refill / g, a / g];
    } else if (this.algorithm === "stepped") [a, b] = [this.refill, a];
    this.packed = Buffer.alloc(21);
    write7(this.packed, b, write7(this.packed, a, write7(this.packed, this.capacity, 0)));
    if (!this.unit) Object.freeze(this);
  }

  toString() {
    return this.text;
  }

  /** Returns the numbers that the scripts need; a calendar has those of a time. */
  pack(now_us) {
    if (!this.unit) return this.packed;
    const [start, next, last] = this.bounds(now_us);
    const packed = Buffer.from(this.packed);
    const lengths = ((next - start) / 1e6) * 2 ** 26 + (last - next) / 1e6;
    write7(packed, lengths, write7(packed, start, 7));
    return packed;
  }

  /** Returns where the window of a calendar at a time begins, and the next two. */
  bounds(now_us) {
    const now = Math.floor(now_us / 1e6);
    const had = this.#bounds;
    if (had && had[0] <= now_us && now_us < had[1]) return had;
    let n = windowOf(this, Math.floor((now + offset(this.zone, now)) / DAY));
    let first = start(this, n);
    let second = first;
    while (second === first || second <= now) [first, second] = [second, start(this, ++n)];
    let third = second; // of a window that clocks do not skip
    while (third === second) third = start(this, ++n);
    this.#bounds = [Math.max(first, 0) * 1e6, second * 1e6, third * 1e6];
    return this.#bounds;
  }
}

/** Counts the windows up to the one of a day, which is counted from 1970 on. */
function windowOf({ unit, month, day }, days) {
  if (unit === "day") return days;
  if (unit === "week") return Math.floor((days + 3) / 7); // January 1, 1970 was a Thursday
  const date = new Date(days * DAY * 1000);
  const [y, m, d] = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()];
  if (unit === "month") return 12 * y + m - 1 - (d < anchorDay(y, m, day));
  return y - (m < month || (m === month && d < anchorDay(y, month, day)));
}

/** Returns the first second of window n. */
function start({ unit, month, day, zone }, n) {
  if (unit === "day") return first(n * DAY, zone);
  if (unit === "week") return first((7 * n - 3) * DAY, zone);
  const [y, m] = unit === "month" ? [Math.floor(n / 12), (n % 12) + 1] : [n, month];
  return first(Date.UTC(y, m - 1, anchorDay(y, m, day)) / 1000, zone);
}

const anchorDay = (y, m, day) => Math.min(day, new Date(Date.UTC(y, m, 0)).getUTCDate());

/** Returns the first second at which clocks show a date, or a later one. */
function first(midnight, zone) {
  for (let at = midnight - 2 * DAY; ; ) {
    const here = offset(zone, at);
    if (at + here >= midnight) return at;
    let next = Math.min(midnight - here, at + 3600);
    if (offset(zone, next) !== here) { // find the second at which clocks are set
      for (let low = at; next - low > 1; ) {
        const middle = Math.floor((low + next) / 2);
        if (offset(zone, middle) === here) low = middle;
        else next = middle;
      }
    }
    at = next;
  }
}

const formats = new Map();

function formatOf(zone) {
  if (!formats.has(zone)) {
    const two = "2-digit";
    formats.set(zone, new Intl.DateTimeFormat("en-US", {
      timeZone: zone, hourCycle: "h23", year: "numeric", month: two, day: two, hour: two,
      minute: two, second: two,
    }));
  }
  return formats.get(zone);
}

/** Returns how many seconds the clocks of a zone are ahead of UTC. */
function offset(zone, seconds) {
  const part = {};
  for (const { type, value } of formatOf(zone).formatToParts(seconds * 1000)) part[type] = +value;
  const { year, month, day, hour, minute, second } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second) / 1000 - seconds;
}

function formatPeriod(micros) {
  for (const [unit, size] of Object.entries(UNITS)) {
    if (micros % size === 0) return micros === size ? unit : micros / size + unit;
  }
  return "";
}

/** Returns the canonical text without a name. */
function format({ unit, zone, month, day, capacity, refill, algorithm, period_us }) {
  if (unit) {
    const tz = zone !== "UTC" || unit === "day" || unit === "week" ? ` tz ${zone}` : "";
    const two = (n) => String(n).padStart(2, "0");
    const anchor = month ? `${two(month)}-${two(day)}` : day;
    return `${capacity}/${unit}${tz}${day > 1 || month > 1 ? ` anchor ${anchor}` : ""}`;
  }
  const burst = refill && refill !== capacity ? ` burst ${capacity}` : "";
  const end = algorithm === "token-bucket" ? "" : ` ${algorithm}`;
  return `${refill || capacity}/${formatPeriod(period_us)}${burst}${end}`;
}

function check({ name, algorithm, capacity, refill, period_us: period, unit, zone, month, day }) {
  if (name && !/^[A-Za-z][A-Za-z0-9._-]{0,63}$/.test(name)) {
    wrong("limit name", `"${name}"`, "1 to 64 letters, digits, '.', '-' and '_'");
  }
  if (capacity < 1 && algorithm !== "fixed-window") {
    wrong("count", capacity, 'at least 1, or "0/d fixed-window" to deny all');
  }
  let most = MAX_EXACT;
  if (unit) {
    try {
      if (zone === "Local") throw new RangeError(zone);
      formatOf(zone);
    } catch {
      wrong("time zone", `"${zone}"`, "UTC, or a name such as Europe/Zurich");
    }
    const fits = { month: month === 0 && day >= 1 && day <= 31,
      year: month >= 1 && month <= 12 && day >= 1 && day <= anchorDay(2024, month, 31) };
    if (!(fits[unit] ?? (month === 0 && day === 0))) {
      wrong("anchor", `${month}-${day}`, "a day of a month, or 04-17 of a year");
    }
  } else if (!(period >= 1 && period <= MAX_EXACT)) {
    wrong("period", `${period} us`, "at least 1 us and at most 285 years");
  } else if (algorithm === "token-bucket") {
    most = divide(divide(MAX_EXACT, 2), period / gcd(refill, period));
  } else if (algorithm === "stepped") {
    const steps = BigInt(divide(MAX_EXACT, period)) * BigInt(refill);
    most = Number(min(steps, 2n ** 62n / BigInt(period) - 1n, BigInt(MAX_EXACT) / 2n));
  } else if (algorithm === "sliding-window") {
    most = Math.min(2 ** 32 - 1, divide(divide(MAX_EXACT, 2), period));
  } else if (algorithm === "sliding-log") most = 65535;
  if (capacity > most || most < 1) {
    wrong("count", capacity, `at most ${most}, to be counted exactly`);
  }
}

function parse(text) {
  const cut = text.indexOf("=");
  const name = text.slice(0, Math.max(cut, 0)).trim();
  if (cut >= 0 && !name) wrong("limit name", "empty", "a name before '='");
  const [head = "", ...words] = text.slice(cut + 1).split(/\s+/).filter(Boolean);
  const slash = head.indexOf("/");
  if (slash < 0) {
    const want = '"100/m", "10/s burst 50", "5/15m sliding-log" or "api=1000/d fixed-window"';
    wrong("limit", `"${text}"`, `a form like ${want}`);
  }
  const [count, period, options] = [head.slice(0, slash), head.slice(slash + 1), read(words)];
  const { algorithm = "token-bucket" } = options;
  if (period === "month" || period === "year" || "tz" in options || "anchor" in options ||
      algorithm === "calendar-window") return calendar(name, count, period, options);
  const [, whole, fraction = ""] = /^([0-9]{1,19})(?:\.([0-9]{1,9}))?$/.exec(count) ?? [];
  let n = Number(whole + fraction);
  if (whole === undefined || n > MAX_EXACT) {
    wrong("count", `"${count}"`, `a whole or decimal number, at most ${MAX_EXACT}`);
  }
  let scale = 10 ** fraction.length;
  const g = gcd(n, scale);
  [n, scale] = [n / g, scale / g];
  const micros = microsOf(period);
  if (algorithm === "token-bucket" || algorithm === "stepped") {
    if (n < 1 || micros > MAX_EXACT / scale) {
      wrong("count", `"${count}"`, "at least 1, with fewer decimals, or a shorter period");
    }
    const capacity = Number(options.burst ?? Math.ceil(n / scale));
    return new Limit({ name, algorithm, capacity, refill: n, period_us: micros * scale });
  }
  if ("burst" in options || scale !== 1) {
    wrong("limit", `"${text}"`, "a whole count and no burst: only buckets have those");
  }
  return new Limit({ name, algorithm, capacity: n, refill: 0, period_us: micros });
}

/** Reads the words after count/period. */
function read(words) {
  const options = {};
  for (let i = 0; i < words.length; i++) {
    const word = ALSO[words[i]] ?? words[i];
    const [option, value] = ALGORITHMS.includes(word) ? ["algorithm", word] : [word, words[++i]];
    if (!["algorithm", "burst", "tz", "anchor"].includes(option) || value === undefined) {
      wrong("option", `"${word}"`, `burst N, tz ZONE, anchor DAY, or one of ${ALGORITHMS.join(", ")}`);
    }
    if (option in options) wrong(option, `"${value}" after another`, `one ${option}`);
    if (option === "burst" && (!/^[0-9]{1,19}$/.test(value) || Number(value) < 1)) {
      wrong("burst", `"${value}"`, "a whole number of at least 1");
    }
    options[option] = value;
  }
  return options;
}

function microsOf(period) {
  const size = (unit) => UNITS[WORDS[unit] ?? unit] ?? NaN;
  let micros = size(period);
  if (!micros) {
    micros = /^([0-9]+[^0-9]+)+$/.test(period) ? 0 : NaN;
    for (const [, n, unit] of period.matchAll(/([0-9]+)([^0-9]+)/g)) micros += n * size(unit);
  }
  if (Number.isNaN(micros)) wrong("period", `"${period}"`, "such as s, 15m, 1h30m or d, or month or year");
  return micros;
}

function calendar(name, count, period, { burst, algorithm = "calendar-window", tz = "UTC", anchor }) {
  const capacity = /^[0-9]{1,19}$/.test(count) ? Number(count) : 0;
  const unit = CALENDARS[period];
  if (capacity < 1) wrong("count", `"${count}"`, "a whole number of at least 1 for a calendar");
  if (!unit || burst || algorithm !== "calendar-window") {
    wrong("period", `"${period}"`, "day, week, month or year alone for a calendar");
  }
  let [month, day] = { month: [0, 1], year: [1, 1] }[unit] ?? [0, 0];
  if (anchor !== undefined) {
    const [, m = 0, d] = /^(?:([0-9]{1,9})-)?([0-9]{1,9})$/.exec(anchor) ?? [];
    if (d === undefined) wrong("anchor", `"${anchor}"`, "a day such as 17, or a date such as 04-17");
    [month, day] = [Number(m), Number(d)];
  }
  return new Limit({ name, algorithm, capacity, refill: 0, period_us: 0, unit, zone: tz, month, day });
}
