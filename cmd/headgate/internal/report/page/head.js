// The head of the page: its limits become buttons that choose what the sections show.
(() => {
  "use strict";
  const { h } = Charts.dom;

  function head(model) {
    document.title = `${document.getElementById("answer").textContent} – Headgate report`;
    for (const l of model.all) {
      const pick = h("button", { type: "button", class: "pick", "aria-pressed": "false",
        "aria-label": l.name ? `${l.text}, ${l.name}` : l.text,
        click: () => model.choose(l) }, l.text);
      model.onChoose((chosen) => pick.setAttribute("aria-pressed", chosen === l));
      l.card.querySelector("h2").replaceChildren(pick);
      l.card.querySelector("dl").before(Report.bar(l.result.denied, l.result.requests));
    }
    document.getElementById("command").append(Report.copyable("Command", model.data.command));
  }

  // bar is a share as a length; what it says is in the text beside it.
  Report.bar = (part, all) => {
    const fill = h("span", { class: "fill" });
    fill.hidden = part <= 0;
    fill.style.width = part > 0 ? `max(3px, ${100 * part / Math.max(1, all)}%)` : "0";
    return h("span", { class: "meter", "aria-hidden": "true" }, fill);
  };

  Report.head = head;
})();
