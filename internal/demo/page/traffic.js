// The traffic bar: single requests, bursts, a stream, bursts across an edge, a reset.

import { byId as $ } from "./dom.js";
import * as windowEdge from "./window_edge.js";
import { number } from "./format.js";
import { pause, Stopped } from "./pause.js";
import { Stream } from "./stream.js";

const second = 1000;

export class Traffic {
  #session;
  #lanes;
  #stream;
  #decided = []; // when, and how many
  #told = { text: "", until: 0 };
  #sent;

  // sent() is called when something has been decided.
  constructor(session, lanes, sent) {
    this.#session = session;
    this.#lanes = lanes;
    this.#sent = sent;
    this.#stream = new Stream((n) => this.#send(n));
    $("rate").addEventListener("change", () => this.#followRate());
  }

  async #send(n, at) {
    const batch = await this.#session.send(n, at);
    const now = performance.now();
    while (this.#decided[0]?.[0] < now - second) this.#decided.shift();
    this.#decided.push([now, n]);
    this.#sent();
    if (batch.cut) throw new Error(`The store was too slow: ${decidedOf(batch, n)}.`);
    return batch;
  }

  // attempt does something that a person asked for, and shows what went wrong.
  async attempt(action) {
    try {
      await action();
      if (!document.querySelector("#traffic [aria-invalid=true]")) complain();
    } catch (error) {
      if (error instanceof Stopped) return;
      complain(error.message);
      error.field?.focus();
    }
  }

  one() {
    return this.#ask(1);
  }

  burst() {
    return this.#ask(entered($("burst"), "Requests"));
  }

  // ask sends n requests, and says how they were decided.
  async #ask(n) {
    const { lanes } = await this.#send(n);
    const words = ({ allowed, denied }) => [[allowed, "ALLOWED"], [denied, "DENIED"]]
      .filter(([count]) => count > 0)
      .map(([count, word]) => (n === 1 ? word : `${number(count)} ${word}`)).join(", ");
    this.tell(lanes.map((l, i) => `${this.#lanes[i].title}: ${words(l)}`).join(" · "), 10_000);
  }

  async toggleStream() {
    if (this.#stream.running) {
      this.stop();
      return;
    }
    this.#stream.rate = entered($("rate"), "Per second");
    complain();
    await this.#run();
  }

  async #run() {
    this.tell("", 0);
    const ended = this.#stream.start();
    this.#showStream();
    await ended.finally(() => this.#showStream());
  }

  // stop also clears the status line, which is about what was before.
  stop() {
    this.tell("", 0);
    this.#stream.stop();
    this.#showStream();
  }

  #showStream() {
    $("stream").setAttribute("aria-pressed", String(this.#stream.running));
    $("stream").textContent = this.#stream.running ? "Stop stream" : "Start stream";
  }

  async acrossTheEdge(signal) {
    if ($("edge").getAttribute("aria-disabled") === "true") return;
    const bursts = windowEdge.plan(this.#lanes);
    complain();
    this.stop();
    $("edge").setAttribute("aria-disabled", "true");
    try {
      await this.#session.reset();
      await windowEdge.run(bursts, {
        now: () => this.#session.now(), send: (n, at) => this.#send(n, at),
        tell: (text) => this.tell(text), signal,
      });
      const sums = this.#lanes.map((l) => `${l.name} ${l.state.most} of ${l.state.bound}`);
      if (!signal?.aborted) this.tell(`Across the edge: ${sums.join(", ")}`, 10_000);
    } catch (error) {
      this.tell("");
      throw error;
    } finally {
      $("edge").setAttribute("aria-disabled", "false");
    }
  }

  // perform runs a line of a script through the fields and buttons of the page.
  async perform(line, signal) {
    if (line.edge) return this.acrossTheEdge(signal);
    if (line.wait) return pause(line.wait * second, signal);
    if (line.burst) {
      $("burst").value = line.burst;
      return this.#ask(line.burst);
    }
    this.setRate(line.rate);
    const run = this.#run();
    run.catch(() => {}); // it is shown below, unless the script was stopped before
    try {
      await Promise.race([pause(line.seconds * second, signal), run]);
    } finally {
      this.stop();
    }
    return run;
  }

  setRate(rate) {
    $("rate").value = rate;
    this.#followRate();
  }

  // tell shows how far something is in the status line.
  tell(text, keep = second) {
    this.#told = { text, until: performance.now() + keep };
  }

  status() {
    const now = performance.now();
    if (now < this.#told.until) return this.#told.text;
    if (!this.#stream.running) return "";
    const last = this.#decided.filter(([at]) => at >= now - second);
    const n = last.reduce((sum, [, requests]) => sum + requests, 0);
    return `${number(n)} decided in the last second`;
  }

  #followRate() {
    try {
      this.#stream.rate = entered($("rate"), "Per second");
      complain();
    } catch (error) { // said, but a person who has left the field is not taken back
      complain(error.message);
    }
  }
}

// complain shows what went wrong with the traffic, or nothing. The element speaks up
// whenever it is written, and so is written only when it says something else.
export function complain(message = "") {
  alertIn($("traffic-error"), message);
}

export function alertIn(element, message = "") {
  if (element.textContent !== message) element.textContent = message;
  element.hidden = !message;
}

function decidedOf(batch, n) {
  const each = batch.lanes.map((b) => `${number(b.allowed + b.denied)}`);
  const same = each[0] === each[1];
  const decided = same ? each[0] : each.join(" on the left and ") + " on the right";
  return `${decided} of ${number(n)} requests were decided; the others do not count`;
}

// entered reads a field, or throws what to enter.
function entered(input, name) {
  const text = input.value.trim().replaceAll(",", "");
  const ok = /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 10_000;
  input.setAttribute("aria-invalid", String(!ok));
  if (ok) return Number(text);
  const message = `${name}: enter a whole number from 1 to 10,000, not "${input.value}".`;
  throw Object.assign(new Error(message), { field: input });
}
