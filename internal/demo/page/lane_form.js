// The form of a lane's limit.

const inputs = ["algorithm", "capacity", "refill", "period"];

export class LaneForm {
  #part;
  #fold;
  #state;

  // apply(settings) asks for another limit; it throws what is wrong with it.
  constructor(name, part, apply) {
    this.#part = part;
    this.#fold = part.form.closest("details");
    part.error.id = `${name}-error`;
    for (const input of inputs) part[input].setAttribute("aria-describedby", part.error.id);
    part.apply.setAttribute("aria-label", `Apply the ${name} limit`);
    part.form.addEventListener("input", () => {
      this.#showFields();
      this.#markChanged();
    });
    part.form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await apply(this.settings());
        this.complain();
        this.fill();
      } catch (error) {
        this.complain(error.message);
      }
    });
  }

  focus() {
    this.#fold.open = true;
    this.#part.algorithm.focus();
  }

  // settings is what the form says.
  settings() {
    const settings = Object.fromEntries(inputs.map((name) => [name, this.#part[name].value]));
    if (!isBucket(settings.algorithm)) delete settings.refill;
    return settings;
  }

  // update takes another limit. What a person has begun to type stays.
  update(state) {
    const untouched = !this.#state || !this.#part.form.classList.contains("changed");
    this.#state = state;
    if (untouched) this.fill();
    else this.#markChanged();
  }

  // fill puts the limit as it is into the form.
  fill() {
    const { settings } = this.#state;
    for (const name of inputs) {
      this.#part[name].value = settings[name] ?? (name === "refill" ? settings.capacity : "");
    }
    this.#showFields();
    this.#markChanged();
  }

  // complain shows what is wrong with the form, beside the field that it names.
  complain(message) {
    this.#part.error.hidden = !message;
    this.#part.error.textContent = message ?? "";
    const words = {
      capacity: /^(capacity|count) /, refill: /^refill /, period: /^(period|window) /,
    };
    let first;
    for (const [name, named] of Object.entries(words)) {
      const wrong = Boolean(message) && named.test(message);
      this.#part[name].setAttribute("aria-invalid", String(wrong));
      if (wrong) first ??= this.#part[name];
    }
    first?.focus();
  }

  #showFields() {
    const bucket = isBucket(this.#part.algorithm.value);
    this.#part["refill-field"].hidden = !bucket;
    this.#part["capacity-label"].textContent = bucket ? "Capacity" : "Count";
    this.#part["period-label"].textContent = bucket ? "Each" : "Window";
  }

  #markChanged() {
    const now = JSON.stringify(this.settings());
    const { algorithm, capacity, refill, period } = this.#state?.settings ?? {};
    const changed = now !== JSON.stringify({ algorithm, capacity, refill, period });
    this.#part.form.classList.toggle("changed", changed);
  }
}

function isBucket(algorithm) {
  return algorithm === "token-bucket" || algorithm === "stepped";
}
