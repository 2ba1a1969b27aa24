// Names, times and lists as text. All text from logs goes through visible.
const Report = {};
(() => {
  "use strict";
  const { h } = Charts.dom, { visible } = Charts.format;

  const LONG = 90;

  // name is a key or a path: it does not turn the text around it, and is cut if it is long.
  function name(text, long = LONG) {
    const all = visible(text);
    if (all === "") return h("bdi", { class: "quiet" }, "(empty)");
    if (all.length <= long) return h("bdi", { class: "name", dir: "ltr" }, all);
    const part = h("bdi", { class: "name", dir: "ltr" }, all.slice(0, long) + "…");
    const more = h("button", { type: "button", class: "more link", "aria-expanded": "false" },
      "show all");
    more.addEventListener("click", () => {
      const open = more.getAttribute("aria-expanded") !== "true";
      more.setAttribute("aria-expanded", open);
      more.textContent = open ? "show less" : "show all";
      part.textContent = open ? all : all.slice(0, long) + "…";
    });
    return h("span", { class: "long" }, part, " ", more);
  }

  // time is a moment in UTC to the second.
  function time(text) {
    return h("time", { datetime: text }, `${text.slice(0, 10)} ${text.slice(11, 19)}`);
  }
  const seconds = (text) => Date.parse(text) / 1000;

  Object.assign(Report, { name, time, seconds });
})();
