// A slider from one to three times what the keys need, with its effect and its text to copy.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, plural } = Charts.format;

  function reserve(model, host) {
    const { size } = model.data, { limit, denied } = size.stand_out?.rest ?? size.proposals[0];
    const need = { limit, denied, bucket: Report.parse(limit) };
    const others = size.keys - (size.stand_out?.keys.length ?? 0);
    const slider = h("input", { type: "range", min: 1, max: 3, step: .1, value: 2 });
    const text = h("div", {}), value = h("b"), effect = h("span");
    const draw = () => {
      const count = Math.ceil(need.bucket.count * slider.value - 1e-9);
      const chosen = `${count}/${need.bucket.of}`;
      value.textContent = `${slider.value} times ${limit} is ${chosen}.`;
      slider.ariaValueText = value.textContent;
      text.replaceChildren(Report.copyable("Limit with reserve", chosen));
      effect.textContent = effectOf(model, need, count);
    };
    slider.addEventListener("input", draw);
    draw();
    host.append(h("section", { class: "card" }, h("h2", {}, "Choose a reserve"),
      h("p", { class: "lead" }, `1 time is ${limit}. The busiest of the ` +
        `${size.stand_out ? "other " : ""}${plural(others, "key")}, which may be an office ` +
        "behind one address, needs just that. So 1 time has no reserve. More leaves room for a " +
        "busier day."),
      h("div", { class: "slide" }, h("label", {}, "1 time ", slider, " 3 times"),
        h("p", { role: "status" }, value, " ", effect)), text));
  }

  // effectOf says what a limit of so many requests denies: no more than a smaller one.
  function effectOf({ all, data }, need, count) {
    const who = data.size.stand_out ? "The busiest of the other keys" : "The busiest key";
    const [below, denied] = all.filter((l) => l.bucket?.period === need.bucket.period)
      .map((l) => [l.bucket.count, l.result.denied]).filter(([n]) => n <= count)
      .reduce((a, b) => b[0] > a[0] ? b : a, [need.bucket.count, need.denied]);
    const exact = below === count ? "" : "at most ";
    const more = Math.floor(100 * (count / need.bucket.count - 1));
    const room = more ? `can send ${number(more)}% more without a denial` :
      "may be denied as soon as it sends more";
    return `${who} ${room}. In this log, the limit denies ${denied ? exact +
      plural(denied, "request") + ", all from keys that stand out" : "nothing"}.`;
  }

  Report.reserve = reserve;
})();
