// Texts to copy, and other parts that sections share.
(() => {
  "use strict";
  const { copyFrom, h } = Charts.dom;

  // copyable is a text with a button that copies it, or selects it where that is forbidden.
  function copyable(label, text) {
    const pre = h("pre", { tabindex: "0", "aria-label": label }, text);
    const button = h("button", { type: "button", class: "copy" }, "Copy",
      h("span", { class: "hidden" }, ` ${label}`));
    button.addEventListener("click", async () => {
      const done = await copyFrom(pre, button);
      document.getElementById("said").textContent = `${label}: ${done.toLowerCase()}`;
    });
    return h("div", { class: "copyable" }, pre, button);
  }

  function copySection(model, part) {
    const texts = [["Text", "limit", "for --limit, ParseLimit and rules files"],
      ["Go", "go", "expression"], ["YAML", "yaml", "a rule for headgate serve"]];
    return (l) => part("texts").replaceChildren(...texts.filter(([, field]) => l.copy[field])
      .map(([label, field, what]) => h("div", { class: `copy-${field}` },
        h("h3", {}, label, " ", h("span", { class: "quiet" }, what)),
        copyable(label, l.copy[field]))));
  }

  // scroller is a box around a table that is scrolled if it is too wide, and then says so.
  const scroller = (label, table) => {
    const box = h("div", { class: "scroller", tabindex: "0", role: "region",
      "aria-label": label }, table);
    const hint = h("p", { class: "more-columns quiet", hidden: true, "aria-hidden": "true" },
      "Scroll sideways for more columns →");
    const see = () => { hint.hidden = box.scrollWidth <= box.clientWidth + 1; };
    new ResizeObserver(see).observe(box);
    return h("div", { class: "scrolled" }, hint, box);
  };

  // segments are radio buttons that look like one control.
  function segments(name, labels, chosen, choose) {
    return labels.map((label, i) => {
      const input = h("input", { type: "radio", name, value: i, checked: i === chosen,
        change: () => choose(i) });
      const content = Array.isArray(label) ? label : [label];
      return h("label", {}, input, h("span", {}, ...content));
    });
  }

  Object.assign(Report, { copyable, copySection, scroller, segments });
})();
