// Requests over time.
(() => {
  "use strict";
  const { span } = Charts.format, { seconds } = Report;

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
    let chart = null;
    const options = (l) => {
      const denied = timeline.denied[l.index];
      return { label: `Requests over time, allowed and denied by ${l.text}`, from, step,
        height: 240, series: [
          { name: "allowed", style: "allowed",
            values: timeline.requests.map((n, i) => n - denied[i]) },
          { name: "denied", style: "denied", values: denied }] };
    };
    return (l) => {
      chart?.destroy();
      chart = Charts.time(part("chart"), options(l));
    };
  }

  Report.timeSection = timeSection;
})();
