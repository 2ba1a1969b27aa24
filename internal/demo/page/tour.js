// The guided tour: a step for each algorithm, which sets both limits, sends traffic,
// and explains what there is to see.

import { byId as $, h } from "./dom.js";
import { Stopped } from "./pause.js";
import { steps } from "./tour_steps.js";

export class Tour {
  #at = -1;
  #before;
  #page;

  // page has begin(left, right), play(script, tell), stop(), limits() and fail(error).
  constructor(page) {
    this.#page = page;
    $("tour-start").addEventListener("click", () => (this.running ? this.leave() : this.start()));
    $("tour-next").addEventListener("click", () => this.next());
    $("tour-back").addEventListener("click", () => this.back());
    $("tour-again").addEventListener("click", () => this.#show());
    $("tour-leave").addEventListener("click", () => this.leave());
    for (const [i, step] of steps.entries()) $("tour-dots").append(this.#dot(i, step));
    document.addEventListener("keydown", (event) => this.#press(event));
  }

  get running() {
    return this.#at >= 0;
  }

  // Arrows change the step, but not in a field, where they move the cursor.
  #press(event) {
    if (!this.running || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const typing = event.target.closest?.("input, select");
    if (event.key === "Escape") this.leave();
    else if (event.key === "ArrowRight" && !typing) this.next();
    else if (event.key === "ArrowLeft" && !typing) this.back();
  }

  #dot(i, step) {
    const label = `Step ${i + 1}: ${step.title}`;
    const button = h("button", { type: "button", "aria-label": label, click: () => this.#go(i) });
    return h("li", {}, button);
  }

  start() {
    this.#before = this.#page.limits();
    document.documentElement.classList.add("touring");
    $("tour").hidden = false;
    $("tour-start").textContent = "End the tour";
    this.#go(0);
  }

  next() {
    if (this.#at === steps.length - 1) this.leave();
    else this.#go(this.#at + 1);
  }

  back() {
    if (this.#at > 0) this.#go(this.#at - 1);
  }

  // leave restores the limits that were there before the tour.
  async leave() {
    this.#at = -1;
    this.#page.stop();
    document.documentElement.classList.remove("touring");
    $("tour").hidden = true;
    $("tour-start").textContent = "Take the tour";
    $("tour-start").focus();
    await this.#page.begin(...this.#before).catch((error) => this.#page.fail(error));
  }

  #go(i) {
    this.#at = i;
    const last = i === steps.length - 1;
    $("tour-count").textContent = `${i + 1} of ${steps.length}`;
    $("tour-title").textContent = steps[i].title;
    $("tour-text").textContent = steps[i].text;
    $("tour-back").disabled = i === 0;
    $("tour-next-label").textContent = last ? "Finish" : "Next";
    for (const [n, item] of [...$("tour-dots").children].entries()) {
      if (n === i) item.firstChild.setAttribute("aria-current", "step");
      else item.firstChild.removeAttribute("aria-current");
    }
    $("tour-title").focus({ preventScroll: true });
    this.#page.reveal();
    return this.#show();
  }

  // show plays the step from its beginning.
  async #show() {
    const at = this.#at;
    const tell = (text) => {
      if (this.#at === at) $("tour-see").textContent = text;
    };
    const { left, right, script } = steps[at];
    tell("");
    this.#page.stop();
    $("tour-again").disabled = true;
    try {
      await this.#page.begin(left, right);
      if (this.#at !== at) return;
      await this.#page.play(script, tell);
    } catch (error) {
      if (!(error instanceof Stopped)) this.#page.fail(error);
    } finally {
      if (this.#at === at) $("tour-again").disabled = false;
    }
  }
}
