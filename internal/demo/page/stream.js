// A steady stream. The browser does not send each request by itself: about ten
// times a second it asks for as many as are due, and never before the last answer
// has come. What a slow store could not decide is not made up for.

import { pause } from "./pause.js";

const tick = 100;
const patience = 250; // at most as many as come in this time are due at once

export class Stream {
  #send;
  #run; // the one that goes on, if any
  rate = 10;

  // send(n) sends n requests, and returns when they are decided.
  constructor(send) {
    this.#send = send;
  }

  get running() {
    return this.#run !== undefined;
  }

  // start runs until stop, or until send throws, which it passes on.
  async start() {
    const run = (this.#run = {});
    let owed = 1;
    let last = performance.now();
    try {
      while (this.#run === run) {
        const due = Math.floor(owed);
        if (due > 0) await this.#send(due);
        owed -= due;
        await pause(Math.max(0, last + tick - performance.now()));
        const now = performance.now();
        owed += (this.rate * Math.min(now - last, patience)) / 1000;
        last = now;
      }
    } finally {
      if (this.#run === run) this.#run = undefined;
    }
  }

  stop() {
    this.#run = undefined;
  }
}
