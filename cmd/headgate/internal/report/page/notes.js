// What stands out, and what the log cannot say.
(() => {
  "use strict";
  const { make, number, count, share, span } = Report;
  const percent = (v) => Charts.format.share(v);

  function notesSection(model, part) {
    const { size } = model.data;
    const blocks = [["Keys far from the rest", far(size)], ["Keys at regular intervals",
      (size.regular ?? []).map(regular)], ["Bursts at fixed times", (size.moments ?? []).map(
      moment)], ["Growth", growth(size)], ["What the log cannot say", (size.caveats ?? []).map(
      (c) => [upper(c.text) + "."])], ["Skipped lines", skips(size)]];
    const full = blocks.filter(([, items]) => items.length);
    part("lists").append(...full.map(([title, items]) => make("div", {}, make("h3", {}, title),
      make("ul", {}, ...items.map((item) => make("li", {}, ...item))))));
    if (!full.length) part("lists").append(make("p", {}, size.requests ? "No unusual traffic." :
      "The logs have no requests."));
    return () => {};
  }

  const upper = (s) => s.charAt(0).toUpperCase() + s.slice(1);

  function far(size) {
    const s = size.stand_out;
    if (!s) return [];
    const items = s.keys.map((k) => [Report.name(k.key, 60), " needs ", make("b", {}, k.need),
      `: ${count(k.requests, "request")} (${percent(k.share)}) in ${count(k.hours, "hour")}` +
      interval(k)]);
    const rest = size.keys - s.keys.length;
    items.push([`The other ${count(rest, "key")} ${rest === 1 ? "needs" : "need"} at most `,
      make("b", {}, s.rest.limit), `. That limit denies ${count(s.rest.denied, "request")} ` +
      `(${share(s.rest.denied, s.rest.requests)}) from ${count(s.rest.denied_keys, "key")}.`]);
    return items;
  }

  const interval = (k) => k.interval_s ? `, every ${span(k.interval_s)} in ` +
    `${percent(k.regularity)} of cases` : "";

  const regular = (k) => [Report.name(k.key, 60), `: ${count(k.requests, "request")} ` +
    `(${percent(k.share)}) in ${count(k.hours, "hour")}${interval(k)}`];

  function moment(m) {
    const at = m.cycle === "minute" ? `Second ${m.slot} of the minute` : m.cycle === "hour" ?
      `Minute ${m.slot} of the hour` : `${String(m.slot).padStart(2, "0")}:00 to ` +
      `${String(m.slot).padStart(2, "0")}:59 UTC`;
    return [`${at}: ${percent(m.share)} of the requests; a burst in ${number(m.times)} of ` +
      count(m.rounds, m.cycle)];
  }

  function growth(size) {
    const g = size.growth;
    if (!g) return [];
    return [[`${number(Math.round(g.late))} requests a day in the last ${g.days / 2} days, ` +
      `${number(Math.round(g.early))} in the ${g.days / 2} before.`]];
  }

  const skips = (size) => (size.skipped_reasons ?? []).map((k) => [`${count(k.lines, "line")}: `,
    Report.name(k.reason, 80), " – first in ", Report.name(k.file, 60),
    `, line ${number(k.first_line)}`]);

  Report.notesSection = notesSection;
})();
