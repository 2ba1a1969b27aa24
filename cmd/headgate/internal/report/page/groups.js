// What would be denied: by path, method and status.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, percent, plural } = Charts.format;
  const plurals = { Path: "paths", Method: "methods", Status: "statuses" };

  function groupsSection(model, part) {
    const { detail } = model.data.replay;
    const kinds = [["Path", detail.paths], ["Method", detail.methods], ["Status", detail.statuses]]
      .filter(([, groups]) => groups?.length);
    if (!kinds.length) {
      part("lead").textContent = "The logs have no paths, methods or statuses.";
      return () => {};
    }
    return (l) => {
      part("lead").textContent = lead(detail, l);
      part("tables").replaceChildren(...(l.result.denied ? kinds.map(([label, groups]) =>
        table(label, groups, l)) : []));
    };
  }

  function lead(detail, l) {
    const { denied } = l.result;
    if (!denied) return `${l.text} denies nothing.`;
    const listed = "What has no denied request is not listed.";
    const part = (detail.statuses ?? []).filter((s) => /^4\d\d$/.test(s.name))
      .reduce((sum, s) => sum + s.denied[l.index], 0);
    return part ? `${listed} ${number(part)} of the ${plural(denied, "denied request")} ` +
      `(${percent(part, denied)}) had a 4xx status in the log. A high percentage suggests ` +
      "scanners or broken clients, not customers." : listed;
  }

  function table(label, groups, l) {
    const of = (g) => g.denied[l.index];
    const total = l.result.denied;
    const sorted = groups.filter((g) => of(g) > 0).sort((a, b) =>
      (a.name === "(other)") - (b.name === "(other)") || of(b) - of(a));
    const rows = sorted.map((g) => h("tr", {},
      h("th", { scope: "row" }, nameOf(g, label)),
      h("td", { class: "n" }, number(of(g))),
      h("td", { class: "n" }, percent(of(g), total)),
      h("td", { class: "wide" }, Report.bar(of(g), total)),
      h("td", { class: "n" }, percent(of(g), g.requests))));
    return h("div", { class: "group" },
      Report.scroller(`Denied requests by ${label.toLowerCase()}`, h("table", {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, label),
          h("th", { scope: "col", class: "n" }, "Denied"),
          h("th", { scope: "col", class: "n" }, "Share of denials"),
          h("th", { scope: "col", class: "wide" }, h("span", { class: "hidden" }, "Bar")),
          h("th", { scope: "col", class: "n" }, "Denied %"))),
        h("tbody", {}, ...rows))));
  }

  function nameOf(g, label) {
    const quiet = (text) => h("i", { class: "quiet" }, text);
    if (g.name === "(other)") return quiet(`other ${plurals[label]}, together`);
    if (g.name === "(none)") return quiet("none");
    return Report.name(g.name, 70);
  }

  Report.groupsSection = groupsSection;
})();
