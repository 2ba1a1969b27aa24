// What stands out, and what the log cannot say.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, percent, plural } = Charts.format, { time } = Report;

  function notesSection(model, part) {
    const { size } = model.data;
    const blocks = [["Keys that stand out", standOut(size)],
      ["What the log cannot say", (size.caveats ?? []).map((c) => [upper(c.text) + "."])],
      ["Skipped lines", skips(size)]];
    const full = blocks.filter(([, items]) => items.length);
    part("lists").append(...full.map(([title, items]) => h("div", {}, h("h3", {}, title),
      h("ul", {}, ...items.map((item) => h("li", {}, ...item))))));
    if (!full.length) part("lists").append(h("p", {}, "The logs have no requests."));
    return () => {};
  }

  const upper = (s) => s.charAt(0).toUpperCase() + s.slice(1);

  function standOut(size) {
    const s = size.stand_out;
    if (!s) return [];
    const items = s.keys.map((k) => [Report.name(k.key, 60), " needs ", h("b", {}, k.need),
      `: ${plural(k.requests, "request")} (${percent(k.share)}), `, time(k.from), " to ",
      time(k.to)]);
    const rest = size.keys - s.keys.length;
    items.push([`The other ${plural(rest, "key")} ${rest === 1 ? "needs" : "need"} at most `,
      h("b", {}, s.rest.limit), `. That limit denies ${plural(s.rest.denied, "request")} ` +
      `(${percent(s.rest.denied, s.rest.requests)}) from ${plural(s.rest.denied_keys, "key")}.`]);
    return items;
  }

  const skips = (size) => (size.skipped_reasons ?? []).map((k) => [`${plural(k.lines, "line")}: `,
    Report.name(k.reason, 80), " – first in ", Report.name(k.file, 60),
    `, line ${number(k.first_line)}`]);

  Report.notesSection = notesSection;
})();
