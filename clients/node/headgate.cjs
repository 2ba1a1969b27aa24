"use strict";

// Client of headgate serve, the rate limit server. Node 18 and newer, no dependencies.
//
// All durations are seconds. A wait of Infinity means never.

const { open, schemes, soon } = require("#transport");
const {
  DeniedError, HeadgateError, InvalidError, UnavailableError, wrong,
} = require("./errors.cjs");
const { MAX_DELAY, sleep } = require("./sleep.cjs");

const MAX_AHEAD = 366 * 86400; // the longest max_wait that the server accepts

function checkKey(key) {
  if (typeof key !== "string") wrong("key", typeof key, "a text");
}

function checkNumber(field, value) {
  if (!(Number.isFinite(value) && value >= 0)) wrong(field, value, "a number from 0");
}

/** Returns RateLimit, RateLimit-Policy and, for a denial, Retry-After; nothing for no limit. */
function headerFields({ allowed, rule, limit, capacity, remaining, retry_after }) {
  if (!Number.isFinite(capacity)) return {};
  const name = JSON.stringify(rule ?? limit);
  const fields = {
    "RateLimit-Policy": `${name};q=${capacity}`,
    RateLimit: `${name};r=${Math.max(remaining, 0)}`,
  };
  if (!allowed && retry_after !== Infinity) {
    fields["Retry-After"] = String(Math.ceil(retry_after));
    fields.RateLimit += `;t=${Math.ceil(retry_after)}`;
  }
  return fields;
}

/** Returns the key of an address under a rule with `key: ip`; IPv6 addresses count by their /64. */
function ipKey(address) {
  const v4 = /^(?:::ffff:)?(\d+(?:\.\d+){3})$/i.exec(address);
  if (v4) return `ip:${v4[1]}`;
  const canonical = (text) => new URL(`http://[${text}]`).hostname.slice(1, -1);
  const words = (text) => (text ? text.split(":") : []);
  const [head, tail = []] = canonical(address.split("%")[0]).split("::").map(words);
  const zeros = Array(8 - head.length - tail.length).fill("0");
  const network = [...head, ...zeros, ...tail].slice(0, 4);
  return `ip:${canonical(`${network.join(":")}::`)}/64`;
}

/** Client of one server. It sends each request once. */
class Client {
  #start;
  #timeout;

