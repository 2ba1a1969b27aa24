// Elements, made and changed by text only: what a client chose is never markup.

// h makes an element. A property that is a function listens, one that is a boolean is an attribute
// that is there or not, and children are elements or texts.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else setAttribute(element, name, value);
  }
  element.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// setAttribute changes an attribute, if it is another. Without a value it removes the attribute.
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

// copyText copies a text, and says so on the button for a moment. It reports whether it could.
export const copyText = async (text, button) => {
  const label = button.dataset.label ??= button.firstChild.data;
  setTimeout(() => { button.firstChild.data = label; }, 2_000);
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    return false;
  }
  button.firstChild.data = "Copied";
  return true;
};

// copyFrom copies the text of an element, or selects it where a page may not copy. It returns what
// it says on the button.
export const copyFrom = async (element, button) => {
  if (!await copyText(element.textContent, button)) {
    getSelection().selectAllChildren(element);
    button.firstChild.data = "Selected";
  }
  return button.firstChild.data;
};
