// The form of each act, inside of the dialog.

import { button, caution, durations, effect } from "./action_text.js";
import { h, setText, show } from "./dom.js";
import { rate } from "./format.js";
import { breadth, listOf, siblings } from "./key_breadth.js";
import { overrideText } from "./key_override.js";
import { deniedKey, wanted } from "./key_requests.js";
import { keyText } from "./key_text.js";

const titles = {
  ban: "Ban this key", raise: "Raise the limits of this key", reset: "Reset this key",
  lift: "Lift the override of this key", mode: "Switch the mode of a rule",
};

// build makes the form of an act on {rule, key}. on.submit(request) may throw what is wrong. draw
// says again what the act will do, by the numbers and the time of now.
export function build(app, act, { rule, key }, on) {
  const fields = fieldsOf(app, act, rule, key);
  const wide = act === "ban" && key !== undefined ? breadth(app.model, rule, key) : null;
  const note = input("act-note", { maxlength: 500, placeholder: "Reason (optional)" });
  const by = input("act-by", { maxlength: 60, value: on.by, autocomplete: "name" });
  const words = h("p", { class: "effect", id: "act-effect" });
  const warning = h("p", { class: "caution", id: "act-caution", role: "status", hidden: true });
  const sure = h("input", { type: "checkbox", id: "act-sure" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const go = h("button", { class: "primary", "aria-describedby": "act-effect act-caution" });
  const request = () => ({
    act, rule, ...(key === undefined ? {} : { key }), ...fields.values(),
    note: note.value.trim(), by: by.value.trim(),
  });
  const draw = () => {
    const wanted = request();
    const careful = [wide?.text, caution(wanted, app.model)].filter(Boolean).join(" ");
    setText(words, effect(wanted, app.model));
    setText(warning, careful);
    show(warning, careful !== "");
    setText(go, button(wanted));
  };
  const element = h("form", { novalidate: true, input: draw, change: draw },
    h("h2", { id: "act-title" }, wide ? "Ban many requests" : titles[act]),
    about(app, rule, key), ...fields.elements, words, warning,
    wide ? h("label", { class: "check" }, sure, wide.confirm) : null,
    h("div", { class: "fields" }, labelled("Note", note), labelled("Your name", by)), problem,
    h("p", { class: "buttons" }, go, h("button", { type: "button", click: on.cancel }, "Cancel")));
  const refuse = (text) => {
    setText(problem, text);
    problem.hidden = false;
  };
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.getAttribute("aria-disabled") === "true") return;
    if (wide && !sure.checked) {
      refuse(`Confirm it first: tick "${wide.confirm}".`);
      return sure.focus();
    }
    go.setAttribute("aria-disabled", "true");
    problem.hidden = true;
    try {
      await on.submit(request());
    } catch (error) {
      refuse(error.message);
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
  return { element, focus, draw };
}

function about(app, rule, key) {
  if (key === undefined) return h("p", { class: "about" }, h("strong", {}, h("bdi", {}, rule)));
  const now = overrideText(app.model, rule, key);
  return h("p", { class: "about" }, h("bdi", {}, h("code", {}, keyText(key))),
    h("span", { class: "quiet" }, " in rule ", h("strong", {}, h("bdi", {}, rule))),
    now ? " " : null, now ? h("span", { class: "badge" }, now) : null);
}

const input = (id, properties) => h("input", { id, autocomplete: "off", ...properties });

const labelled = (text, control) => h("div", { class: "field grow" },
  h("label", { for: control.id }, text), control);

// fieldsOf returns {elements, values(), first} of what an act needs to know.
function fieldsOf(app, act, rule, key) {
  const duration = choice("for", "Duration", durations.map(([s, text]) =>
    [String(s), act === "mode" && !s ? "until changed" : text]), "600");
  const seconds = () => (duration.value() === "null" ? null : Number(duration.value()));
  switch (act) {
    case "ban": return banFields(app, rule, key, duration, seconds);
    case "raise": return raiseFields(app, rule, key, duration, seconds);
    case "mode": return modeFields(app, rule, duration, seconds);
    default: return { elements: [], values: () => ({}), first: null };
  }
}

// banFields offers to ban the key in all rules with such keys, by one act in each.
function banFields(app, rule, key, duration, seconds) {
  const others = siblings(app.model, rule, key).filter((r) => r.mode === "enforce")
    .map((r) => r.name);
  const also = h("input", { type: "checkbox", id: "act-also" });
  const offer = h("label", { class: "check" }, also, `Also ban it in ${listOf(others)}`);
  return {
    elements: [duration.element, ...(others.length ? [offer] : [])], first: duration.first,
    values: () => ({ for_s: seconds(), ...(also.checked ? { also: others } : {}) }),
  };
}

// split takes a list of limits apart. The server decides what is valid.
const split = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

function raiseFields(app, rule, key, duration, seconds) {
  const { now, file, override } = app.model.limits(rule, key);
  const isTokens = app.model.hasCost(rule); // of which requests say nothing
  const asked = isTokens ? 0 : deniedKey(app.model, rule, key)?.per_s ?? 0;
  const limits = input("act-limits", {
    value: wanted(now, asked).join(", "), spellcheck: "false", autocapitalize: "none",
  });
  const keep = h("input", { type: "checkbox", checked: key.includes("*") }); // many keys
  const inForce = !now.length ? "" : override?.limits?.length
    ? `; now ${now.join(", ")} by a raise, in the file ${file.join(", ")}`
    : `; now ${now.join(", ")}`;
  const asks = asked > 0 ? `; the key asks for ${rate(asked)} a second more`
    : isTokens ? "; they are of tokens, not of requests" : "";
  return {
    elements: [labelled(`Limits, such as 100/m burst 20, 500/h${inForce}${asks}`, limits),
      duration.element,
      h("label", { class: "check" }, keep, "Keep the used tokens")],
    first: limits,
    values: () => ({ limits: split(limits.value), for_s: seconds(), keep_usage: keep.checked }),
  };
}

function modeFields(app, rule, duration, seconds) {
  const state = app.model.rule(rule);
  const isSwitched = state.mode !== state.file_mode; // then the first choice is its end
  const mode = choice("mode", "Mode", [
    ...["enforce", "shadow"].filter((m) => m !== state.file_mode).map((m) => [m, m]),
    ["file", `as in the file (${state.file_mode})`],
  ], isSwitched || state.file_mode === "shadow" ? "file" : "shadow");
  return {
    elements: [mode.element, duration.element], first: mode.first,
    values: () => {
      const isBack = mode.value() === "file"; // that has no end
      duration.element.hidden = isBack;
      return { mode: mode.value(), ...(isBack ? {} : { for_s: seconds() }) };
    },
  };
}

// choice is a row of radio buttons.
function choice(name, legend, options, chosen) {
  const radios = options.map(([value]) => h("input", {
    type: "radio", name: `act-${name}`, value, checked: value === chosen,
  }));
  const element = h("fieldset", { class: "choice" }, h("legend", {}, legend),
    h("div", { class: "segments" }, ...options.map(([, text], i) =>
      h("label", { class: "check" }, radios[i], text))));
  return {
    element, first: radios.find((radio) => radio.checked),
    value: () => radios.find((radio) => radio.checked).value,
  };
}
