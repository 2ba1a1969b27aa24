// When each dot of a chart appeared, so that it can move to its place.

const grows = 320; // milliseconds
const apart = 220; // between the first and the last dot of a batch

export class DotAnimation {
  #bins = new Map(); // by start: for each side, the dots' times
  #now = 0;
  #last = 0;
  #started = false;

  // note takes the bins of a frame at the time moving, in milliseconds, or at 0 if nothing may
  // move. Dots of the first bins do not move.
  note(bins, moving) {
    this.#now = moving;
    const old = !this.#started || !moving;
    this.#started = true;
    const seen = new Set();
    for (const bin of bins) {
      seen.add(bin.start);
      const known = this.#bins.get(bin.start) ?? { "-1": [], 1: [] };
      this.#bins.set(bin.start, known);
      this.#grow(known[-1], bin.allowed, old);
      this.#grow(known[1], bin.denied, old);
    }
    for (const start of this.#bins.keys()) if (!seen.has(start)) this.#bins.delete(start);
  }

  #grow(times, n, old) {
    const more = Math.min(n, 200) - times.length;
    const step = apart / Math.max(more, 12);
    for (let i = 0; i < more; i++) times.push(old ? -grows : this.#now + i * step);
    if (more > 0 && !old) this.#last = this.#now + apart + grows;
  }

  // busy is true while a dot moves.
  get busy() {
    return this.#now < this.#last;
  }

  // progress is the part of its way that the dot i on a side of a bin has moved, from 0 to 1.
  progress(start, side, i) {
    const appeared = this.#bins.get(start)?.[side][Math.min(i, 199)] ?? -grows;
    if (!this.#now) return 1;
    const part = Math.min(1, Math.max(0, (this.#now - appeared) / grows));
    return 1 - (1 - part) ** 3;
  }
}
