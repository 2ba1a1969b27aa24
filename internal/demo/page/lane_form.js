// The form of a lane's limit: its text, and a list that changes the algorithm in the text.

export class LaneForm {
  #part;
  #limit; // that is in force

  // apply(text) requests another limit; it throws if the limit is wrong.
  constructor(name, part, apply) {
    this.#part = part;
    part.error.id = `${name}-error`;
    part.limit.setAttribute("aria-describedby", part.error.id);
    part.apply.setAttribute("aria-label", `Apply the ${name} limit`);
    part.limit.addEventListener("input", () => this.#show());
    part.algorithm.addEventListener("input", () => {
      part.limit.value = withAlgorithm(part.limit.value, part.algorithm.value);
      this.#show();
    });
    part.form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await apply(part.limit.value);
        this.restore();
      } catch (error) {
        this.#complain(error.message);
        part.limit.focus();
      }
    });
  }

  // update takes the limit that is in force. What a person has begun to type stays.
  update(limit) {
    const changed = this.#part.form.classList.contains("changed");
    this.#limit = limit;
    if (!changed) this.#part.limit.value = limit;
    this.#show();
  }

  // restore shows the limit that is in force, and no error.
  restore() {
    this.#part.limit.value = this.#limit;
    this.#complain("");
    this.#show();
  }

  #complain(message) {
    this.#part.error.hidden = !message;
    this.#part.error.textContent = message;
    this.#part.limit.setAttribute("aria-invalid", String(message !== ""));
  }

  #show() {
    const { algorithm, form, limit } = this.#part;
    const words = limit.value.split(" ");
    const named = [...algorithm.options].find((option) => words.includes(option.value));
    algorithm.value = named?.value ?? "token-bucket";
    form.classList.toggle("changed", limit.value !== this.#limit);
  }
}

// withAlgorithm returns the text of a limit with another algorithm. Only buckets have a burst.
function withAlgorithm(text, algorithm) {
  const [rate] = text.trim().split(" ");
  if (algorithm === "token-bucket" || algorithm === "stepped") {
    const burst = /burst \S+/.exec(text)?.[0];
    return [rate, burst, algorithm === "stepped" && algorithm].filter(Boolean).join(" ");
  }
  return `${rate} ${algorithm}`;
}
