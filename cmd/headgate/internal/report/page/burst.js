// Denied share against burst: a curve for each rate, with the limits as points.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, percent } = Charts.format;
  const MAX_CURVES = 6;

  function burstSection(model, part) {
    const { size } = model.data;
    const rates = (size.rates ?? []).filter((r) => r.curve?.length);
    fits(size, part("fits"));
    if (!rates.length) {
      part("lead").textContent = "None of the limits is a token bucket, so there is no burst to " +
        "choose.";
      return () => {};
    }
    if (!rates.some((r) => r.curve.some((p) => p.denied > 0))) {
      part("lead").textContent = "At the rates of these limits, no burst denies any request.";
      return () => {};
    }
    part("lead").textContent = "Each line is a rate. A larger burst denies fewer requests. " +
      "Where a line reaches 0%, no request is denied.";
    let chart = null;
    return (l) => {
      chart?.destroy();
      chart = Charts.curves(part("chart"), chartOf(model, rates, l));
      part("note").textContent = note(rates, l, size.requests);
    };
  }

  const rateOf = (r) => Report.parse(r.rate)?.rate;
  const same = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(a, b);
  const curveOf = (rates, l) => l.bucket ? rates.findIndex((r) =>
    same(rateOf(r), l.bucket.rate)) : -1;

  // drawn are the indices of the rates that are drawn: all, or those around the one of a limit.
  function drawn(rates, chosen) {
    const first = Math.max(0, Math.min(curveOf(rates, chosen) - 2, rates.length - MAX_CURVES));
    return rates.map((_, i) => i).slice(first, first + MAX_CURVES);
  }

  const styleOf = (i) => `s${i % MAX_CURVES + 1}`;

  function chartOf(model, rates, chosen) {
    const total = model.data.size.requests, shown = drawn(rates, chosen);
    const marks = model.all.filter((l) => shown.includes(curveOf(rates, l))).map((l) => ({
      x: l.bucket.burst, y: l.result.denied / total, name: l.title, strong: l === chosen,
      style: styleOf(curveOf(rates, l)) }));
    return {
      label: "Requests denied for each burst, with a curve for each rate",
      height: 340, marks, about: "Requests denied, by burst",
      x: { name: "burst", format: (v) => number(v) },
      y: { name: "denied", zero: true, format: (v) => percent(v) },
      curves: shown.map((i) => ({ name: rates[i].rate, style: styleOf(i),
        strong: curveOf(rates, chosen) === i, points: pointsOf(model, rates, i, total) })),
    };
  }

  // pointsOf are those of the curve and of the limits that lie on it.
  function pointsOf(model, rates, i, total) {
    const points = new Map(rates[i].curve.map((p) => [p.size, p.denied / total]));
    for (const l of model.all) {
      if (curveOf(rates, l) === i) points.set(l.bucket.burst, l.result.denied / total);
    }
    return [...points].sort((a, b) => a[0] - b[0]);
  }

  // note says what the curve of a limit says.
  function note(rates, l, total) {
    if (!l.bucket) return `${l.text} is not a token bucket, so it is not in this chart.`;
    const i = curveOf(rates, l);
    if (i < 0) {
      return `${l.text} denies ${percent(l.result.denied, total)}. ` +
        "Its rate has no line in this chart.";
    }
    const some = rates.length > MAX_CURVES ? `The chart shows ${MAX_CURVES} of ${rates.length} ` +
      "rates, those near the selected limit. " : "";
    const at = `${some}${l.text} has a burst of ${number(l.bucket.burst)} and denies ` +
      `${percent(l.result.denied, total)}.`;
    const least = rates[i].curve.find((p) => p.denied === 0);
    if (!l.result.denied) {
      if (!least || least.size >= l.bucket.burst) return at;
      return `${at} At this rate, a burst of ${number(least.size)} is enough to deny nothing.`;
    }
    if (!least) return at;
    const rest = rates[i].rest?.[0].point;
    if (rest && rest.size < least.size) {
      return `${at} At this rate, a burst of ${number(rest.size)} is enough for all keys but ` +
        `those that stand out; ${number(least.size)} would deny nothing at all.`;
    }
    return `${at} At this rate, a burst of ${number(least.size)} would deny nothing.`;
  }

  // fits is the table of the smallest limits for each period, and of bursts for each rate.
  function fits(size, host) {
    const all = [...(size.periods ?? []), ...(size.rates ?? [])];
    if (!all.length) {
      host.hidden = true;
      return;
    }
    const heads = all[0].fits.map((f) => `${Number((100 * f.max_share).toPrecision(3))}%`);
    const table = (of, pick, what) => Report.scroller(what, h("table", {},
      h("caption", {}, what), h("thead", {}, h("tr", {},
        h("th", { scope: "col" }, of === size.periods ? "Period" : "Rate"),
        ...heads.map((head) => h("th", { scope: "col", class: "n" }, head)))),
      h("tbody", {}, ...of.map((fit) => h("tr", {},
        h("th", { scope: "row" }, fit.rate || fit.period + (fit.enough ? "" : " *")),
        ...pick(fit).map((f) => h("td", { class: "n" }, !f.point ? "none" : fit.rate ?
          `burst ${number(f.point.size)}` : f.point.limit)))))));
    const aside = size.stand_out ? " (without the keys that stand out)" : "";
    if (size.periods?.length) {
      host.append(table(size.periods, (f) => f.fits, "Smallest limit that denies at most"));
      if (aside) host.append(table(size.periods, (f) => f.rest,
        `Smallest limit that denies at most${aside}`));
    }
    if (size.rates?.length) {
      host.append(table(size.rates, (f) => aside ? f.rest : f.fits,
        `Smallest burst that denies at most${aside}`));
    }
    if (size.periods?.some((f) => !f.enough)) {
      host.append(h("p", { class: "note" }, "* The logs cover less than 10 of these periods."));
    }
  }

  Report.burstSection = burstSection;
})();
