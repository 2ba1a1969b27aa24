// The last minute of one lane, in bins of a quarter of a second by the clock of the
// store. However many requests there are, there are at most as many bins.

export const span = 60_000;
export const width = 250;

export class History {
  #bins = new Map();

  add(at, allowed, denied) {
    const start = Math.floor(at / width) * width;
    const bin = this.#bins.get(start) ?? { start, allowed: 0, denied: 0 };
    bin.allowed += allowed;
    bin.denied += denied;
    this.#bins.set(start, bin);
  }

  // since forgets what is older than the span, and returns the rest.
  since(now) {
    for (const start of this.#bins.keys()) {
      if (start < now - span - width) this.#bins.delete(start);
    }
    return [...this.#bins.values()];
  }

  clear() {
    this.#bins.clear();
  }
}
