// One burst just before the edge of a fixed window, and one just after it.

import { span } from "./format.js";
import { pause } from "./pause.js";

const ahead = 1000; // the server waits for the last second, more exactly than a browser does

// plan finds the lane whose window it is, or throws why there is none.
export function plan(lanes) {
  const lane = lanes.find((l) => l.edges() > 0);
  if (!lane) {
    throw new Error("Neither limit is a fixed window. Choose fixed window on one side.");
  }
  const period = lane.edges();
  if (period < 1000 || period > 60_000) {
    const lasts = `The ${lane.name} window is ${span(period / 1000)} long.`;
    throw new Error(`${lasts} Bursts across an edge need a window of 1s to 1m.`);
  }
  const burst = Math.min(lane.state.capacity, 10_000);
  // Far enough from the edge to be seen apart, and to be decided on time.
  const apart = Math.min(period / 8, 400);
  return { period, burst, before: Math.min(apart + burst / 5, period / 2), after: apart };
}

// run sends both bursts. now() is the time of the store; tell shows the progress.
export async function run({ period, burst, before, after }, { now, send, tell, signal }) {
  const edge = Math.ceil((now() + before + 100) / period) * period;
  for (let rest = edge - before - now(); rest > ahead; rest = edge - before - now()) {
    tell(`The edge of the window is in ${span((rest + before) / 1000)}`);
    await pause(Math.min(100, rest - ahead), signal);
  }
  tell("One burst before the edge, one after it");
  await send(burst, edge - before);
  await send(burst, edge + after);
}
