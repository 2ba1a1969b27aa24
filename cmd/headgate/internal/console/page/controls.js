// Buttons that say why they cannot be used.

import { setAttribute } from "./dom.js";
import { isBusy } from "./rows.js";

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

// arrange puts the raise of a key that may be many people first, and otherwise its ban.
export function arrange(ban, raise, isMany) {
  raise.classList.toggle("primary", isMany);
  const [first, second] = isMany ? [raise, ban] : [ban, raise];
  if (first.nextElementSibling !== second && !isBusy(first.parentElement)) first.after(second);
}
