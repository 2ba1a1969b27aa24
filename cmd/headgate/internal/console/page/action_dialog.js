// A dialog that says what an action will do, and a line that says whether it worked.

import { idleBans, outcome } from "./action_text.js";
import { act as send, putBack, undo } from "./api.js";
import { byId, h, setText } from "./dom.js";
import { build } from "./forms.js";
import { sentence } from "./key_text.js";

const place = "headgate-console-by";
const shown = 10_000; // milliseconds, for which a result is shown; the list of actions stays

export class ActionDialog {
  constructor(app) {
    this.app = app;
    this.dialog = byId("act");
    this.result = byId("result");
    new ResizeObserver(() => this.#makeRoom()).observe(this.result);
  }

  // open asks what exactly to do. about is {rule, key}.
  open(act, about) {
    const opener = document.activeElement;
    this.form = build(this.app, act, about, {
      by: localStorage.getItem(place) ?? "",
      cancel: () => this.dialog.close(),
      submit: (request) => this.#submit(request, opener),
    });
    this.dialog.replaceChildren(this.form.element);
    this.dialog.showModal();
    this.form.focus();
  }

  draw() {
    if (this.dialog.open) this.form.draw();
  }

  async #submit({ also = [], ...request }, opener) {
    localStorage.setItem(place, request.by);
    const done = [await send(request)]; // a refusal is shown in the dialog
    this.dialog.close();
    const failed = [];
    for (const rule of also) {
      await send({ ...request, rule }).then((act) => done.push(act),
        (error) => failed.push(`In rule ${rule}: ${sentence(error.message)}`));
    }
    const text = [outcome(done[0], rulesOf(done)), ...done.map(idleBans), ...failed];
    this.#show(failed.length ? "bad" : "good", text.filter(Boolean).join(" "), done);
    this.#focus(opener);
    await this.app.refresh();
    this.#focus(opener); // the refresh may have removed the opener
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

  // undo undoes acts that were done together, the last one first.
  async undo(acts) {
    this.#show("good", "Undoing…");
    const left = [...acts];
    try {
      for (; left.length; left.pop()) await undo(left.at(-1).id, localStorage.getItem(place) ?? "");
      await this.app.refresh();
      this.#show("good", `Undone: ${outcome({ ...acts[0], undone: {} }, rulesOf(acts))}`);
    } catch (error) {
      this.#show("bad", left.length ? `The undo failed: ${outcome(left[0], rulesOf(left))} ${
        sentence(error.message)}` : `Undone, but the page is not up to date: ${error.message}`);
    }
  }

  // putBack puts back what the store has lost.
  async putBack() {
    try {
      const done = await putBack(localStorage.getItem(place) ?? "");
      this.#show("good", `${outcome(done)} ${done.note}.`);
      await this.app.refresh();
    } catch (error) {
      this.#show("bad", sentence(error.message));
    }
  }

  // say tells why something cannot be done.
  say(text) {
    this.#show("bad", sentence(text));
  }

  #show(level, text, done = null) {
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
    clearTimeout(this.timer);
    if (level === "good") this.timer = setTimeout(() => this.#hide(), shown);
  }

  // makeRoom lets the page be scrolled so far that the result covers nothing.
  #makeRoom() {
    const height = this.result.hidden ? 0 : this.result.offsetHeight;
    document.documentElement.style.setProperty("--result", `${height}px`);
  }

  #hide() {
    const hasFocus = this.result.contains(document.activeElement);
    this.result.hidden = true;
    if (hasFocus) byId("main").querySelector("#denied-keys").focus({ preventScroll: true });
  }
}

const rulesOf = (acts) => acts.map((act) => act.rule);
