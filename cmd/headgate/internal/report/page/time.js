// Requests over time: of all keys, and of those that are denied most.
(() => {
  "use strict";
  const { h } = Charts.dom, { span, visible } = Charts.format, { seconds } = Report;

  function timeSection(model, part) {
    const { timeline } = model.data.replay.detail;
    if (!timeline) {
      part("lead").textContent = "The logs have no requests.";
      return () => {};
    }
    const from = seconds(timeline.from), step = timeline.width_s;
    if (timeline.requests.length < 2) {
      part("lead").textContent = "All requests are within " +
        `${span(step)}, so there is no chart over time.`;
      return () => {};
    }
    let charts = [];
    const options = (l) => {
      const denied = timeline.denied[l.index];
      return { label: `Requests over time, allowed and denied by ${l.text}`, from, step,
        height: 240, series: [
          { name: "allowed", style: "allowed",
            values: timeline.requests.map((n, i) => n - denied[i]) },
          { name: "denied", style: "denied", values: denied }] };
    };
    return (l) => {
      for (const chart of charts) chart.destroy();
      charts = [Charts.time(part("chart"), options(l)), ...keyCharts(model, l, part, from, step)];
    };
  }

  function keyCharts(model, l, part, from, step) {
    const { detail } = model.data.replay;
    const lines = detail.key_timelines[l.index] ?? [];
    part("subtitle").textContent = lines.length === 1 ? "Top denied key" :
      lines.length ? `Top ${lines.length} denied keys` : "";
    part("keys").replaceChildren();
    const bars = detail.timeline.requests.length;
    return lines.map((k) => {
      const requests = dense(k.requests, bars), denied = dense(k.denied, bars);
      const host = h("div", {});
      part("keys").append(h("figure", {}, h("figcaption", {}, Report.name(k.key, 60)), host));
      const label = `Requests of ${visible(k.key).slice(0, 40)} over time`;
      return Charts.time(host, { label, from, step,
        compact: true, height: 120, paper: 330, series: [
          { name: "allowed", style: "allowed", values: requests.map((n, i) => n - denied[i]) },
          { name: "denied", style: "denied", values: denied }] });
    });
  }

  function dense(sparse, length) {
    const values = new Array(length).fill(0);
    for (const [i, n] of sparse) values[i] = n;
    return values;
  }

  Report.timeSection = timeSection;
})();
