// Plays a script on the controls of the page: each line sends something, as a person
// would, and may say what there is to see.
//
//   { burst: 20 }             sends a burst
//   { rate: 5, seconds: 6 }   streams
//   { edge: true }            sends a burst before the edge of a window, and one after it
//   { wait: 2 }               waits, in seconds

import { pause, Stopped } from "./pause.js";

export class Player {
  #controls;
  #stop;

  // controls have burst(n), stream(rate, seconds, signal) and edge(signal).
  constructor(controls) {
    this.#controls = controls;
  }

  stop() {
    this.#stop?.abort();
    this.#stop = undefined;
  }

  // play ends early if it is stopped, and throws what goes wrong. tell(line.say) shows
  // what there is to see.
  async play(script, tell) {
    this.stop();
    const mine = (this.#stop = new AbortController());
    try {
      for (const line of script) {
        if (line.say) tell(line.say);
        await this.#do(line, mine.signal);
      }
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    } finally {
      if (this.#stop === mine) this.#stop = undefined;
    }
  }

  #do(line, signal) {
    if (line.burst) return this.#controls.burst(line.burst, signal);
    if (line.rate) return this.#controls.stream(line.rate, line.seconds, signal);
    if (line.edge) return this.#controls.edge(signal);
    return pause(line.wait * 1000, signal);
  }
}
