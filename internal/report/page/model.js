// The data of the page, and what follows from it: the limits, which of them is recommended and why.
"use strict";
(() => {
  const { count, share, number } = Report;

  const UNITS = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

  // parse takes the text of a limit apart, if it is a token bucket: its rate a second, and burst.
  function parse(text) {
    const rest = text.slice(text.indexOf("=") + 1);
    const m = /^([\d.]+)\/((?:\d*(?:us|ms|[smhdw]))+)(?: burst (\d+))?$/.exec(rest);
    if (!m) return null;
    let period = 0;
    for (const [, n, unit] of m[2].matchAll(/(\d*)(us|ms|[smhdw])/g)) {
      period += (n === "" ? 1 : Number(n)) * UNITS[unit];
    }
    return { rate: Number(m[1]) / period, burst: Number(m[3] ?? Math.ceil(Number(m[1]))), period };
  }

  // limits are those of the data. Proposals that are the same limit are one.
  function limits(data) {
    const all = [];
    data.limits.forEach((l, index) => {
      const same = all.find((a) => a.text === l.limit);
      if (same) {
        if (l.name) same.names.push(l.name);
        return;
      }
      const proposal = data.kind === "size" ? data.size.proposals?.[index] : null;
      all.push({ index, text: l.limit, names: l.name ? [l.name] : [], bucket: parse(l.limit),
        copy: l, result: data.replay.limits[index], proposal });
    });
    for (const l of all) {
      l.title = l.names.length ? `${Report.list(l.names)}: ${l.text}` : l.text;
      Object.assign(l, restOf(data, l));
    }
    return all;
  }

  // restOf returns what a limit denies to the keys that do not stand out.
  function restOf(data, l) {
    const far = new Set((data.size.stand_out?.keys ?? []).map((k) => k.key));
    if (l.proposal && data.size.stand_out) {
      return { restDenied: l.proposal.rest_denied, restKeys: l.proposal.rest_denied_keys };
    }
    const listed = data.replay.detail.keys[l.index] ?? [];
    const aside = listed.filter((k) => far.has(k.key));
    return { restDenied: l.result.denied - aside.reduce((sum, k) => sum + k.denied, 0),
      restKeys: l.result.denied_keys - aside.length };
  }

  const BALANCED = .001;

  // recommend returns the limit to begin with, and why, as sentences.
  function recommend(data, all) {
    const { requests, stand_out: far } = data.size;
    const restRequests = requests - (far?.keys ?? []).reduce((sum, k) => sum + k.requests, 0);
    if (data.kind === "size") {
      const wanted = far ? "balanced" : "careful";
      const best = all.find((l) => l.names.includes(wanted)) ?? all[0];
      return { best, title: `Start with ${best.text}`, ...reasons(data, best, restRequests) };
    }
    const fine = all.filter((l) => l.restDenied <= BALANCED * restRequests);
    const order = (a, b) => b.result.denied - a.result.denied;
    const best = fine.length ? fine.sort(order)[0] :
      [...all].sort((a, b) => a.restDenied - b.restDenied)[0];
    if (all.length === 1) {
      return { best: null, shown: best, ...reasons(data, best, restRequests), title:
        best.result.denied ? `${best.text} denies ${share(best.result.denied, requests)} of the ` +
        "requests" : `${best.text} denies nothing` };
    }
    const why = reasons(data, best, restRequests);
    if (!fine.length) {
      why.why = `Each of the limits denies more than 0.1% of the requests of ${whom(far)}. ` +
        `${best.text} denies them least. ${why.why}`;
      return { best: null, shown: best, title: "None of these limits fits", ...why };
    }
    why.why = `Of the limits tested, it is the strictest that denies at most 0.1% of the requests ` +
      `of ${whom(far)}. ${why.why}`;
    return { best, title: `Start with ${best.text}`, ...why };
  }

  const whom = (far) => far ? "the keys that are not far from the rest" : "the keys";

  // reasons says what a limit denies, and to whom.
  function reasons(data, l, restRequests) {
    const { denied, requests, keys } = l.result;
    const far = data.size.stand_out?.keys ?? [];
    const room = "A limit without room denies the first client that is a little busier than those " +
      "in the log: leave room, up to twice this limit.";
    if (!denied) {
      return { why: `It would have denied none of the ${count(requests, "request")} of ` +
        `${count(keys, "key")}.`, caution: data.kind === "size" ? room : "" };
    }
    const all = `It would have denied ${number(denied)} of ${count(requests, "request")} ` +
      `(${share(denied, requests)}). `;
    const toFar = denied - l.restDenied;
    if (!far.length || toFar <= 0) {
      return { why: all + `They are of ${count(l.result.denied_keys, "key")} out of ` +
        `${number(keys)}.`, caution: "" };
    }
    const farKeys = l.result.denied_keys - l.restKeys;
    const rest = l.restDenied ? `the other ${number(keys - far.length)} lose ` +
      `${count(l.restDenied, "request")} (${share(l.restDenied, restRequests)} of theirs), ` +
      `${number(l.restKeys)} of them at least one` :
      `the other ${number(keys - far.length)} lose nothing`;
    return {
      why: `${all}${number(toFar)} of these are of ${count(farKeys, "key")} far from the rest; ` +
        `${rest}.`,
      caution: `Look at the requests of ${Report.list(far.slice(0, 3).map((k) =>
        Report.short(k.key)))}${far.length > 3 ? ` and ${number(far.length - 3)} more` : ""} ` +
        "before you deny them: a log cannot say whether such a key is a bot, an office behind one " +
        "address, or your best customer.",
    };
  }

  Object.assign(Report, { parse, limits, recommend });
})();
