// Numbers, times and keys as text for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

// rate formats a number per second.
export function rate(n) {
  if (!n) return "0";
  if (n < 0.05) return "<0.1";
  return n < 9.95 ? tenths.format(n) : whole.format(n);
}

export const count = (n) => whole.format(n);

// plural formats a number of things.
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

// percent formats a share from 0 to 1.
export function percent(share) {
  if (!(share > 0)) return "0 %";
  if (share < 0.001) return "<0.1 %";
  if (share > 0.999 && share < 1) return ">99.9 %";
  return `${share < 0.0995 ? tenths.format(share * 100) : whole.format(share * 100)} %`;
}

// latency formats microseconds.
export function latency(us) {
  if (!(us > 0)) return "–";
  if (us < 1000) return `${whole.format(us)} µs`;
  const ms = us / 1000;
  return `${ms < 9.95 ? tenths.format(ms) : whole.format(ms)} ms`;
}

const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

// span formats seconds, such as "10 minutes" or "1 hour 30 minutes".
export function span(seconds) {
  let rest = Math.max(0, Math.round(seconds));
  const at = units.findIndex(([, size]) => rest >= size);
  if (at < 0) return "0 seconds";
  const [name, size] = units[at];
  const first = Math.floor(rest / size);
  rest -= first * size;
  const next = units[at + 1];
  const second = next && first < 10 ? Math.floor(rest / next[1]) : 0;
  return plural(first, name) + (second ? ` ${plural(second, next[0])}` : "");
}

// shortSpan formats seconds in little room, such as "4s", "12m" or "1.5s".
export function shortSpan(seconds) {
  if (seconds === null || seconds === undefined) return "never";
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))}s`;
  for (const [name, size] of units) {
    if (seconds >= size) return `${Math.round(seconds / size)}${name[0]}`;
  }
  return "0s";
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const sameDay = (a, b) => new Date(a).toDateString() === new Date(b).toDateString();

// time formats milliseconds as a local time, with the day unless it is today.
export function time(ms, now = Date.now()) {
  return sameDay(ms, now) ? clock.format(ms) : `${day.format(ms)}, ${clock.format(ms)}`;
}

export const timeOfDay = (ms) => exact.format(ms);

// utc is the title of a local time.
export const utc = (ms) => `${new Date(ms).toISOString().replace("T", " ").slice(0, 19)} UTC`;

export function ago(ms, now = Date.now()) {
  const seconds = Math.max(0, (now - ms) / 1000);
  return seconds < 2 ? "now" : `${shortSpan(Math.floor(seconds))} ago`;
}

// visible writes a key so that all of it can be seen.
export const visible = (key) => (key === "" ? "(empty)" : window.Charts.format.visible(key));

const longest = 120;

// brief is the start and the end of a key that is too long for a row.
export function brief(key) {
  const text = visible(key);
  if (text.length <= longest) return text;
  return `${text.slice(0, longest - 20)}…${text.slice(-12)}`;
}

const kept = 256; // bytes of a denied key that the server keeps; it marks the end of others

// cutOff says that a key that was denied is the beginning of a longer one, or "".
export function cutOff(key) {
  return key.endsWith("…") && new TextEncoder().encode(key).length >= kept
    ? "Only the first 256 bytes of this key are known: find the whole key" : "";
}