  /**
   * timeout limits a whole call, in seconds. connections is the most that are open. An agent of
   * node:http or node:https replaces them; fetch replaces node:http.
   */
  constructor(url = "http://127.0.0.1:8080", options = {}) {
    const { token, timeout = 2, connections = 10, agent, fetch } = options;
    let parsed;
    try {
      parsed = new URL(url);
    } catch {
      // reported below
    }
    const hasMore = /[@?#]/.test(url); // which may be secret
    if (!schemes.includes(parsed?.protocol) || hasMore) {
      const shown = hasMore ? "one with a user, a query or a fragment" : `"${url}"`;
      throw new TypeError(`url is ${shown}; want http://HOST:PORT or https://HOST:PORT`);
    }
    this.#timeout = Math.ceil(timeout * 1000);
    if (typeof timeout !== "number" || !(timeout > 0 && this.#timeout <= MAX_DELAY)) {
      throw new TypeError(`timeout is ${timeout}; want more than 0 seconds, at most 2147483`);
    }
    if (!(Number.isInteger(connections) && connections > 0)) {
      throw new TypeError(`connections is ${connections}; want a whole number from 1`);
    }
    if (token && !/^[!-~]+$/.test(token)) {
      throw new TypeError("token has spaces, line breaks or characters that are not ASCII");
    }
    const headers = { "content-type": "application/json" };
    if (token) headers.authorization = `Bearer ${token}`;
    this.#start = open(parsed, headers, { connections, agent, fetch });
  }

  /**
   * Takes cost tokens of a key: { rule, key, cost, headroom, max_wait, force, signal }. An inline
   * limit can replace rule: { limit, key }. With max_wait, wait answer.wait seconds before you use
   * the grant. With headroom, it is granted only if that many tokens are left afterwards.
   */
  take(request) {
    return this.#decide("take", request);
  }

  /** Takes all requests of a list of { rule, key, cost, headroom }, or none. */
  takeAll(requests, { signal } = {}) {
    return this.#decide("take-all", { requests, signal });
  }

  /** Reports the state of a key: { rule, key }. Nothing is charged. */
  peek(request) {
    return this.#decide("peek", request);
  }

  /** Returns cost tokens to a key: { rule, key, cost }. */
  refund(request) {
    return this.#decide("refund", request);
  }

  /**
   * Takes an estimated cost: { rule, key, cost, max_wait }. With max_wait, wait answer.wait seconds
   * before the work. Commit answer.id with the real cost.
   */
  reserve(request) {
    return this.#hold("reserve", request, ({ id }) => this.commit(id, 0));
  }

  /** Settles a reservation at the cost that was used; 0 cancels it. Call it once. */
  commit(id, cost) {
    return this.#post("commit", { id, cost }, "refunded");
  }

  /**
   * Takes cost tokens, and waits until they may be used: { rule, key, cost, max_wait, signal }.
   * Throws a DeniedError if that is not within max_wait seconds. If signal is aborted, the tokens
   * are given back, unless another caller has booked after them. Returns a reservation, which may
   * be committed.
   */
  async wait({ max_wait = Infinity, ...request }) {
    const ahead = Math.min(max_wait, MAX_AHEAD);
    const reservation = await this.reserve({ ...request, max_wait: ahead });
    if (!reservation.allowed) throw new DeniedError(reservation);
    try {
      await sleep(reservation.wait, request.signal);
    } catch (error) {
      await this.#settle(reservation, 0);
      throw error;
    }
    return reservation;
  }

  /**
   * Waits as wait does, but without max_wait, it is denied at once. Calls f(reservation), and
   * returns what f returns. f sets reservation.used to the cost that was used; without it, the
   * estimate stays charged. If f throws before that, the reservation is cancelled.
   */
  async withReservation(request, f) {
    let used;
    const { max_wait = 0 } = request;
    const reservation = Object.defineProperty(await this.wait({ ...request, max_wait }), "used", {
      get: () => used,
      set(cost) {
        checkNumber("used", cost ?? 0);
        used = cost ?? undefined;
      },
    });
    try {
      return await f(reservation);
    } catch (error) {
      used ??= 0;
      throw error;
    } finally {
      if (used !== undefined) await this.#settle(reservation, Math.ceil(used));
    }
  }

  /** Commits a reservation. If that fails, the estimate stays charged, and no result is lost. */
  #settle({ id }, cost) {
    return this.commit(id, cost).catch(() => {});
  }

  /** Acquires a permit of a key, if headroom permits are left: { rule, key, ttl, headroom }. */
  acquire(request) {
    return this.#hold("acquire", request, ({ id }) => this.release(id));
  }

  /** Extends a permit to at least ttl seconds from now. Returns false if it has expired. */
  async renew(id, ttl = 60) {
    return (await this.#post("renew", { id, ttl }, "renewed")).renewed;
  }

  /** Releases a permit, after so many seconds. Returns false if it had expired. */
  async release(id, after) {
    return (await this.#post("release", { id, after }, "released")).released;
  }

  /**
   * Acquires a permit: { rule, key, ttl, after }. Calls f(permit), returns what f returns, and
   * releases the permit. For an API that counts requests as they arrive, after is the period of its
   * limit: the permit stays in use that many seconds longer; if f throws, until its TTL has passed.
   */
  async withPermit({ after = 0, ...request }, f) {
    checkNumber("after", after); // the error of release is not seen
    const permit = await this.acquire(request);
    if (!permit.allowed) throw new DeniedError(permit);
    let arrived = !after;
    try {
      const result = await f(permit);
      arrived = true;
      return result;
    } finally {
      if (arrived) await this.release(permit.id, after).catch(() => {}); // it expires
    }
  }

  /** Resets a key to its initial state under a rule. */
  async reset(rule, key) {
    checkKey(key);
    const path = `keys/${encodeURIComponent(rule)}/${encodeURIComponent(key)}`;
    const answer = await this.#send("DELETE", path);
    if (answer.status !== 204) refuse(answer);
  }

  /** Reserves or acquires. If signal is aborted, undo gives back what the server has granted. */
  async #hold(operation, { signal, ...request }, undo) {
    signal?.throwIfAborted();
    let answer;
    try {
      answer = await this.#decide(operation, request);
      return answer;
    } finally {
      if (signal?.aborted) {
        if (answer?.allowed) await undo(answer).catch(() => {});
        signal.throwIfAborted();
      }
    }
  }

  async #decide(operation, request) {
    for (const one of request.requests ?? [request]) if ("key" in one) checkKey(one.key);
    return this.#post(operation, request, "allowed");
  }

  /** Sends a request, and returns its answer, which has this member. */
  async #post(operation, { signal, ...request }, member) {
    const answer = await this.#send("POST", operation, JSON.stringify(request), signal);
    const { status, json } = answer;
    if (status !== 200 || json?.[member] === undefined) refuse(answer);
    for (const one of [json, ...(json.results ?? json.limits ?? [])]) {
      if ("allowed" in one) one.retry_after ??= Infinity; // never: no wait helps
      if ("capacity" in one) one.reset_after ??= Infinity;
      if (one.capacity === null) one.capacity = one.remaining = Infinity; // unlimited
    }
    return json;
  }

  async #send(method, path, body, signal) {
    signal?.throwIfAborted();
    const call = this.#start(method, `/v1/${path}`, body);
    const abort = () => call.end(signal.reason);
    signal?.addEventListener("abort", abort);
    const late = () => call.end(new Error(`none in ${this.#timeout} ms`));
    // after a stall of the program, answers that have arrived are read first
    const timer = setTimeout(() => soon(late), this.#timeout);
    try {
      const answer = await call.answer;
      answer.json = parse(answer.text);
      return answer;
    } catch (cause) {
      signal?.throwIfAborted();
      const why = cause.cause?.message || cause.message || cause.code;
      const details = { cause, may_be_charged: call.sent };
      throw new UnavailableError(`headgate: no answer: ${why}`, details);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // something else has answered
  }
}

/** Throws the error of an answer that is no decision. */
function refuse({ status, retryAfter, json }) {
  const gateway = status === 408 || status === 429;
  const other = status < 300 ? "the answer is not that of headgate serve" : `status ${status}`;
  const why = json?.detail ?? other;
  if (status >= 400 && status < 500 && !gateway && json?.type) {
    throw new InvalidError(`headgate: ${why}`, { http_status: status, field: json.field });
  }
  const retry_after = Number.isFinite(Number(retryAfter)) ? Number(retryAfter) : undefined;
  const may_be_charged = status !== 429;
  const details = { http_status: status, retry_after, may_be_charged };
  throw new UnavailableError(`headgate: ${why}`, details);
}

module.exports = {
  Client, DeniedError, HeadgateError, InvalidError, UnavailableError, headerFields, ipKey,
};
