// What the page asks of its server, by relative paths, so that a proxy can mount it anywhere.

const place = "headgate-console-token";

// A Refusal is an answer that is no. Its message is a sentence for a person.
export class Refusal extends Error {
  constructor(message, status = 0, field = "") {
    super(message);
    this.status = status;
    this.field = field;
  }
}

export const token = {
  get: () => sessionStorage.getItem(place) ?? "",
  set: (value) => sessionStorage.setItem(place, value),
  clear: () => sessionStorage.removeItem(place),
};

// open sends a request and returns its response if that is a success.
export async function open(path, options = {}) {
  const headers = { ...options.headers };
  const bearer = options.token ?? token.get();
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  let response;
  try {
    response = await fetch(`api/${path}`, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("the server does not answer");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => null) ?? {};
  const isFromGateway = !problem.detail && response.status >= 502; // which knows no outcome
  throw new Refusal(problem.detail ?? `the server answered ${response.status}`,
    isFromGateway ? undefined : response.status, problem.field);
}

async function ask(path, options = {}) {
  const response = await open(path, { signal: AbortSignal.timeout(30_000), ...options });
  try {
    return await response.json();
  } catch {
    throw new Refusal("the answer was cut off");
  }
}

const post = (path, body) => ask(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
}).catch((error) => {
  throw error.status ? error : new Refusal(`${error.message}: it may have been done`);
});

// getAccess reports what a token allows.
export const getAccess = (bearer) => ask("access", { token: bearer });
export const getConfig = () => ask("config");
export const getActs = () => ask("acts");
export const act = (request) => post("acts", request);
export const putBack = (by) => post("lost", { by });
export const undo = (id, by) => post(`acts/${encodeURIComponent(id)}/undo`, { by });

export function getKey(key, rule) {
  const query = new URLSearchParams(rule ? { rule, key } : { key });
  return ask(`key?${query}`);
}
