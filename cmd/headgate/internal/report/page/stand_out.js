// Keys that stand out: what each of them needs, and what each limit denies to it.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, percent, plural } = Charts.format, { time } = Report;
  const ROWS = 5, LIMITS = 6;

  // deniedTo is how many requests of a key that stands out a limit denies; null if that is not in
  // the data.
  function deniedTo(data, l, k) {
    if (l.proposal) return k.denied[l.index];
    const listed = data.replay.detail.keys[l.index] ?? [];
    const found = listed.find((d) => d.key === k.key);
    if (found) return found.denied;
    return listed.length === data.replay.detail.denied_keys_total[l.index] ? 0 : null;
  }

  // standOutTable is a card with the keys, or null if no limit denies any of them.
  function standOutTable(model) {
    const { data, all } = model;
    const keys = data.size.stand_out?.keys ?? [];
    if (!all.some((l) => l.result.denied > l.restDenied)) return null;
    const limits = all.length > LIMITS ? [] : all;
    const head = (text) => h("th", { scope: "col", class: "n" }, text);
    const cell = (...content) => h("td", { class: "n" }, ...content);
    const box = h("div", { class: "card stand-out" }, Report.scroller("Keys that stand out",
      h("table", {}, h("caption", {}, "Keys that stand out"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Key"), head("Needs"),
          head("Requests"), h("th", { scope: "col" }, "First to last request"),
          ...limits.map((l) => head(`Denied by ${l.text}`)))),
        h("tbody", {}, ...keys.slice(0, ROWS).map((k) => h("tr", {},
          h("th", { scope: "row" }, Report.name(k.key, 40)), cell(h("b", {}, k.need)),
          cell(number(k.requests)), h("td", {}, time(k.from), " to ", time(k.to)),
          ...limits.map((l) => cell(part(data, l, k)))))))));
    const left = keys.length - ROWS;
    const more = left > 0 ? ` ${plural(left, "more such key")} at the end ` +
      "of the page." : "";
    box.append(h("p", { class: "note quiet" }, "A key stands out if it needs, for some " +
      `period, at least three times as much as the next key.${more}`));
    return box;
  }

  function part(data, l, k) {
    const denied = deniedTo(data, l, k);
    if (denied === null) return "–";
    return denied ? h("b", {}, percent(denied, k.requests)) : "0%";
  }

  // choice says for which answer about these keys a limit is right.
  function choice(data, l) {
    const { keys } = data.size.stand_out;
    if (keys.some((k) => deniedTo(data, l, k) === null)) {
      return "The page does not list all keys that this limit denies.";
    }
    const denied = keys.filter((k) => deniedTo(data, l, k) > 0);
    const spared = keys.filter((k) => !denied.includes(k));
    const others = l.restDenied ? `, and ${plural(l.restDenied, "request")} of other keys` : "";
    const lead = data.kind === "size" ? "Choose it if" : "Only if";
    if (!denied.length && data.kind !== "size") return "Denies none of these keys.";
    if (!denied.length) {
      return keys.length === 1 ? `Choose it if ${Report.short(keys[0].key)} may not be denied.` :
        `Choose it if ${keys.length === 2 ? "neither" : "none"} of these keys may be denied.`;
    }
    if (spared.length) {
      return `${lead} ${some(denied, `${denied.length} of these keys`)} may be denied` +
        `${others}, but not ${some(spared, `the other ${spared.length}`)}.`;
    }
    return `${lead} ${some(keys, keys.length === 2 ? "both keys" :
      `all ${keys.length} keys`)} may be denied${others}.`;
  }

  const some = (keys, text) => keys.length === 1 ? Report.short(keys[0].key) : text;

  Object.assign(Report, { standOutTable, choice });
})();
