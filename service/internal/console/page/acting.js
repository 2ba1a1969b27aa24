// Act: a dialog that says what an act will do, and a line below that says whether it worked.

import { act as send, getKey, undo } from "./api.js";
import { build } from "./forms.js";
import { byId, h, setText } from "./dom.js";
import { span } from "./format.js";
import { describe, outcome } from "./words.js";

const place = "headgate-console-by";
const patience = 10_000; // until a change is in force on this instance
const pause = 400;

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

export class Acting {
  #shown = 0; // the number of the result that is shown

  constructor(app) {
    this.app = app;
    this.dialog = byId("act");
    this.result = byId("result");
  }

  // open asks what exactly to do. about is {rule, key}.
  open(act, about) {
    const form = build(this.app, act, about, {
      by: localStorage.getItem(place) ?? "",
      cancel: () => this.dialog.close(),
      submit: (request) => this.#submit(request),
    });
    this.dialog.replaceChildren(form.element);
    this.dialog.showModal();
    form.focus();
  }

  async #submit(request) {
    localStorage.setItem(place, request.by);
    const done = await send(request); // a refusal is shown in the dialog
    this.dialog.close();
    this.#show("good", `${outcome(done)} Taking effect…`, done);
    this.result.focus(); // the button that opened the dialog may be gone
    const [started, shown] = [performance.now(), this.#shown];
    const inForce = await this.#inForce(done);
    await this.app.refresh();
    if (shown !== this.#shown) return;
    const text = inForce ? `${outcome(done)} ${inForce} Confirmed after ${took(started)}.`
      : `${outcome(done)} It has not taken effect on this instance after ${span(patience / 1000)}.`;
    this.#show(inForce ? "good" : "bad", text, done);
  }

  // inForce waits until a look at the key or the rule shows the act, and says what it shows.
  async #inForce(done) {
    for (const end = performance.now() + patience; performance.now() < end; await wait(pause)) {
      try {
        const said = done.act === "mode" ? this.#modeIs(done) : await keyShows(done);
        if (said) return said;
      } catch {
        // The next look may work: the store may be slow.
      }
    }
    return "";
  }

  #modeIs({ rule, mode }) {
    const now = this.app.model.state.rules.find((r) => r.name === rule);
    const wanted = mode === "file" ? now?.file_mode : mode;
    return now?.mode === wanted ? `The rule is in mode ${wanted} now.` : "";
  }

  async undo(act) {
    this.#show("good", "Undoing…");
    try {
      await undo(act.id, localStorage.getItem(place) ?? "");
      await this.app.refresh();
      this.#show("good", `Undone: ${describe(act)}.`);
    } catch (error) {
      this.#show("bad", `Not undone: ${error.message}`);
    }
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
    back.hidden = !done?.undoable;
    back.onclick = () => this.undo(done);
    this.result.hidden = false;
  }

  #hide() {
    this.result.hidden = true;
    byId("main").querySelector("#who").focus();
  }
}

const took = (started) => span(Math.max(1, (performance.now() - started) / 1000));

// keyShows looks whether the state of a key is as an act left it.
async function keyShows({ act, rule, key, limits }) {
  const answer = await getKey(key, rule);
  const now = answer.rules.find((r) => r.rule === rule);
  if (!now) return "";
  const texts = now.override?.limits?.join() ?? "";
  switch (act) {
    case "ban": return now.banned ? "Every request of this key is denied now." : "";
    case "raise": return texts === limits.join() ? `Its limit is ${limits.join(", ")} now.` : "";
    case "lift": return now.override ? "" : "The limits in the file apply again.";
    default: {
      const least = now.limits.find((l) => !l.allowed);
      return least ? "" : "It may send requests again.";
    }
  }
}
