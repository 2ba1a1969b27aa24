// What the page knows of its server: the clock of the store, and the newest state.
// Everything that changes the state goes through here.

import * as api from "./api.js";
import { pause } from "./pause.js";

const stale = 5000; // a clock that steps back by more than this was set back

export class Session {
  #show;
  #lost;
  #newest = 0;
  #asked = 0;
  #changing = 0; // limits that this page is changing now
  // The clock of the store is this far ahead of performance.now(), and not less: the
  // answer that came fastest tells best. Clocks drift, so old ones count for less.
  #ahead = -Infinity;
  // What is sent during a reset waits for its end, so that it counts after it.
  #resetting = Promise.resolve();

  // show(state, own) takes a state, and whether this page caused it; lost(message)
  // takes what is wrong with the connection, or nothing.
  constructor(show, lost) {
    this.#show = show;
    this.#lost = lost;
  }

  now() {
    return performance.now() + this.#ahead;
  }

  #setClock(told) {
    const sample = told - performance.now();
    const behind = sample < this.#ahead - stale;
    this.#ahead = behind ? sample : Math.max(sample, this.#ahead - 1);
  }

  #take(state, own) {
    this.#asked = performance.now();
    this.#lost();
    this.#setClock(state.now);
    if (state.now < this.#newest && state.now > this.#newest - stale) return;
    this.#newest = state.now;
    this.#show(state, own || this.#changing > 0);
  }

  // send sends n requests, at a time of the store or now, and returns their batch.
  async send(n, at) {
    await this.#resetting.catch(() => {}); // whoever asked for the reset gets the error
    const batch = await api.send(n, at);
    if (batch.state) this.#take(batch.state, true);
    return batch;
  }

  async #change(ask) {
    this.#changing++;
    try {
      this.#take(await ask, true);
    } finally {
      this.#changing--;
    }
  }

  setLimit(lane, text) {
    return this.#change(api.setLimits({ [lane]: text }));
  }

  // reset resets both lanes, and sets the limits that are given. It asks after the reset
  // before it, so that the last one decides.
  reset(left, right) {
    const ask = () => api.setLimits({ left, right, reset: true });
    this.#resetting = this.#resetting.catch(() => {}).then(ask);
    return this.#change(this.#resetting);
  }

  async first() {
    for (;;) {
      try {
        this.#take(await api.getState(), true);
        return;
      } catch (error) {
        this.#lost(error.message);
        await pause(1000);
      }
    }
  }

  // poll asks for the truth while nothing else brings it: often while something
  // refills, less often at rest. It never ends.
  async poll(resting) {
    for (let found = true; ;) {
      await pause(!found ? 1000 : resting() ? 500 : 250);
      if (document.hidden || performance.now() - this.#asked < 200) continue;
      try {
        this.#take(await api.getState(), false);
        found = true;
      } catch (error) {
        found = false;
        this.#lost(error.message);
      }
    }
  }
}
