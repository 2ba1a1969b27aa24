// Texts to copy, and other parts that sections share.
(() => {
  "use strict";
  const { make } = Report;

  // copyable is a text with a button that copies it, or selects it where that is forbidden.
  function copyable(label, text) {
    const pre = make("pre", { tabindex: "0", "aria-label": label }, text);
    const button = make("button", { type: "button", class: "copy" }, "Copy",
      make("span", { class: "hidden" }, ` ${label}`));
    button.addEventListener("click", async () => {
      let done = "Copied";
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        getSelection().selectAllChildren(pre);
        done = "Selected";
      }
      button.firstChild.textContent = done;
      document.getElementById("said").textContent = `${label}: ${done.toLowerCase()}`;
      setTimeout(() => { button.firstChild.textContent = "Copy"; }, 2000);
    });
    return make("div", { class: "copyable" }, pre, button);
  }

  function copySection(model, part) {
    const texts = [["Text", "limit", "for --limit, ParseLimit and rules files"],
      ["Go", "go", "expression"], ["YAML", "yaml", "a rule for headgate serve"],
      ["Header fields", "headers", "of an allowed and a denied response"]];
    return (l) => part("texts").replaceChildren(...texts.filter(([, field]) => l.copy[field])
      .map(([label, field, what]) => make("div", { class: `copy-${field}` },
        make("h3", {}, label, " ", make("span", { class: "quiet" }, what)),
        copyable(label, l.copy[field]))));
  }

  // scroller is a box around a table that is scrolled if it is too wide, and then says so.
  const scroller = (label, table) => {
    const box = make("div", { class: "scroller", tabindex: "0", role: "region",
      "aria-label": label }, table);
    const hint = make("p", { class: "more-columns quiet", hidden: true, "aria-hidden": "true" },
      "Scroll sideways for more columns →");
    const see = () => { hint.hidden = box.scrollWidth <= box.clientWidth + 1; };
    new ResizeObserver(see).observe(box);
    return make("div", { class: "scrolled" }, hint, box);
  };

  // segments are radio buttons that look like one control.
  function segments(name, labels, chosen, choose) {
    return labels.map((label, i) => {
      const input = make("input", { type: "radio", name, value: i, checked: i === chosen,
        on: { change: () => choose(i) } });
      const content = Array.isArray(label) ? label : [label];
      return make("label", {}, input, make("span", {}, ...content));
    });
  }

  Object.assign(Report, { copyable, copySection, scroller, segments });
})();
