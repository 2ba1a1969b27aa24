// A dialog that says what an action will do, and a line that says whether it worked.

import { act as send, getConfig, getKey, undo } from "./api.js";
import { byId, h, setText } from "./dom.js";
import { longSpan, plural } from "./format.js";
import { build } from "./forms.js";
import { inRules } from "./key_breadth.js";
import { describe, outcome } from "./words.js";

const place = "headgate-console-by";
const patience = 10_000; // until a change is in force on this instance
const pause = 400;

const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text)
  ? "" : "."}`;

export class ActionDialog {
  #shown = 0; // the number of the result that is shown

  constructor(app) {
    this.app = app;
    this.dialog = byId("act");
    this.result = byId("result");
    new ResizeObserver(() => this.#makeRoom()).observe(this.result);
  }

  // open asks what exactly to do. about is {rule, key}.
  open(act, about) {
    const opener = document.activeElement;
    const form = build(this.app, act, about, {
      by: localStorage.getItem(place) ?? "",
      cancel: () => this.dialog.close(),
      submit: (request) => this.#submit(request, opener),
    });
    this.dialog.replaceChildren(form.element);
    this.dialog.showModal();
    form.focus();
  }

  async #submit({ also = [], ...request }, opener) {
    localStorage.setItem(place, request.by);
    const done = [await send(request)]; // a refusal is shown in the dialog
    this.dialog.close();
    const failed = [];
    for (const rule of also) {
      await send({ ...request, rule }).then((act) => done.push(act),
        (error) => failed.push(`Not in rule ${rule}: ${sentence(error.message)}`));
    }
    const text = [outcome(done[0], rulesOf(done)), ...failed].join(" ");
    this.#show(failed.length ? "bad" : "good", `${text} Taking effect…`, done);
    this.#focus(opener);
    const [started, shown] = [performance.now(), this.#shown];
    const inForce = await this.#inForce(done);
    await this.app.refresh();
    this.#focus(opener);
    if (shown !== this.#shown) return;
    this.#show(inForce && !failed.length ? "good" : "bad", inForce
      ? `${text} ${inForce} Confirmed after ${took(started)}.`
      : `${text} It has not taken effect on this instance after ${
        longSpan(patience / 1000)}.`, done);
  }

  // focus goes back to what opened the dialog, or to the result if that is gone.
  #focus(opener) {
    if (document.activeElement !== document.body && document.activeElement?.checkVisibility()) {
      return;
    }
    if (opener?.isConnected && opener !== document.body && opener.checkVisibility()) {
      opener.focus();
    } else this.result.focus();
  }

  // inForce waits until a look at the key or the rule shows the acts, and says what it shows.
  async #inForce(done) {
    for (const end = performance.now() + patience; performance.now() < end; await wait(pause)) {
      try {
        const said = await Promise.all(done.map((act) => (act.act === "mode" ? modeIs(act)
          : keyShows(act, rulesOf(done)))));
        if (said.every(Boolean)) return (said.find((one) => one.idle) ?? said[0]).text;
      } catch {
        // The next look may work: the store may be slow.
      }
    }
    return "";
  }

  // undo undoes acts that were done together, the last one first.
  async undo(acts) {
    this.#show("good", "Undoing…");
    const left = [...acts];
    try {
      for (; left.length; left.pop()) await undo(left.at(-1).id, localStorage.getItem(place) ?? "");
      await this.app.refresh();
      this.#show("good", `Undone: ${describe(acts[0], rulesOf(acts))}.`);
    } catch (error) {
      this.#show("bad", left.length ? `Not undone: ${describe(left[0], rulesOf(left))}: ${
        sentence(error.message)}` : `Undone, but the page is not up to date: ${error.message}`);
    }
  }

  // say tells why something cannot be done.
  say(text) {
    this.#show("bad", sentence(text));
  }

  #show(level, text, done = null) {
    this.#shown++;
    if (this.result.firstChild === null) {
      this.result.append(h("p"), h("button", { type: "button", class: "small" }, "Undo"),
        h("button", {
          type: "button", class: "small", click: () => this.#hide(),
        }, "Close"));
    }
    const [line, back] = this.result.children;
    this.result.dataset.level = level;
    setText(line, text);
    setText(byId("result-live"), text); // is there before it speaks
    back.hidden = !done?.every((act) => act.undoable);
    back.onclick = () => this.undo(done);
    this.result.hidden = false;
  }

  // makeRoom lets the page be scrolled so far that the result covers nothing.
  #makeRoom() {
    const height = this.result.hidden ? 0 : this.result.offsetHeight;
    document.documentElement.style.setProperty("--result", `${height}px`);
  }

  #hide() {
    this.result.hidden = true;
    byId("main").querySelector("#denied-keys").focus({ preventScroll: true });
  }
}

const rulesOf = (acts) => acts.map((act) => act.rule);

const took = (started) => longSpan(Math.max(1, (performance.now() - started) / 1000));

// modeIs returns a sentence about the new mode, or null until the active rules have it.
async function modeIs({ rule, mode, idle_bans: idle }) {
  const now = (await getConfig()).rules.find((r) => r.name === rule);
  const wanted = mode === "file" ? now?.file_mode : mode;
  if (now?.mode !== wanted) return null;
  const bans = idle && wanted !== "enforce"
    ? ` Its ${plural(idle, "ban")} ${idle === 1 ? "has" : "have"} no effect.` : "";
  return { text: `The rule is in mode ${wanted} now.${bans}` };
}

// keyShows returns what the state of a key says of an act, or null while it does not show it. Idle
// is a ban that denies nothing.
async function keyShows({ act, rule, key, limits }, rules) {
  const answer = await getKey(key, rule);
  const now = answer.rules.find((r) => r.rule === rule);
  if (!now) return null;
  const texts = now.override?.limits?.join() ?? "";
  switch (act) {
    case "ban": return !now.banned ? null : now.mode !== "enforce"
      ? { text: `Rule ${rule} is in mode ${now.mode}: it denies nothing now, also not this key.`,
        idle: true }
      : { text: `Every request of this key in ${inRules(rules)} is denied now.` };
    case "raise": return texts === limits.join()
      ? { text: `Its limit is ${limits.join(", ")} now.` } : null;
    case "lift": return now.override ? null : { text: "The limits in the file apply again." };
    default: {
      const least = now.limits.find((l) => !l.allowed);
      return least ? null
        : { text: now.banned ? "It is still banned." : "It may send requests again." };
    }
  }
}
