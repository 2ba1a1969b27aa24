// The page: one limit is chosen for all sections.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = data.size.requests > 0 ? Report.limits(data) : [];
  const advice = all.length ? Report.recommend(data, all) : null;
  const listeners = [];
  const model = {
    data, all, advice, limit: advice?.best ?? advice?.shown ?? all[0] ?? null,
    onChoose: (f) => listeners.push(f),
    choose(l) {
      model.limit = l;
      for (const f of listeners) f(l);
    },
  };

  const section = (id, setUp) => {
    const host = document.getElementById(id);
    const part = (name) => host.querySelector(`[data-part="${name}"]`);
    const update = setUp(model, part);
    const of = host.querySelector(".of");
    model.onChoose((l) => {
      if (of) of.textContent = l.text;
      update(l);
    });
  };

  Report.head(model);
  if (!all.length) {
    document.getElementById("choice").hidden = true;
    for (const id of ["time", "burst", "needs", "groups", "keys", "copy"]) {
      document.getElementById(id).hidden = true;
    }
    Report.notesSection(model, (name) => document.querySelector(`#notes [data-part="${name}"]`));
  } else {
    const names = all.map((l) => l.names.length ?
      [Report.make("i", {}, `${l.names.join(", ")} `), l.text] : [l.text]);
    const box = document.getElementById("limits");
    box.append(...Report.segments("limit", names, all.indexOf(model.limit), (i) =>
      model.choose(all[i])));
    model.onChoose((l) => { box.querySelectorAll("input")[all.indexOf(l)].checked = true; });
    section("time", Report.timeSection);
    section("burst", Report.burstSection);
    section("needs", Report.needsSection);
    section("groups", Report.groupsSection);
    section("keys", Report.keysSection);
    section("copy", Report.copySection);
    section("notes", Report.notesSection);
    model.choose(model.limit);
  }
  addEventListener("beforeprint", () => {
    for (const d of document.querySelectorAll("details")) d.open = true;
  });
  document.documentElement.dataset.ready = "true";
})();
