// Lists whose elements stay while their items change.

import { byId, h, setText, show } from "./dom.js";

// Rows keeps one element for each item of a list, and moves them only if their order is another.
export class Rows {
  #rows = new Map();

  // make(item) returns {element, update(item)}.
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
  }

  set(items, name) {
    const rest = new Map(this.#rows);
    const order = items.map((item) => {
      const id = name(item);
      if (!this.#rows.has(id)) this.#rows.set(id, this.make(item));
      rest.delete(id);
      const row = this.#rows.get(id);
      row.update(item);
      return row.element;
    });
    for (const [id, row] of rest) {
      row.element.remove();
      this.#rows.delete(id);
    }
    order.forEach((element, i) => {
      if (this.parent.children[i] !== element) {
        this.parent.insertBefore(element, this.parent.children[i] ?? null);
      }
    });
  }
}

// A Few shows the first items of a list, or all of them, by the button with an id.
export class Few {
  #all = false;

  // draw is called after a click. what are the items, as a plural.
  constructor(id, few, what, draw) {
    Object.assign(this, { button: byId(id), few, what });
    this.button.addEventListener("click", () => {
      this.#all = !this.#all;
      draw();
    });
  }

  // of returns the items that are shown. Without a button, all are.
  of(items, hasButton = items.length > this.few) {
    show(this.button, hasButton);
    setText(this.button, this.#all ? `Show ${this.few} ${this.what}`
      : `Show all ${items.length} ${this.what}`);
    return this.#all ? items : items.slice(0, this.few);
  }
}

// drawLines fills a list with the lines that a change has removed and added.
export function drawLines(list, change) {
  const id = JSON.stringify(change ?? null);
  if (list.dataset.shows === id) return;
  list.dataset.shows = id;
  const items = (tag, lines) => (lines ?? []).map((line) => h("li", {}, h(tag, {}, line)));
  list.replaceChildren(...items("del", change?.removed), ...items("ins", change?.added));
}

// isBusy reports whether a person is about to click in an element, or is typing in it.
export function isBusy(element) {
  return element.matches(":hover") || element.contains(document.activeElement);
}

// Order keeps the order of a list while a person uses it.
export class Order {
  #ids = [];

  constructor(element) {
    this.element = element;
  }

  // reset lets the next list have its own order.
  reset() {
    this.#ids = [];
  }

  // sort returns items in the order that is kept, where items is sorted as it should be.
  sort(items, name) {
    const places = new Map(this.#ids.map((id, i) => [id, i]));
    const known = this.#ids.length > 0;
    if (!known || !isBusy(this.element)) {
      this.#ids = items.map(name);
      return items;
    }
    const place = (item) => places.get(name(item)) ?? Infinity;
    const sorted = [...items].sort((a, b) => place(a) - place(b) || 0);
    this.#ids = sorted.map(name);
    return sorted;
  }
}
