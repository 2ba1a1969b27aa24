// What would be denied: by path, method and status.
"use strict";
(() => {
  const { make, number, share, count } = Report;
  const SHOWN = 10;

  function groupsSection(model, part) {
    const { detail } = model.data.replay;
    const kinds = [["Path", detail.paths], ["Method", detail.methods], ["Status", detail.statuses]]
      .filter(([, groups]) => groups?.length);
    if (!kinds.length) {
      part("lead").textContent = "The logs have no paths, methods or statuses.";
      return () => {};
    }
    const open = new Set();
    return (l) => {
      part("lead").textContent = lead(detail, l);
      part("tables").replaceChildren(...(l.result.denied ? kinds.map(([label, groups]) =>
        table(label, groups, l, open)) : []));
    };
  }

  function lead(detail, l) {
    const { denied } = l.result;
    if (!denied) return `${l.text} denies nothing.`;
    const missed = (detail.statuses ?? []).filter((s) => /^4\d\d$/.test(s.name));
    if (!missed.length) return "";
    const part = missed.reduce((sum, s) => sum + s.denied[l.index], 0);
    if (!part) return "None of the denied requests was answered with a status of 4xx.";
    return `${number(part)} of the ${count(denied, "denied request")} (${share(part, denied)}) had ` +
      "been answered with a status of 4xx: a high share points to scanners and broken clients " +
      "rather than to customers.";
  }

  function table(label, groups, l, open) {
    const of = (g) => g.denied[l.index];
    const total = l.result.denied;
    const sorted = groups.filter((g) => of(g) > 0).sort((a, b) => of(b) - of(a));
    const rows = sorted.map((g, i) => make("tr", { class: i >= SHOWN && "extra" },
      make("th", { scope: "row" }, Report.name(g.name, 70)),
      make("td", { class: "n" }, number(of(g))),
      make("td", { class: "n" }, share(of(g), total)),
      make("td", { class: "wide" }, Report.bar(of(g), total)),
      make("td", { class: "n" }, share(of(g), g.requests))));
    const plural = { Path: "paths", Method: "methods", Status: "statuses" }[label];
    const without = groups.length - sorted.length;
    const box = make("div", { class: open.has(label) ? "group open" : "group" },
      Report.scroller(`Denied requests by ${label.toLowerCase()}`, make("table", {},
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, label),
          make("th", { scope: "col", class: "n" }, "Denied"),
          make("th", { scope: "col", class: "n", title: "Part of all denied requests" },
            "Of all denied"),
          make("th", { scope: "col", class: "wide" }, make("span", { class: "hidden" }, "Bar")),
          make("th", { scope: "col", class: "n",
            title: `Part of the requests of this ${label.toLowerCase()}` }, "Of its own"))),
        make("tbody", {}, ...rows))));
    if (sorted.length > SHOWN) {
      box.append(make("button", { type: "button", class: "toggle", "aria-expanded":
        open.has(label), on: { click: (e) => toggle(e.target, box, label, open, sorted.length) } },
        open.has(label) ? "Show fewer" : `Show all ${number(sorted.length)} ${plural}`));
    }
    if (without > 0) {
      box.append(make("p", { class: "note" }, `${number(without)} other ` +
        `${without === 1 ? label.toLowerCase() : plural} listed in the data: nothing denied.`));
    }
    return box;
  }

  function toggle(button, box, label, open, size) {
    if (open.has(label)) open.delete(label);
    else open.add(label);
    box.classList.toggle("open", open.has(label));
    button.setAttribute("aria-expanded", open.has(label));
    button.textContent = open.has(label) ? "Show fewer" : `Show all ${number(size)}`;
  }

  Report.groupsSection = groupsSection;
})();
