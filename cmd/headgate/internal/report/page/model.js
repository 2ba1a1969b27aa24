// The limits of the page.
(() => {
  "use strict";
  const UNITS = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

  // parse takes the text of a limit apart, if it is a token bucket. Its rate is by second.
  function parse(text) {
    const rest = text.slice(text.indexOf("=") + 1);
    const m = /^([\d.]+)\/((?:\d*(?:us|ms|[smhdw]))+)(?: burst (\d+))?$/.exec(rest);
    if (!m) return null;
    let period = 0;
    for (const [, n, unit] of m[2].matchAll(/(\d*)(us|ms|[smhdw])/g)) {
      period += (n === "" ? 1 : Number(n)) * UNITS[unit];
    }
    const count = Number(m[1]);
    return { count, period, of: m[2], text: `${m[1]}/${m[2]}`, rate: count / period,
      burst: Number(m[3] ?? Math.ceil(count)) };
  }

  // limits are those of the data, in the order of their cards.
  const limits = (data) => [...document.querySelectorAll("#cards > article")].map((card) => {
    const index = Number(card.dataset.limit), copy = data.limits[index];
    const name = data.kind === "size" ? copy.name : "";
    return { index, card, copy, name, text: copy.limit, bucket: parse(copy.limit),
      title: name ? `${name}: ${copy.limit}` : copy.limit, result: data.replay.limits[index] };
  });

  Object.assign(Report, { parse, limits });
})();
