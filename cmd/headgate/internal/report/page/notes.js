// What stands out, and what the log cannot say.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, percent, plural } = Charts.format;

  function notesSection(model, part) {
    const { size } = model.data;
    const blocks = [["Keys that do not stand out", others(size)],
      ["What the log cannot say", (size.caveats ?? []).map((c) => [upper(c.text) + "."])],
      ["Skipped lines", skips(size)]];
    const full = blocks.filter(([, items]) => items.length);
    part("lists").append(...full.map(([title, items]) => h("div", {}, h("h3", {}, title),
      h("ul", {}, ...items.map((item) => h("li", {}, ...item))))));
    if (!full.length) part("lists").append(h("p", {}, "The logs have no requests."));
    return () => {};
  }

  const upper = (s) => s.charAt(0).toUpperCase() + s.slice(1);

  // others says what the keys need that do not stand out.
  function others(size) {
    const s = size.stand_out;
    if (!s) return [];
    const rest = size.keys - s.keys.length;
    return [[`The other ${plural(rest, "key")} ${rest === 1 ? "needs" : "need"} at most `,
      h("b", {}, s.rest.limit), `. That limit denies ${plural(s.rest.denied, "request")} ` +
      `(${percent(s.rest.denied, s.rest.requests)}) from ${plural(s.rest.denied_keys, "key")}.`]];
  }

  const skips = (size) => (size.skipped_reasons ?? []).map((k) => [`${plural(k.lines, "line")}: `,
    Report.name(k.reason, 80), " – first in ", Report.name(k.file, 60),
    `, line ${number(k.first_line)}`]);

  Report.notesSection = notesSection;
})();
