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
// change has the limits that change, as text: left, right or both. With reset: true, both lanes
// are reset.
export const setLimits = (change) => post("/api/limits", change);
// at is a time of the store, in milliseconds since 1970: the server waits for it.
export const send = (requests, at = 0) => post("/api/requests", { requests, at });
