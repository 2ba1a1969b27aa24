// Client of headgate serve, the rate limit server. Node 18 and newer, no dependencies.
//
// All durations are seconds. A wait of null means never.

/** A request that was not answered with a decision. */
export class HeadgateError extends Error {
  constructor(message, { status, field, cause } = {}) {
    super(message, { cause });
    this.name = new.target.name;
    this.status = status; // HTTP status; undefined without an answer
    this.field = field; // the field of the request that is wrong
  }
}

/** The request is wrong: an unknown rule or token, or a field that is not accepted. */
export class InvalidError extends HeadgateError {}

/** The server or its store does not answer. A cost may have been charged. */
export class UnavailableError extends HeadgateError {}

/** withReservation or withPermit was denied; answer.retry_after is the time to wait. */
export class DeniedError extends HeadgateError {
  constructor(answer) {
    super(`headgate: denied; retry after ${answer.retry_after} s`, { status: 200 });
    this.answer = answer;
  }
}

const maxDelay = 2 ** 31 - 1; // a longer one would end at once

/** Resolves after at least a number of milliseconds. */
async function sleep(duration) {
  const end = performance.now() + duration;
  for (let left = duration; left > 0; left = end - performance.now()) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(Math.ceil(left), maxDelay)));
  }
}

/** Client of one server. fetch keeps connections open. A request is sent once. */
export class Client {
  #url;
  #timeout;
  #headers = { "content-type": "application/json" };

  /** timeout limits a whole request, in seconds. */
  constructor(url = "http://127.0.0.1:8080", { token, timeout = 2 } = {}) {
    let parsed;
    try {
      parsed = new URL(url);
    } catch {
      // reported below
    }
    if (!["http:", "https:"].includes(parsed?.protocol)) {
      throw new TypeError(`url is "${url}"; want http://HOST:PORT or https://HOST:PORT`);
    }
    if (!(timeout > 0)) {
      throw new TypeError(`timeout is ${timeout}; want more than 0 seconds`);
    }
    this.#url = parsed.href.replace(/\/$/, "") + "/v1/";
    this.#timeout = timeout * 1000;
    if (token) this.#headers.authorization = `Bearer ${token}`;
  }

  /**
   * Takes cost tokens of a key: { rule, key, cost, headroom, max_wait, force }. An inline limit can
   * replace rule: { limit, key }. With max_wait, wait answer.wait seconds before you use the grant.
   * With headroom, it is granted only if that many tokens are left afterwards.
   */
  take(request) {
    return this.#send("POST", "take", request);
  }

  /** Takes all requests of a list of { rule, key, cost, headroom }, or none. */
  takeAll(requests) {
    return this.#send("POST", "take-all", { requests });
  }

  /** Reports the state of a key: { rule, key }. Nothing is charged. */
  peek(request) {
    return this.#send("POST", "peek", request);
  }

  /** Returns cost tokens to a key: { rule, key, cost }. */
  refund(request) {
    return this.#send("POST", "refund", request);
  }

  /**
   * Takes an estimated cost: { rule, key, cost, max_wait }. With max_wait, wait answer.wait seconds
   * before the work. Commit answer.id with the real cost.
   */
  reserve(request) {
    return this.#send("POST", "reserve", request);
  }

  /** Settles a reservation at the cost that was used; 0 cancels it. Call it once. */
  commit(id, cost) {
    return this.#send("POST", "commit", { id, cost });
  }

  /**
   * Reserves the cost, waits for the start if the request has max_wait, and calls f(reservation). f
   * returns the cost that was used; undefined means the estimate. If f throws, the reservation is
   * cancelled.
   */
  async withReservation(request, f) {
    const reservation = await this.reserve(request);
    if (!reservation.allowed) throw new DeniedError(reservation);
    await sleep(reservation.wait * 1000);
    let used;
    try {
      used = await f(reservation);
    } catch (error) {
      await this.commit(reservation.id, 0).catch(() => {}); // it stays charged; report error instead
      throw error;
    }
    if (used !== undefined) await this.commit(reservation.id, used);
    return used;
  }

  /** Acquires a permit of a key, if headroom permits are left: { rule, key, ttl, headroom }. */
  acquire(request) {
    return this.#send("POST", "acquire", request);
  }

  /** Extends a permit to at least ttl seconds from now. Returns false if it has expired. */
  async renew(id, ttl = 60) {
    return (await this.#send("POST", "renew", { id, ttl })).renewed;
  }

  /** Releases a permit, after so many seconds. Returns false if it had expired. */
  async release(id, after) {
    return (await this.#send("POST", "release", { id, after })).released;
  }

  /**
   * Acquires a permit: { rule, key, ttl, after }. Calls f(permit), returns what f returns, and
   * releases the permit. For an API that counts requests as they arrive, after is the period of its
   * limit: the permit stays in use that many seconds longer; if f throws, until its TTL has passed.
   */
  async withPermit({ after, ...request }, f) {
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
    await this.#send("DELETE", `keys/${encodeURIComponent(rule)}/${encodeURIComponent(key)}`);
  }

  async #send(method, path, body) {
    let response, text;
    try {
      response = await fetch(this.#url + path, {
        method,
        headers: this.#headers,
        body: body && JSON.stringify(body),
        redirect: "error",
        signal: AbortSignal.timeout(this.#timeout),
      });
      text = await response.text();
    } catch (cause) {
      const why = cause.cause?.message || cause.message;
      throw new UnavailableError(`headgate: no answer: ${why}`, { cause });
    }
    const { status } = response;
    let answer;
    try {
      answer = JSON.parse(text || "{}");
    } catch {
      // a proxy in front of the server has answered
    }
    if (answer === null || typeof answer !== "object") {
      throw new UnavailableError("headgate: the answer is no JSON object", { status });
    }
    if (response.ok) return answer;
    const Kind = status >= 500 ? UnavailableError : InvalidError;
    const detail = answer.detail ?? `status ${status}`;
    throw new Kind(`headgate: ${detail}`, { status, field: answer.field });
  }
}
