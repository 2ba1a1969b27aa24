// The page: one limit is chosen for all sections.
(() => {
  "use strict";
  document.documentElement.classList.add("scripted");
  const { h } = Charts.dom;
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = Report.limits(data);
  const listeners = [];
  const model = {
    data, all, limit: all.find((l) => "shown" in l.card.dataset),
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
  document.getElementById("sections").hidden = !all.length;
  if (all.length) {
    document.getElementById("choice").hidden = all.length < 2;
    const names = all.map((l) => [h("i", {}, l.name, " "), l.text]);
    const box = document.getElementById("limits");
    box.append(...Report.segments("limit", names, all.indexOf(model.limit), (i) =>
      model.choose(all[i])));
    model.onChoose((l) => {
      box.querySelectorAll("input")[all.indexOf(l)].checked = true;
    });
    section("time", Report.timeSection);
    section("needs", Report.needsSection);
    section("groups", Report.groupsSection);
    section("keys", Report.keysSection);
    section("copy", Report.copySection);
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
