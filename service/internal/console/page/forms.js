// The form of each act, inside of the dialog.

import { h, setText } from "./dom.js";
import { visible } from "./format.js";
import { button, durations, effect } from "./words.js";

const titles = {
  ban: "Ban this key", raise: "Raise the limits of this key", reset: "Reset this key",
  lift: "Lift the override of this key", mode: "Switch the mode of a rule",
};

// build makes the form of an act on {rule, key}. on.submit(request) may throw what is wrong.
export function build(app, act, { rule, key }, on) {
  const fields = fieldsOf(app, act, rule, key);
  const note = input("act-note", { maxlength: 500, placeholder: "Reason (optional)" });
  const by = input("act-by", { maxlength: 60, value: on.by, autocomplete: "name" });
  const words = h("p", { class: "effect", id: "act-effect" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const go = h("button", { class: "primary", "aria-describedby": "act-effect" });
  const request = () => ({
    act, rule, ...(key === undefined ? {} : { key }), ...fields.values(),
    note: note.value.trim(), by: by.value.trim(),
  });
  const draw = () => {
    setText(words, effect(request(), app.model));
    setText(go, button(request()));
  };
  const element = h("form", { novalidate: true, input: draw, change: draw },
    h("h2", { id: "act-title" }, titles[act]), about(rule, key), ...fields.elements, words,
    h("div", { class: "fields" }, labelled("Note", note), labelled("Your name", by)), problem,
    h("p", { class: "buttons" }, go, h("button", { type: "button", click: on.cancel }, "Cancel")));
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.getAttribute("aria-disabled") === "true") return;
    go.setAttribute("aria-disabled", "true");
    problem.hidden = true;
    try {
      await on.submit(request());
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
    } finally {
      go.removeAttribute("aria-disabled");
    }
  });
  draw();
  const focus = () => {
    const first = fields.first ?? go;
    first.focus();
    if (first.matches("input")) first.select();
  };
  return { element, focus };
}

function about(rule, key) {
  if (key === undefined) return h("p", { class: "about" }, h("strong", {}, h("bdi", {}, rule)));
  return h("p", { class: "about" }, h("bdi", {}, h("code", {}, visible(key))),
    h("span", { class: "quiet" }, " in rule ", h("strong", {}, h("bdi", {}, rule))));
}

const input = (id, properties) => h("input", { id, autocomplete: "off", ...properties });

const labelled = (text, control) => h("div", { class: "field grow" },
  h("label", { for: control.id }, text), control);

// fieldsOf returns {elements, values(), first} of what an act needs to know.
function fieldsOf(app, act, rule, key) {
  const duration = choice("for", "Duration", durations.map(([s, text]) =>
    [String(s), act === "mode" && !s ? "until changed" : text]), act === "mode" ? "null" : "600");
  const seconds = () => (duration.value() === "null" ? null : Number(duration.value()));
  switch (act) {
    case "ban": return {
      elements: [duration.element], first: duration.first, values: () => ({ for_s: seconds() }),
    };
    case "raise": return raiseFields(app, rule, key, duration, seconds);
    case "mode": return modeFields(app, rule, duration, seconds);
    default: return { elements: [], values: () => ({}), first: null };
  }
}

function raiseFields(app, rule, key, duration, seconds) {
  const now = app.model.config?.rules.find((r) => r.name === rule)?.limits ?? [];
  const limits = input("act-limits", {
    value: now.join(", "), spellcheck: "false", autocapitalize: "none",
  });
  const keep = h("input", { type: "checkbox", checked: key.includes("*") }); // many keys
  return {
    elements: [labelled(`Limits, such as 100/m burst 20, 500/h${now.length ? `; now ${
      now.join(", ")}` : ""}`, limits),
    duration.element,
    h("label", { class: "check" }, keep, "Keep the used tokens")],
    first: limits,
    values: () => ({ limits: split(limits.value), for_s: seconds(), keep_usage: keep.checked }),
  };
}

function modeFields(app, rule, duration, seconds) {
  const state = app.model.rules().find((r) => r.name === rule);
  const mode = choice("mode", "Mode", [
    ["enforce", "enforce"], ["shadow", "shadow"], ["file", `as in the file (${state.file_mode})`],
  ], state.mode === "enforce" ? "shadow" : "enforce");
  return {
    elements: [mode.element, duration.element], first: mode.first,
    values: () => {
      duration.element.hidden = mode.value() === "file";
      return { mode: mode.value(), for_s: mode.value() === "file" ? null : seconds() };
    },
  };
}

// split takes a list of limits apart.
export const split = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

// choice is a row of radio buttons.
function choice(name, legend, options, chosen) {
  const radios = options.map(([value]) => h("input", {
    type: "radio", name: `act-${name}`, value, checked: value === chosen,
  }));
  const element = h("fieldset", { class: "choice" }, h("legend", {}, legend),
    h("div", { class: "segments" }, ...options.map(([, text], i) =>
      h("label", {}, radios[i], h("span", {}, text)))));
  return {
    element, first: radios.find((radio) => radio.checked),
    value: () => radios.find((radio) => radio.checked).value,
  };
}
