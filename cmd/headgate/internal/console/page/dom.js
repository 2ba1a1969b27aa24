// Elements, made and changed by text only: what a client chose is never markup.

// h makes an element. A property that is a function listens, one that is a boolean is an attribute
// that is there or not, and children are elements or texts.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else setAttribute(element, name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function setAttribute(element, name, value) {
  if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value === true ? "" : value);
  }
}

// setText changes the text of an element, if it is another: what does not change is not drawn.
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

export const byId = (id) => document.getElementById(id);

// show shows an element or hides it.
export function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

// disable explains a control that cannot be used, and keeps it in the order of the tab key.
export function disable(button, why) {
  setAttribute(button, "aria-disabled", why ? "true" : null);
  setAttribute(button, "title", why || null);
  setAttribute(button, "aria-description", why || null);
}

// onAct calls listen for clicks on a button that is not disabled. One that is says why by an event.
export function onAct(button, listen) {
  button.addEventListener("click", (event) => {
    if (button.getAttribute("aria-disabled") !== "true") return listen(event);
    const detail = button.getAttribute("aria-description");
    return button.dispatchEvent(new CustomEvent("refused", { bubbles: true, detail }));
  });
  return button;
}

// Rows keeps one element for each item of a list, and moves them only if their order is another.
export class Rows {
  #rows = new Map();

  // make(item) returns {element, update(item)}.
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
  }

  get size() {
    return this.#rows.size;
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

const canHover = matchMedia("(hover: hover)");

// isBusy reports whether a person is about to click in an element, or is typing in it.
export function isBusy(element) {
  return (canHover.matches && element.matches(":hover"))
    || element.contains(document.activeElement);
}

const patience = 5_000; // rows that change places all the time cannot be read

// Order keeps the order of a list while a person uses it, and changes it now and then otherwise.
export class Order {
  #ids = [];
  #at = 0;

  constructor(element) {
    this.element = element;
  }

  // reset lets the next list have its own order.
  reset() {
    this.#ids = [];
  }

  // sort returns items in the order that is kept, where items is sorted as it should be.
  sort(items, name, now = performance.now()) {
    const places = new Map(this.#ids.map((id, i) => [id, i]));
    const known = this.#ids.length > 0;
    if (!known || (now - this.#at > patience && !isBusy(this.element))) {
      this.#at = now;
      this.#ids = items.map(name);
      return items;
    }
    const place = (item) => places.get(name(item)) ?? Infinity;
    const sorted = [...items].sort((a, b) => place(a) - place(b) || 0);
    this.#ids = sorted.map(name);
    return sorted;
  }
}
