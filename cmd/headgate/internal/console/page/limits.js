// Limits as text, taken apart as far as the page compares them. The server decides what is valid.

const seconds = {
  us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, sec: 1, second: 1, m: 60, min: 60, minute: 60, h: 3600,
  hour: 3600, d: 86400, day: 86400, w: 604800, week: 604800,
};

const algorithms = ["token-bucket", "gcra", "leaky-bucket", "stepped", "fixed-window",
  "sliding-window", "sliding-log"];

// split takes a list of limits apart.
export const split = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

function periodOf(text) {
  if (seconds[text]) return seconds[text];
  const parts = text.match(/\d+[a-zµ]+/g) ?? [];
  if (parts.length === 0 || parts.join("") !== text) return NaN;
  return parts.reduce((sum, part) => {
    const [, n, unit] = /^(\d+)(.+)$/.exec(part);
    return sum + n * (seconds[unit] ?? NaN);
  }, 0);
}

// parse returns {rate, burst} of a limit, or null if it is not understood.
export function parse(text) {
  const found = /^(?:[^=]*=)?\s*(\d+(?:\.\d+)?)\/(\S+)(?:\s+burst\s+(\d+))?(?:\s+(\S+))?\s*$/
    .exec(text);
  if (!found) return null;
  const [, n, per, burst, algorithm] = found;
  const rate = n / periodOf(per);
  if (!(rate > 0) || algorithm && !algorithms.includes(algorithm)) return null;
  return { rate, burst: Number(burst ?? Math.ceil(n)) };
}

// strictest returns the lowest rate and burst of a list of limits, or null.
function strictest(list) {
  const all = list.map(parse);
  if (all.length === 0 || all.includes(null)) return null;
  return {
    rate: Math.min(...all.map((l) => l.rate)), burst: Math.min(...all.map((l) => l.burst)),
  };
}

export const areUnderstood = (list) => strictest(list) !== null;

// isLower reports whether limits let less through than others, at once or over time.
export function isLower(list, than) {
  const [a, b] = [strictest(list), strictest(than)];
  return Boolean(a && b) && (a.rate < b.rate * (1 - 1e-9) || a.burst < b.burst);
}
