// What the page asks of its server. An answer that is no throws a Refusal, whose
// message is one line for a person.

export class Refusal extends Error {}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, signal: AbortSignal.timeout(50_000) });
  } catch {
    throw new Refusal("the server does not answer; is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(answer.error ?? `the server answered ${response.status}`);
  return answer;
}

function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) });
}

export const getState = () => ask("/api/state");
export const reset = () => post("/api/reset", {});
// setLimits sets both limits, given as text, and resets both lanes.
export const setLimits = (left, right) => post("/api/limits", { left, right });
export const setLimit = (lane, settings) => post(`/api/limit/${lane}`, settings);
// at is a time of the store, in milliseconds since 1970: the server waits for it.
export const send = (requests, at = 0) => post("/api/requests", { requests, at });
