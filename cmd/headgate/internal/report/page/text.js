// Elements, and numbers and times as text. All text from logs goes through visible.
const Report = {};
(() => {
  "use strict";
  const { format } = Charts, { visible } = format;

  // make returns an element with properties, and with children that are elements or text.
  function make(name, properties, ...children) {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(properties ?? {})) {
      if (value === undefined || value === null || value === false) continue;
      if (key === "class") e.className = value;
      else if (key === "on") for (const [type, f] of Object.entries(value)) {
        e.addEventListener(type, f);
      }
      else e.setAttribute(key, value === true ? "" : value);
    }
    e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
    return e;
  }

  const LONG = 90;

  // name is a key or a path: it does not turn the text around it, and is cut if it is long.
  function name(text, long = LONG) {
    const all = visible(text);
    if (all === "") return make("bdi", { class: "quiet" }, "(empty)");
    if (all.length <= long) return make("bdi", { class: "name", dir: "ltr" }, all);
    const part = make("bdi", { class: "name", dir: "ltr" }, all.slice(0, long) + "…");
    const more = make("button", { type: "button", class: "more", "aria-expanded": "false" },
      "show all");
    more.addEventListener("click", () => {
      const open = more.getAttribute("aria-expanded") !== "true";
      more.setAttribute("aria-expanded", open);
      more.textContent = open ? "show less" : "show all";
      part.textContent = open ? all : all.slice(0, long) + "…";
    });
    return make("span", { class: "long" }, part, " ", more);
  }

  const short = (text, long = 40) => {
    const all = visible(text);
    return all.length > long ? all.slice(0, long) + "…" : all;
  };

  const number = (n) => format.number(n);
  const count = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
  const share = (part, all) => all > 0 ? format.share(part / all) : "0%";

  // time is a moment in UTC to the second.
  function time(text) {
    return make("time", { datetime: text }, `${text.slice(0, 10)} ${text.slice(11, 19)}`);
  }
  const seconds = (text) => Date.parse(text) / 1000;

  // list joins words: a, b and c.
  function list(words) {
    if (words.length < 2) return words.join("");
    return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
  }

  // gap is what the report says about a time without requests that is most of the span.
  const gap = (size) => size.caveats?.find((c) => c.id === "gap")?.text ?? "";

  Object.assign(Report, { make, visible, name, short, number, count, share, time, seconds, list,
    gap, span: format.span });
})();
