// A slider from one to three times what the keys need, with its effect and its text to copy.
(() => {
  "use strict";
  const { h } = Charts.dom, { number, plural } = Charts.format;

  function reserve(model, host) {
    const { size } = model.data, { limit, denied } = size.stand_out?.rest ?? size.proposals[0];
    const need = { limit, denied, bucket: Report.parse(limit) };
    const slider = h("input", { type: "range", min: 1, max: 3, step: .1, value: 2 });
    const text = h("div", {}), effect = h("p", { class: "note", role: "status" });
    const draw = () => {
      const count = Math.ceil(need.bucket.count * slider.value - 1e-9);
      const chosen = `${count}/${need.bucket.of}`;
      slider.ariaValueText = `${slider.value} times, ${chosen}`;
      text.replaceChildren(Report.copyable("Limit with reserve", chosen));
      effect.textContent = `${slider.value} times ${limit}. ${effectOf(model, need, count)}`;
    };
    slider.addEventListener("input", draw);
    draw();
    host.append(h("section", { class: "card" },
      h("h2", {}, "Choose a reserve"), h("label", {}, "Times what is needed ", slider),
      text, effect));
  }

  // effectOf says what a limit of so many requests denies: no more than a smaller one.
  function effectOf({ all, data }, need, count) {
    const who = data.size.stand_out ? "The busiest of the other keys" : "The busiest key";
    const [below, denied] = all.filter((l) => l.bucket?.period === need.bucket.period)
      .map((l) => [l.bucket.count, l.result.denied]).filter(([n]) => n <= count)
      .reduce((a, b) => b[0] > a[0] ? b : a, [need.bucket.count, need.denied]);
    const exact = below === count ? "" : "at most ";
    const more = Math.floor(100 * (count / need.bucket.count - 1));
    return `It would have denied ${denied ? exact + plural(denied, "request") : "no request"}` +
      `${denied ? ", all of keys that stand out" : ""}. ` + (more ?
      `${who} could send ${number(more)}% more.` : "A key that is a little busier is denied.");
  }

  Report.reserve = reserve;
})();
