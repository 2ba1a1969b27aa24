// The numbers and times on axes, and where they are.
(() => {
  "use strict";

  const { number } = window.Charts.format;

  // short is a number for an axis: 1.5k, 20M.
  function short(n) {
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
      if (Math.abs(n) >= size) {
        const base = unit === "k" ? 1e3 : size;
        return number(n / base, 1) + unit;
      }
    }
    return number(n, Math.abs(n) < 10 ? 2 : 0);
  }

  const two = (n) => String(n).padStart(2, "0");
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

  // fields of a time in seconds, in UTC.
  function fields(t) {
    const d = new Date(t * 1000);
    return { year: d.getUTCFullYear(), month: MONTHS[d.getUTCMonth()], day: d.getUTCDate(),
      clock: `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`, second: two(d.getUTCSeconds()) };
  }
  const dayOf = (f) => `${f.day} ${f.month}`;

  // moment is a time, to the minute.
  function moment(t) {
    const f = fields(t);
    return `${dayOf(f)} ${f.year} ${f.clock}`;
  }

  // range is the time from a to b without what both share.
  function range(a, b) {
    const seconds = b - a < 600 || a % 60 !== 0 || b % 60 !== 0;
    const start = fields(a), end = fields(b);
    const clock = (f) => f.clock + (seconds && b - a < 7200 ? ":" + f.second : "");
    if (start.year !== end.year) return `${moment(a)} – ${moment(b)} UTC`;
    if (dayOf(start) === dayOf(end)) {
      return `${dayOf(start)} ${start.year} ${clock(start)} – ${clock(end)} UTC`;
    }
    return `${dayOf(start)} ${clock(start)} – ${dayOf(end)} ${end.year} ${clock(end)} UTC`;
  }

  // timeTicks are the labels of times: what changes less often, such as the day, is once below its
  // first. The year is there if it is not the same for all.
  function timeTicks(ticks) {
    const all = ticks.map(fields);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 0;
    const years = all.length > 0 && all[0].year !== all.at(-1).year;
    let last = "";
    const below = (text, under) => {
      const first = under !== last;
      last = under;
      return first ? `${text}\n${under}` : text;
    };
    const midnight = all.every((f) => f.clock === "00:00" && f.second === "00");
    return all.map((f) => {
      if (step > 360 * 86400) return String(f.year);
      if (step >= 28 * 86400) return below(f.month, String(f.year));
      if (midnight && (step >= 86400 || ticks.length === 1)) {
        return years ? below(dayOf(f), String(f.year)) : dayOf(f);
      }
      return below(f.clock + (step > 0 && step < 60 ? ":" + f.second : ""),
        dayOf(f) + (years ? ` ${f.year}` : ""));
    });
  }

  // linear are at most n round numbers from min to max.
  function linear(min, max, n, whole) {
    if (!(max > min)) return [min];
    let step = 10 ** Math.floor(Math.log10((max - min) / Math.max(1, n)));
    // As fine as n allows, but at least one step wide.
    const factors = [1, 2, 5, 10];
    const i = factors.findIndex((f) => (max - min) / (step * f) <= n);
    step *= (max - min) / (step * factors[i]) < 1 ? factors[i - 1] : factors[i];
    if (whole) step = Math.max(1, step);
    const ticks = [];
    for (let v = Math.ceil(min / step - 1e-9) * step; v <= max + step * 1e-9; v += step) {
      ticks.push(Number(v.toPrecision(12)));
    }
    return ticks;
  }

  // logarithmic are at most n round numbers from min to max, evenly spaced on a log axis.
  function logarithmic(min, max, n) {
    if (max / min < 4) return linear(min, max, n, true);
    for (const steps of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
      const ticks = [];
      for (let p = 10 ** Math.floor(Math.log10(min)); p <= max; p *= 10) {
        for (const s of steps) {
          const v = Number((p * s).toPrecision(3));
          if (v >= min && v <= max && (v >= 1 && Number.isInteger(v) || v < 1)) ticks.push(v);
        }
      }
      if (ticks.length <= n || steps.length === 1) {
        const every = Math.ceil(ticks.length / Math.max(1, n));
        return ticks.filter((_, i) => i % every === 0);
      }
    }
    return [];
  }

  window.Charts.axis = { short, range, timeTicks, linear, logarithmic };
})();
