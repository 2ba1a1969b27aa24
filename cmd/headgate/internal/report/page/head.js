// The head of the page: the answer, the limits as cards, and what was read.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, percent, plural, span, visible } = Charts.format;
  const { time } = Report;

  function head(model) {
    const { data, all, advice } = model;
    const put = (id, text) => { document.getElementById(id).textContent = text; };
    put("kind", data.kind === "size" ? "size report: the limits that this traffic needs" :
      "replay report: what these limits would deny");
    put("made", `Made by Headgate on ${data.made.slice(0, 10)} at ${data.made.slice(11, 16)} ` +
      "UTC. All times are in UTC.");
    document.title = `${advice ? advice.title : "No requests"} – Headgate report`;
    put("answer", advice ? advice.title : "The logs have no requests");
    put("why", advice ? advice.why : "Choose logs that have requests.");
    const caution = document.getElementById("caution");
    caution.hidden = !advice?.caution;
    caution.textContent = advice?.caution ?? "";
    document.getElementById("limits-table")?.remove(); // the cards say more
    document.getElementById("cards").append(...all.map((l) => card(model, l)));
    if (advice && data.kind === "size") Report.reserve(model);
    facts(data);
    document.getElementById("command").append(Report.copyable("Command", data.command));
  }

  // pickOf is a button that chooses a limit.
  function pickOf(model, l) {
    const pick = h("button", { type: "button", class: "pick", "aria-pressed": "false",
      "aria-label": [l.text, ...l.names].join(", "), click: () => model.choose(l) }, l.text);
    model.onChoose(() => pick.setAttribute("aria-pressed", model.limit === l));
    return pick;
  }

  // card shows what one limit denies.
  function card(model, l) {
    const { result } = l, best = model.advice?.best === l;
    const lines = h("dl", { class: "lines" }, ...lineOf("requests denied",
      result.denied, result.requests), ...lineOf("keys denied", result.denied_keys, result.keys));
    if (model.data.size.stand_out) {
      lines.append(h("dt", {}, "denied of other keys"), h("dd", {},
        l.restDenied ? h("b", {}, plural(l.restDenied, "request")) : "none",
        l.restDenied ? ` from ${plural(l.restKeys, "key")}` : ""));
    }
    return h("article", { class: best ? "limit best" : "limit" },
      h("p", { class: "label" }, h("span", {}, l.names.join(", ") || "limit"),
        best && h("span", { class: "badge" }, "✓ recommended")),
      h("div", {}, h("h2", {}, pickOf(model, l)), h("p", { class: "quiet" }, inWords(l))),
      model.advice?.asks && h("p", { class: "choose" }, Report.choice(model.data, l)),
      Report.bar(result.denied, result.requests), lines);
  }

  const lineOf = (label, part, all) => [h("dt", {}, label), h("dd", {},
    h("b", {}, percent(part, all)), ` ${number(part)} of ${number(all)}`)];

  // inWords is what a token bucket grants.
  const inWords = (l) => l.bucket ? `${number(l.bucket.count)} per ${l.bucket.per}, at most ` +
    `${number(l.bucket.burst)} at once` : "";

  // bar is a share as a length; what it says is in the text beside it.
  Report.bar = (part, all) => {
    const fill = h("span", { class: "fill" });
    fill.hidden = part <= 0;
    fill.style.width = part > 0 ? `max(3px, ${100 * part / Math.max(1, all)}%)` : "0";
    return h("span", { class: "meter", "aria-hidden": "true" }, fill);
  };

  function facts(data) {
    const t = data.size;
    const add = (label, ...values) => document.getElementById("facts").append(
      h("div", {}, h("dt", {}, label), h("dd", {}, ...values)));
    const quiet = (...text) => h("span", { class: "quiet" }, ...text);
    add("Requests", h("b", {}, number(t.requests)));
    add("Keys", h("b", {}, number(t.keys)), " ", quiet("by ", visible(String(t.by))));
    if (t.span) {
      const width = Report.seconds(t.span.to) - Report.seconds(t.span.from);
      add("Span", h("b", {}, span(width)), " ",
        quiet(time(t.span.from), " to ", time(t.span.to)), quiet(Report.gap(t)));
      add("Busiest second", h("b", {}, plural(t.peak.requests, "request")), " ",
        quiet(time(t.peak.at)));
    }
    add("Skipped", h("b", {}, plural(t.skipped, "line")), " ",
      quiet(t.skipped ? skipped(t) : `of ${number(t.lines)}`));
    if (t.late) add("Late", h("b", {}, plural(t.late, "request")), " ", quiet("out of order"));
    const [file, ...more] = t.files;
    add(more.length ? "Files" : "File", h("b", {}, Report.name(file?.name ?? "none", 60)), " ",
      quiet(file ? `${file.format}, ${plural(file.lines, "line")}` : ""),
      more.length > 0 && h("details", { class: "files" },
        h("summary", {}, `${number(more.length)} more`),
        h("ul", {}, ...more.map((f) => h("li", {}, Report.name(f.name, 60), " ",
          quiet(`${f.format}, ${plural(f.lines, "line")}`))))));
  }

  function skipped(t) {
    const [first, ...more] = t.skipped_reasons;
    if (!first) return "";
    return `${number(first.lines)}: ${Report.short(first.reason, 80)}` +
      (more.length ? `; ${plural(more.length, "more reason")}` : "");
  }

  Report.head = head;
})();
