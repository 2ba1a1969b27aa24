// The limits of the page, and what follows from the data about each.
(() => {
  "use strict";
  const UNITS = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400, w: 604800 };
  const WORDS = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

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
    return { count, period, of: m[2], per: WORDS[m[2]] ?? m[2], rate: count / period,
      burst: Number(m[3] ?? Math.ceil(count)) };
  }

  // limits are those of the data. Proposals that are the same limit are one, and the strictest is
  // last.
  function limits(data) {
    const all = [];
    data.limits.forEach((l, index) => {
      const found = data.kind === "size", proposal = found ? data.size.proposals[index] : null;
      const same = all.find((a) => a.text === l.limit);
      if (same) {
        if (found) same.names.push(l.name);
        return;
      }
      all.push({ index, text: l.limit, names: found ? [l.name] : [], bucket: parse(l.limit),
        copy: l, result: data.replay.limits[index], proposal });
    });
    for (const l of all) {
      l.title = l.names.length ? `${Report.list(l.names)}: ${l.text}` : l.text;
      Object.assign(l, restOf(data, l));
    }
    if (data.kind === "size") all.sort((a, b) => a.result.denied - b.result.denied);
    return all;
  }

  // restOf returns what a limit denies to the keys that do not stand out.
  function restOf(data, l) {
    const ofRest = data.kind === "size" && !l.proposal;
    if (ofRest) return { restDenied: 0, restKeys: 0 };
    if (l.proposal && data.size.stand_out) {
      return { restDenied: l.proposal.rest_denied, restKeys: l.proposal.rest_denied_keys };
    }
    const standOut = new Set((data.size.stand_out?.keys ?? []).map((k) => k.key));
    const aside = (data.replay.detail.keys[l.index] ?? []).filter((k) => standOut.has(k.key));
    return { restDenied: l.result.denied - aside.reduce((sum, k) => sum + k.denied, 0),
      restKeys: l.result.denied_keys - aside.length };
  }

  Object.assign(Report, { parse, limits });
})();
