// Plays a script on the controls of the page: each line sends something, as a person
// would, and may say what there is to see.
//
//   { burst: 20 }             sends a burst
//   { rate: 5, seconds: 6 }   streams
//   { edge: true }            sends a burst before the edge of a window, and one after it
//   { wait: 2 }               waits, in seconds

import { Stopped } from "./pause.js";

export class Player {
  #perform;
  #stop;

  // perform(line, signal) does what a line says, or throws a Stopped if the signal is aborted.
  constructor(perform) {
    this.#perform = perform;
  }

  stop() {
    this.#stop?.abort();
  }

  // play ends early if it is stopped, and throws what goes wrong. tell(line.say) shows
  // what there is to see.
  async play(script, tell) {
    this.stop();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    try {
      for (const line of script) {
        if (line.say) tell(line.say);
        await this.#perform(line, signal);
      }
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    }
  }
}
