// A slider from one to three times what the keys need, with its effect and its text to copy.
(() => {
  "use strict";
  const { h } = Charts.dom, { plural } = Charts.format;

  function reserve(model, host) {
    const { size } = model.data, { limit, denied } = size.stand_out?.rest ?? size.proposals[0];
    const bucket = Report.parse(limit);
    const others = size.keys - (size.stand_out?.keys.length ?? 0);
    const slider = h("input", { type: "range", min: 1, max: 3, step: .1, value: 2 });
    const text = h("div", {}), value = h("b"), effect = h("span");
    const draw = () => {
      const count = Math.ceil(bucket.count * slider.value - 1e-9);
      const chosen = `${count}/${bucket.of}`;
      value.textContent = `${slider.value} times ${limit} is ${chosen}.`;
      slider.ariaValueText = value.textContent;
      text.replaceChildren(Report.copyable("Limit with reserve", chosen));
      // A limit denies no more than a smaller one.
      const [below, most] = model.all.filter((l) => l.bucket?.period === bucket.period)
        .map((l) => [l.bucket.count, l.result.denied]).filter(([n]) => n <= count)
        .reduce((a, b) => b[0] > a[0] ? b : a, [bucket.count, denied]);
      effect.textContent = `In this log, the limit denies ${most ? (below === count ? "" :
        "at most ") + plural(most, "request") + ", all from keys that stand out" : "nothing"}.`;
    };
    slider.addEventListener("input", draw);
    draw();
    host.append(h("section", { class: "card" }, h("h2", {}, "Choose a reserve"),
      h("p", { class: "lead" }, `At 1x, the limit is ${limit}, which the busiest of the ` +
        `${size.stand_out ? "other " : ""}${plural(others, "key")} needs. More leaves room for a ` +
        "busier day. The cards and charts do not follow the slider."),
      h("div", { class: "slide" }, h("label", {}, "1x ", slider, " 3x"),
        h("p", { role: "status" }, value, " ", effect)), text));
  }

  Report.reserve = reserve;
})();
