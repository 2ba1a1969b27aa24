// The denied keys: a table to search and to sort.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, percent, plural, span, visible } = Charts.format;
  const { time, seconds } = Report;
  const PAGE = 20, PRINTED = 100;

  const COLUMNS = [
    { id: "key", label: "Key", of: (k) => k.key, text: true, cell: (k) => Report.name(k.key) },
    { id: "denied", label: "Denied", of: (k) => k.denied, cell: (k) => number(k.denied) },
    { id: "requests", label: "Requests", of: (k) => k.requests, cell: (k) => number(k.requests) },
    { id: "share", label: "Denied %", of: (k) => k.denied / k.requests,
      cell: (k) => percent(k.denied, k.requests) },
    { id: "first", label: "First denial", of: (k) => seconds(k.first), cell: (k) => time(k.first) },
    { id: "last", label: "Last denial", of: (k) => seconds(k.last), cell: (k) => time(k.last) },
    { id: "locked", label: "Longest run of denials", of: (k) => k.denied_run_s, cell: lockout },
  ];

  // lockout is what a client felt: how long all was denied, and when it could have retried.
  function lockout(k) {
    const run = k.denied_run_s < 1 ? "under 1s" : span(k.denied_run_s);
    return h("span", {}, `${run}, `, h("span", { class: "quiet" },
      `retry ${span(k.retry_after_s)} later`));
  }

  function keysSection(model, part) {
    const state = { search: "", by: "denied", down: true, shown: PAGE, keys: [], more: 0 };
    const view = build(part("table"), state, () => draw(view, state));
    let before = PAGE;
    // On paper, where nothing can be shown later, more keys are shown.
    const show = (shown) => { state.shown = shown; draw(view, state); };
    addEventListener("beforeprint", () => {
      before = state.shown;
      show(Math.max(before, PRINTED));
    });
    addEventListener("afterprint", () => show(before));
    return (l) => {
      const { detail } = model.data.replay;
      state.keys = detail.keys[l.index] ?? [];
      state.more = (detail.denied_keys_total[l.index] ?? 0) - state.keys.length;
      state.shown = PAGE;
      part("lead").textContent = lead(l, state);
      part("table").hidden = !state.keys.length;
      draw(view, state);
    };
  }

  function lead(l, state) {
    if (!state.keys.length) return `${l.text} denies no key.`;
    const all = `${plural(l.result.denied_keys, "key")} of ${number(l.result.keys)} would have ` +
      "been denied at least once. A run is the time from the first to the last denial without " +
      "an allowed request between them. The next request would have been allowed so much later.";
    return state.more > 0 ? `${all} The table lists the top ${number(state.keys.length)}; ` +
      `${number(state.more)} more are not listed.` : all;
  }

  function build(host, state, redraw) {
    const input = h("input", { type: "search", id: "search", autocomplete: "off",
      spellcheck: "false", placeholder: "Part of a key",
      input: () => { state.search = input.value; state.shown = PAGE; redraw(); } });
    const found = h("p", { class: "found", role: "status" });
    const heads = COLUMNS.map((c) => {
      const button = h("button", { type: "button", class: "sort",
        click: () => sortBy(state, c, redraw) }, c.label,
        h("span", { class: "arrow", "aria-hidden": "true" }));
      return h("th", { scope: "col", class: c.text ? "" : "n" }, button);
    });
    const body = h("tbody", {});
    const more = h("button", { type: "button", class: "toggle",
      click: () => { state.shown += 4 * PAGE; redraw(); } });
    const rest = h("p", { class: "note paper" });
    host.append(h("div", { class: "search" },
      h("label", { for: "search" }, "Search"), input, found),
      Report.scroller("Denied keys", h("table", { class: "denied-keys" },
        h("thead", {}, h("tr", {}, ...heads)), body)), more, rest);
    return { heads, body, more, found, rest };
  }

  function sortBy(state, column, redraw) {
    if (state.by === column.id) state.down = !state.down;
    else Object.assign(state, { by: column.id, down: !column.text });
    redraw();
  }

  function draw({ heads, body, more, found, rest }, state) {
    const column = COLUMNS.find((c) => c.id === state.by);
    COLUMNS.forEach((c, i) => heads[i].setAttribute("aria-sort",
      c !== column ? "none" : state.down ? "descending" : "ascending"));
    const wanted = state.search.trim().toLowerCase();
    const keys = state.keys.filter((k) => visible(k.key).toLowerCase().includes(wanted));
    const sign = state.down ? -1 : 1;
    keys.sort((a, b) => {
      const x = column.of(a), y = column.of(b);
      return sign * (x < y ? -1 : x > y ? 1 : 0) || b.denied - a.denied ||
        (a.key < b.key ? -1 : 1);
    });
    body.replaceChildren(...keys.slice(0, state.shown).map(row));
    const left = keys.length - state.shown;
    more.hidden = left <= 0;
    more.textContent = left <= 0 ? "Show more" :
      `Show ${number(Math.min(left, 4 * PAGE))} more of ${number(left)}`;
    rest.textContent = left > 0 ? `And ${plural(left, "more key")}.` : "";
    found.textContent = !wanted ? "" : keys.length ? `${plural(keys.length, "key")} found` :
      state.more > 0 ? "No listed key matches. Keys that are not listed may match." :
        "No denied key matches.";
  }

  const row = (k) => h("tr", {}, ...COLUMNS.map((c) => c.text ?
    h("th", { scope: "row" }, c.cell(k)) : h("td", { class: "n" }, c.cell(k))));

  Report.keysSection = keysSection;
})();
