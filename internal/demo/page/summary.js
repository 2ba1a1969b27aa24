// Tells those who hear the page what happens, at most every few seconds.

const atMost = 4000;

export class Summary {
  #element;
  #timer;
  #text;
  #last = -atMost;

  constructor(element) {
    this.#element = element;
  }

  // tell says text() when it is time again, as it is then, and only the last of
  // what it was told until then.
  tell(text) {
    this.#text = text;
    if (this.#timer) return;
    const wait = Math.max(300, this.#last + atMost - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#last = performance.now();
      this.#element.textContent = this.#text();
    }, wait);
  }
}
