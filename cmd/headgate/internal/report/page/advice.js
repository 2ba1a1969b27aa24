// Which limit to begin with, and why; or what to decide before.
(() => {
  "use strict";
  const { number, percent, plural } = Charts.format;

  // BALANCED is the share of the requests of ordinary keys that a limit may deny, as that of the
  // balanced proposal. FEW requests are too few for an advice.
  const BALANCED = .001, FEW = 100;

  // advise returns {best, shown, title, why, caution}: best is null if no limit is recommended. If
  // a limit denies keys that stand out, only the reader knows whether it may.
  function advise(data, all) {
    if (data.size.requests < FEW) return fewRequests(data, all[0]);
    if (data.kind === "size") return ofProposals(data, all);
    if (all.length === 1) return ofOne(data, all[0]);
    return ofSeveral(data, all);
  }

  function fewRequests(data, l) {
    return { best: null, shown: l, title: "Too few requests to choose a limit",
      why: `The logs have ${plural(data.size.requests, "request")} from ` +
        `${plural(data.size.keys, "key")}. ${l.text} denies ` +
        `${l.result.denied ? number(l.result.denied) : "none"} of them.`, caution: "" };
  }

  // ofProposals recommends to deny nothing, unless the proposals deny keys that stand out.
  function ofProposals(data, all) {
    if (all.some(deniesStandOut)) return question(data, all);
    const named = (name) => all.find((l) => l.names.includes(name));
    const need = named("careful") ?? all[0], best = named("reserve") ?? need;
    const { why, caution } = reasons(data, best);
    const calm = data.size.stand_out ? "" :
      " No key stands out, so the logs give no reason for a stricter limit.";
    return { best, shown: best, title: `Start with ${best.text}`, caution,
      why: `${best === need ? "" : `It is twice ${need.text}, the smallest limit that would have ` +
        "denied nothing: a client may be busier than in the log. "}${why}${calm}` };
  }

  const deniesStandOut = (l) => l.result.denied > l.restDenied;

  // question asks for the decision that the choice between the proposals depends on.
  function question(data, all) {
    const { keys, rest } = data.size.stand_out, others = data.size.keys - keys.length;
    const named = (name) => all.find((l) => l.names.includes(name));
    const shown = named("between") ?? named("reserve") ?? named("balanced") ?? all[0];
    return { best: null, shown, asks: true, title: decide(keys), caution: "",
      why: `${others === 1 ? "The other key needs" : `The other ${number(others)} keys need`} at ` +
        `most ${rest.limit}. ${twice(named("reserve"))}${look(keys)}` };
  }

  const twice = (l) => l ? `${l.text} is twice that, so that they may be busier than in the log. ` : "";

  const decide = (keys) => `First decide about ${plural(keys.length, "key")}`;

  function ofOne(data, l) {
    const { denied, requests } = l.result;
    const title = denied ? `${l.text} denies ${percent(denied, requests)} of the requests` :
      `${l.text} denies nothing`;
    return { best: null, shown: l, title, ...reasons(data, l) };
  }

  // ofSeveral recommends the strictest limit that spares ordinary keys.
  function ofSeveral(data, all) {
    const whom = data.size.stand_out ? "keys that do not stand out" : "the keys";
    const most = BALANCED * ordinary(data);
    const fine = all.filter((l) => l.restDenied <= most);
    if (fine.length) {
      const best = fine.reduce((a, b) => b.result.denied > a.result.denied ? b : a);
      const { why, caution } = reasons(data, best), asks = deniesStandOut(best);
      return { best: asks ? null : best, shown: best, asks, caution,
        title: asks ? decide(data.size.stand_out.keys) : `Start with ${best.text}`,
        why: `${best.text} is the strictest of these limits that denies at most 0.1% of the ` +
          `requests of ${whom}. ${why}` };
    }
    const least = all.reduce((a, b) => b.restDenied < a.restDenied ? b : a);
    const { why, caution } = reasons(data, least);
    const title = `${least.text} denies the fewest requests`;
    return { best: null, shown: least, title, caution, why:
      `Each of these limits denies more than 0.1% of the requests of ${whom}. ` +
        `${least.text} denies the fewest. ${why}` };
  }

  // ordinary is the number of requests of the keys that do not stand out.
  const ordinary = ({ size }) => size.requests -
    (size.stand_out?.keys ?? []).reduce((sum, k) => sum + k.requests, 0);

  // reasons says what a limit denies, and to whom.
  function reasons(data, l) {
    const { denied, requests, keys, denied_keys: deniedKeys } = l.result;
    if (!denied) return { why: nothing(l), caution: "" };
    const all = `It would have denied ${number(denied)} of ${plural(requests, "request")} ` +
      `(${percent(denied, requests)}). `;
    const standOut = data.size.stand_out?.keys ?? [], ofThem = denied - l.restDenied;
    if (!standOut.length || ofThem <= 0) {
      const of = keys === 1 ? "the only key" : deniedKeys === keys ? `all ${number(keys)} keys` :
        `${plural(deniedKeys, "key")} of ${number(keys)}`;
      return { why: `${all}They come from ${of}.`, caution: "" };
    }
    const some = ofThem === denied ? "All" : number(ofThem);
    const out = deniedKeys - l.restKeys;
    return { caution: look(standOut), why: `${all}${some} of these come from` +
      ` ${plural(out, "key")} that ${out === 1 ? "stands" : "stand"} out. ` +
      others(data, l, keys - standOut.length) };
  }

  const nothing = ({ result }) => `It would have denied none of the ` +
    `${plural(result.requests, "request")} from ${plural(result.keys, "key")}.`;

  function others(data, l, rest) {
    const who = rest === 1 ? "The other key" : `The other ${number(rest)} keys`;
    if (!l.restDenied) return `${who} ${rest === 1 ? "is" : "are"} never denied.`;
    const of = rest === 1 ? "" : `, from ${plural(l.restKeys, "key")}`;
    return `${who} would have been denied ${plural(l.restDenied, "request")} ` +
      `(${percent(l.restDenied, ordinary(data))} of ${rest === 1 ? "its" : "their"} ` +
      `requests)${of}.`;
  }

  function look(keys) {
    const names = keys.slice(0, 3).map((k) => Report.short(k.key));
    if (keys.length > 3) names.push(`${number(keys.length - 3)} more`);
    return `Check the requests of ${Report.list(names)} before you deny them: a log cannot show ` +
      "whether such a key is a bot, an office behind one address, or your best customer.";
  }

  Report.advise = advise;
})();
