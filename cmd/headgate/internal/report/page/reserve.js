// A slider from one to three times what the keys need, with its effect and its text to copy.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, plural } = Charts.format;

  function reserve(model) {
    const { all, data } = model, named = (name) => all.find((l) => l.names.includes(name));
    const need = named("rest") ?? smallest(all);
    if (!need?.bucket) return;
    const slider = h("input", { type: "range", min: 1, max: 3, step: .1, value: 2 });
    const text = h("div", {}), effect = h("p", { class: "note", role: "status" });
    const draw = () => {
      const count = Math.ceil(need.bucket.count * slider.value - 1e-9);
      const limit = `${count}/${need.bucket.of}`;
      slider.ariaValueText = `${slider.value} times, ${limit}`;
      text.replaceChildren(Report.copyable("Limit with reserve", limit));
      effect.textContent = `${slider.value} times ${need.text}. ${effectOf(model, need, count)}`;
    };
    slider.addEventListener("input", draw);
    draw();
    document.getElementById("reserve").append(h("section", { class: "card" },
      h("h2", {}, "Choose a reserve"), h("label", {}, "Times what is needed ", slider),
      text, effect));
  }

  // smallest is the smallest limit that denies nothing to keys that do not stand out.
  const smallest = (all) => all.filter((l) => l.bucket && !l.restDenied)
    .reduce((a, b) => !a || b.bucket.rate < a.bucket.rate ? b : a, null);

  // effectOf says what a limit of so many requests denies: no more than a smaller one.
  function effectOf({ all, data }, need, count) {
    const who = data.size.stand_out ? "The busiest of the other keys" : "The busiest key";
    const below = all.filter((l) => l.bucket?.period === need.bucket.period &&
      l.bucket.count <= count).reduce((a, b) => b.bucket.count > a.bucket.count ? b : a);
    const { denied } = below.result;
    const exact = below.bucket.count === count ? "" : "at most ";
    const more = Math.floor(100 * (count / need.bucket.count - 1));
    return `It would have denied ${denied ? exact + plural(denied, "request") : "no request"}` +
      `${denied ? ", all of keys that stand out" : ""}. ` + (more ?
      `${who} could send ${number(more)}% more.` : "A key that is a little busier is denied.");
  }

  Report.reserve = reserve;
})();
