// The server's events, read by fetch, because an EventSource cannot send a token.

import { open } from "./api.js";

const silence = 5_000; // the server says something every second
const pauses = [500, 1_000, 2_000, 4_000];

// pauseAfter is longer after more failures, and another in each page: those that lose the same
// server do not come back together.
const pauseAfter = (failures) =>
  pauses[Math.min(failures, pauses.length) - 1] * (0.5 + Math.random());

// Events keeps a connection, and calls on[name](data) for each event, on.lost(error) when there is
// no connection, and on.refused() some time after a server that may not want this page.
export class Events {
  #on;
  #controller = null; // of the connection, while there is one
  #failures = 0;
  #timer = 0;

  constructor(on) {
    this.#on = on;
  }

  start() {
    this.stop();
    const controller = new AbortController();
    this.#controller = controller;
    this.#run(controller).catch((error) => {
      if (this.#controller === controller) this.#fail(error);
    });
  }

  stop() {
    clearTimeout(this.#timer);
    const controller = this.#controller;
    this.#controller = null;
    controller?.abort();
  }

  #fail(error) {
    this.#controller = null;
    this.#failures++;
    this.#on.lost(error);
    const refused = [401, 403, 404].includes(error.status);
    this.#timer = setTimeout(() => (refused ? this.#on.refused() : this.start()),
      pauseAfter(this.#failures));
  }

  async #run(controller) {
    const end = () => controller.abort(new Error("the server sends nothing"));
    let watch = setTimeout(end, 2 * silence);
    const { signal } = controller;
    const started = performance.now();
    try {
      const response = await open("events", { signal, headers: { Accept: "text/event-stream" } });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) throw new Error("the connection ended");
        clearTimeout(watch);
        watch = setTimeout(end, silence);
        if (performance.now() - started > silence) this.#failures = 0; // it was no short visit
        rest = this.#take(rest + value);
      }
    } finally {
      clearTimeout(watch);
    }
  }

  // take calls for each whole event, and returns the rest.
  #take(text) {
    const events = text.split("\n\n");
    const rest = events.pop();
    for (const event of events) this.#dispatch(event);
    return rest;
  }

  #dispatch(event) {
    let name = "message", data = "";
    for (const line of event.split("\n")) {
      if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (line.startsWith("data:")) data += line.slice(5);
    }
    if (data && this.#on[name]) this.#on[name](JSON.parse(data));
  }
}
