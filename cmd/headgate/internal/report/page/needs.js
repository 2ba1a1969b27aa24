// Keys by peak rate: how many keys need a limit of which size, for a period.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, plural } = Charts.format;

  function needsSection(model, part) {
    const periods = (model.data.size.periods ?? []).filter((p) => p.needs?.length);
    const form = part("periods").closest("form");
    form.hidden = periods.length < 2;
    part("lead").textContent = "Each bar counts the keys for which this is the smallest limit " +
      "that denies them nothing. A limit never denies the keys to the left of its line or band, " +
      "and denies requests of all keys to the right of it. Both axes are logarithmic.";
    let chart = null, chosen = periods[start(model, periods)];
    const draw = (l) => {
      chart?.destroy();
      chart = Charts.histogram(part("chart"), chartOf(model, chosen, l));
      part("note").textContent = note(l) + burst(l, model.data.size);
    };
    part("fits").append(...fits(model.data.size));
    part("periods").append(...Report.segments("period", periods.map((p) => String(p.period)),
      periods.indexOf(chosen), (i) => {
        chosen = periods[i];
        draw(model.limit);
      }));
    return draw;
  }

  // start is the period of the limit that is shown first, or else the one in the middle.
  function start(model, periods) {
    const bucket = model.limit?.bucket;
    const i = periods.findIndex((p) => bucket && Report.parse(`1/${p.period}`)?.period ===
      bucket.period);
    return i >= 0 ? i : Math.floor(periods.length / 2);
  }

  // place is where a limit lies among limits n/period: a key that needs at most from is never
  // denied, one that needs more than to is denied.
  function place(l, seconds) {
    const each = l.bucket.rate * seconds;
    const near = Math.abs(each - Math.round(each)) < 1e-6 ? Math.round(each) : each;
    return { from: Math.floor(Math.min(near, l.bucket.burst)),
      to: Math.ceil(Math.max(near, l.bucket.burst)) };
  }

  function chartOf(model, fit, chosen) {
    const { seconds, unit } = periodOf(fit);
    return {
      label: `Keys, by the limit that they need for ${fit.period}`, unit: "keys", height: 280,
      about: "Number of keys, by the limit that they need",
      x: { name: "need", format: (v) => `${number(v)}/${unit}` },
      bins: fit.needs.map((n) => ({ from: n.from, to: n.to, count: n.keys })),
      marks: model.all.filter((l) => l.bucket && (l === chosen || place(l, seconds).from ===
        place(l, seconds).to)).map((l) => ({ ...place(l, seconds), name: l.text,
          strong: l === chosen })),
    };
  }

  function periodOf(fit) {
    const text = String(fit.period);
    return { seconds: Report.parse(`1/${text}`).period, unit: text.replace(/^1(?=\D)/, "") };
  }

  function note(l) {
    const denied = l.result.denied_keys;
    const keys = denied ? `${l.text} denies requests of ${number(denied)} of ` +
      `${plural(l.result.keys, "key")}.` : `${l.text} denies no key.`;
    return l.bucket ? keys : `${keys} It is not a token bucket, so it is not in this chart.`;
  }

  // burst says which burst is enough at the rate of a limit.
  function burst(l, size) {
    const at = l.bucket && (size.rates ?? []).find((r) => r.rate === l.bucket.text);
    const least = at?.fits[0].point?.size, rest = at?.rest?.[0].point?.size;
    if (!least || Math.min(least, rest ?? least) >= l.bucket.burst) return "";
    const enough = rest < least ? `${number(rest)} is enough for all keys but those that stand ` +
      `out, and one of ${number(least)} for all keys` : `${number(least)} is enough for all keys`;
    return " The burst is how many requests may come at once. At this rate, a burst of" +
      ` ${enough}.`;
  }

  // fits are the tables of the smallest limits for each period.
  function fits({ periods, stand_out: standOut }) {
    const table = (caption, pick) => Report.scroller(caption, h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Period"),
        ...periods[0].fits.map((f) => h("th", { scope: "col", class: "n" },
          `${Number((100 * f.max_share).toPrecision(3))}%`)))),
      h("tbody", {}, ...periods.map((p) => h("tr", {},
        h("th", { scope: "row" }, p.period + (p.enough ? "" : " *")),
        ...pick(p).map((f) => h("td", { class: "n" }, f.point?.limit ?? "none")))))));
    const what = "Smallest limit that denies at most";
    return [table(what, (p) => p.fits),
      standOut && table(`${what} (without the keys that stand out)`, (p) => p.rest),
      periods.some((p) => !p.enough) &&
        h("p", { class: "note" }, "* The logs cover less than 10 of these periods.")]
      .filter(Boolean);
  }

  Report.needsSection = needsSection;
})();
