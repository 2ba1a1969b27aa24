// The examples: two limits, and the traffic that shows how they differ.

export const examples = {
  fast: {
    left: "1/s burst 10", right: "10/10s fixed-window",
    script: [{ wait: 0.5 }, { burst: 8 }, { wait: 1 }, { rate: 3, seconds: 10 }],
  },
  edge: {
    left: "10/5s fixed-window", right: "10/5s sliding-log",
    script: [{ wait: 0.5 }, { edge: true }],
  },
  refill: {
    left: "10/2s burst 20 stepped", right: "10/2s burst 20",
    script: [{ wait: 0.5 }, { burst: 30 }, { rate: 15, seconds: 9 }],
  },
  sliding: {
    left: "20/5s sliding-window", right: "20/5s sliding-log",
    script: [{ wait: 0.5 }, { burst: 20 }, { rate: 10, seconds: 11 }],
  },
};
