// The page: one limit is chosen for all sections.
(() => {
  "use strict";
  document.documentElement.classList.add("scripted");
  const { h } = Charts.dom;
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = data.size.requests > 0 ? Report.limits(data) : [];
  const advice = all.length ? Report.advise(data, all) : null;
  const listeners = [];
  const model = {
    data, all, advice, limit: advice?.shown ?? null,
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
    document.getElementById("choice").hidden = all.length < 2;
    const names = all.map((l) => l.names.length ?
      [h("i", {}, `${l.names.join(", ")} `), l.text] : [l.text]);
    const box = document.getElementById("limits");
    box.append(...Report.segments("limit", names, all.indexOf(model.limit), (i) =>
      model.choose(all[i])));
    model.onChoose((l) => {
      const input = box.querySelectorAll("input")[all.indexOf(l)], label = input.parentElement;
      input.checked = true;
      box.scrollLeft = label.offsetLeft - (box.clientWidth - label.offsetWidth) / 2;
    });
    section("time", Report.timeSection);
    section("burst", Report.burstSection);
    section("needs", Report.needsSection);
    section("groups", Report.groupsSection);
    section("keys", Report.keysSection);
    section("copy", Report.copySection);
    section("notes", Report.notesSection);
    model.choose(model.limit);
  }
  const closed = [];
  addEventListener("beforeprint", () => {
    closed.push(...document.querySelectorAll("details:not([open])"));
    for (const d of closed) d.open = true;
  });
  addEventListener("afterprint", () => {
    for (const d of closed.splice(0)) d.open = false;
  });
  document.documentElement.dataset.ready = "true";
})();
