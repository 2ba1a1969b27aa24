// Numbers, shares, spans of time and texts of clients as text for people.

const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

// number formats a number with at most so many digits after the point.
export const number = (n, digits = 0) => n.toLocaleString("en", { maximumFractionDigits: digits });

// plural formats a number of things.
export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

// percent formats a part of all: never 0% of something, nor 100% of less than all.
export function percent(part, all = 1) {
  if (!(part > 0) || !(all > 0)) return "0%";
  if (part === all) return "100%";
  const p = (100 * part) / all;
  if (p < 0.0001) return "<0.0001%";
  if (p > 99.99) return ">99.99%";
  return `${Number(p.toPrecision(p < 1 ? 2 : p < 99.9 ? 3 : 4))}%`;
}

// rate formats a number per second.
export function rate(n) {
  if (!n) return "0";
  if (n < 0.05) return "<0.1";
  return n < 9.95 ? tenths.format(n) : number(n);
}

// latency formats microseconds.
export function latency(us) {
  if (!(us > 0)) return "–";
  if (us < 1000) return `${number(us)} µs`;
  const ms = us / 1000;
  return `${ms < 9.95 ? tenths.format(ms) : number(ms)} ms`;
}

const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

// parts are the largest unit of a time in seconds, and the next one if it is not 0.
function parts(seconds) {
  let rest = Math.max(0, Math.round(seconds));
  const first = Math.max(0, units.findIndex(([, size]) => rest >= size));
  return units.slice(first, first + 2).flatMap(([unit, size]) => {
    const n = Math.floor(rest / size);
    rest -= n * size;
    return n ? [[n, unit]] : [];
  });
}

// span formats seconds in little room, such as "1h 30m", "10s" or "1.5s".
export function span(seconds) {
  if (seconds > 0 && seconds < 9.95 && !Number.isInteger(seconds)) {
    return seconds < 0.05 ? "<0.1s" : `${seconds.toFixed(1)}s`;
  }
  return parts(seconds).map(([n, unit]) => n + unit[0]).join(" ") || "0s";
}

// longSpan formats seconds in words, such as "10 minutes" or "1 hour 30 minutes".
export function longSpan(seconds) {
  return parts(seconds).map(([n, unit]) => plural(n, unit)).join(" ") || "0 seconds";
}

// Characters that cannot be seen, or that change the order in which others are drawn.
const unseen = new RegExp("[\\u0000-\\u001f\\u007f-\\u00a0\\u00ad\\u061c\\u180e\\u200b-\\u200f" +
  "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]", "gu");
const escapes = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

// visible writes a text so that all of it can be seen: \u202E in place of such a character.
export const visible = (text) => text.toWellFormed().replace(unseen, (c) => escapes[c] ??
  `\\u${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
