// What stands out, and what the log cannot say.
(() => {
  "use strict";
  const { make, number, count, share, time } = Report;
  const percent = (v) => Charts.format.share(v);

  function notesSection(model, part) {
    const { size } = model.data;
    const blocks = [["Keys far from the rest", far(size)],
      ["What the log cannot say", (size.caveats ?? []).map((c) => [upper(c.text) + "."])],
      ["Skipped lines", skips(size)]];
    const full = blocks.filter(([, items]) => items.length);
    part("lists").append(...full.map(([title, items]) => make("div", {}, make("h3", {}, title),
      make("ul", {}, ...items.map((item) => make("li", {}, ...item))))));
    if (!full.length) part("lists").append(make("p", {}, "The logs have no requests."));
    return () => {};
  }

  const upper = (s) => s.charAt(0).toUpperCase() + s.slice(1);

  function far(size) {
    const s = size.stand_out;
    if (!s) return [];
    const items = s.keys.map((k) => [Report.name(k.key, 60), " needs ", make("b", {}, k.need),
      `: ${count(k.requests, "request")} (${percent(k.share)}), `, time(k.from), " to ",
      time(k.to)]);
    const rest = size.keys - s.keys.length;
    items.push([`The other ${count(rest, "key")} ${rest === 1 ? "needs" : "need"} at most `,
      make("b", {}, s.rest.limit), `. That limit denies ${count(s.rest.denied, "request")} ` +
      `(${share(s.rest.denied, s.rest.requests)}) from ${count(s.rest.denied_keys, "key")}.`]);
    return items;
  }

  const skips = (size) => (size.skipped_reasons ?? []).map((k) => [`${count(k.lines, "line")}: `,
    Report.name(k.reason, 80), " – first in ", Report.name(k.file, 60),
    `, line ${number(k.first_line)}`]);

  Report.notesSection = notesSection;
})();
