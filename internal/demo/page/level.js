// What a limit holds at this moment, from what the server said a moment ago. It is
// exact for buckets and fixed windows; the others change in ways that only the
// store knows, and keep their level until the next answer.

import { number, span } from "./format.js";

export function levelAt(lane, elapsed) {
  const { capacity, refill, period, remaining } = lane;
  const rest = lane.reset - elapsed;
  if (rest <= 0) return capacity;
  switch (lane.algorithm) {
    case "token-bucket": // what is missing flows in until the reset
      return Math.max(0, Math.min(capacity, capacity - (rest * refill) / period));
    case "stepped": {
      const steps = Math.ceil(lane.reset / period) - Math.ceil(rest / period);
      return Math.min(capacity, remaining + steps * refill);
    }
    default:
      return remaining;
  }
}

// nextText says what happens next, and when.
export function nextText(lane, elapsed) {
  const rest = lane.reset - elapsed;
  switch (lane.algorithm) {
    case "token-bucket":
      return rest > 0 ? `full in ${span(rest / 1000)}` : "full";
    case "stepped": {
      const step = rest - Math.floor(rest / lane.period) * lane.period;
      if (rest <= 0) return "full";
      return `next ${number(lane.refill)} in ${span((step || lane.period) / 1000)}`;
    }
    case "fixed-window":
      return rest > 0 ? `new window in ${span(rest / 1000)}` : "nothing used";
    default:
      return rest > 0 ? `full in ${span(rest / 1000)}` : "nothing used";
  }
}

// boundText explains the most that the limit allows in one period.
export function boundText({ capacity, refill, period }) {
  const each = span(period / 1000);
  if (!refill) return `the limit is ${number(capacity)} in ${each}`;
  return `${number(capacity)} at once, then ${number(refill)} in ${each}`;
}
