// Limits decided straight on a fleet's Redis or Valkey, by the scripts that Headgate for Go runs.
// Processes of all languages that use the same server and prefix share each limit. Calls of one
// turn of the event loop share a trip to the server. Node 20 and newer, with redis or ioredis.
//
// All durations are seconds. A wait of Infinity means never.

import { createHash, createHmac, randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";

import { DeniedError, UnavailableError, wrong } from "./errors.cjs";
import { ALGORITHMS, Limit, MAX_EXACT, read7, write7 } from "./limit.mjs";
import { MAX_DELAY, sleep } from "./sleep.cjs";

export { DeniedError, HeadgateError, InvalidError, UnavailableError } from "./errors.cjs";
export { Limit };

const COSTS = 2, TIMED = 4, BOOKS = 8, JOINED = 16, FORCED = 32; // what a request has
const TOGETHER = 4000; // requests in one call
const BATCH = 256; // requests in one trip, unless one call has more
const PATIENCE = 16; // denials, after which a waiting caller books its start however far ahead
const PROBES = 20, PROBE_INTERVAL = 60_000;
const CONNECTS = new Set(["close", "connect", "connecting", "disconnecting", "reconnecting"]);

// The scripts are copied when the package is packed.
const packed = new URL("./lua/", import.meta.url);
const files = existsSync(packed) ? packed : new URL("../../redisstore/", import.meta.url);
const lua = (name) => readFileSync(new URL(`${name}.lua`, files), "utf8");
const parts = ALGORITHMS.map((a) => (a === "stepped" ? "stepped_token_bucket" : a.replaceAll("-", "_")));
const scripts = new Map();

/** Returns a script for algorithms by their numbers: for a lone request, or for a batch. */
function scriptFor(numbers, slow, lone) {
  const id = lone ? numbers[0] : numbers.join() + slow;
  if (!scripts.has(id)) {
    const names = numbers.map((n) => parts[n - 1].replaceAll("_", ""));
    let text = lua("prelude") + numbers.map((n) => lua(parts[n - 1])).join("");
    if (lone) text += `local decide = ${names[0]}\n${lua("lone")}`;
    else {
      const table = numbers.map((n, i) => `[${n}] = ${names[i]}, `).join("");
      text += `local algorithms = {${table}}\n${lua("batch")}`;
      if (slow) text += lua("booking") + lua("slow_path");
      text += lua("take") + lua("write");
    }
    scripts.set(id, { text, sha: createHash("sha1").update(text).digest("hex") });
  }
  return scripts.get(id);
}

/** Returns how to send a command whose answer is bytes, and whether the client is of a Cluster. */
function senderOf(client) {
  if (typeof client?.callBuffer === "function") { // ioredis
    const { options = {}, isCluster = false } = client;
    const single = isCluster ? (options.redisOptions ?? {}) : options;
    if (single.autoResendUnfulfilledCommands !== false || (isCluster && options.retryDelayOnFailover !== 0)) {
      const want = "autoResendUnfulfilledCommands: false, and retryDelayOnFailover: 0 in a Cluster";
      wrong("client", "one that repeats commands whose answer was lost", want);
    }
    if (single.keyPrefix || options.keyPrefix) wrong("client", "one with a keyPrefix", "a prefix of the store");
    return { isCluster, send: (key, [name, ...args]) => client.callBuffer(name, ...args) };
  }
  if (typeof client?.sendCommand !== "function") wrong("client", typeof client, "one of redis or ioredis");
  const options = { typeMapping: { 36: Buffer } }; // bulk strings
  const isCluster = "masters" in client && "getSlotRandomNode" in client;
  if (isCluster) return { isCluster, send: (key, args) => client.sendCommand(key, false, args, options) };
  if ("getMasterNode" in client) { // of a Sentinel, which runs a function again after a lost answer
    return { isCluster, send: (key, args) => {
      let lost;
      return client._execute(false, async (node) => {
        if (lost) throw lost;
        try {
          return await node.sendCommand(args, options);
        } catch (error) {
          if (!begins(error, "READONLY")) lost = error;
          throw error;
        }
      });
    } };
  }
  return { isCluster, send: (key, args) => client.sendCommand(args, options) };
}

const begins = (error, text) => error instanceof Error && error.message.startsWith(text);

/** Decides on a client of redis or ioredis, for one server, a Sentinel or a Cluster. */
export class Store {
  #client; #send; #cluster; #prefix; #secret; #timeout;
  #ready; // resolves when the client is connected again
  #queue = [];
  #trips = 0; // under way
  #pending = new Set(); // commands that wait for their answers, the oldest first
  #watched = false; // by a timer
  #lines = new Map(); // of those that wait, by key in Redis
  #noTime = false; // the server refuses TIME in scripts
  #probeAt = 0;
  #probing;

  /** keySecret is that of Store.HashKeys in Go; all processes need the same prefix and secret. */
  constructor(client, { prefix = "hg:", keySecret, timeout = 2 } = {}) {
    if (/[{}]/.test(prefix)) wrong("prefix", `"${prefix}"`, "a text without braces");
    if (keySecret !== undefined && keySecret.length < 16) {
      wrong("keySecret", `${keySecret.length} bytes long`, "at least 16 random bytes");
    }
    if (!(timeout > 0 && timeout * 1000 <= MAX_DELAY)) wrong("timeout", timeout, "more than 0 seconds");
    const { send, isCluster } = senderOf(client);
    this.#client = client;
    this.#send = send;
    this.#cluster = isCluster;
    this.#prefix = prefix;
    this.#secret = keySecret;
    this.#timeout = timeout;
  }

  /**
   * Takes cost tokens of a key: { limit, key, cost, headroom, max_wait, force }. With max_wait, wait
   * answer.wait seconds before you use the grant.
   */
  async take(request) {
    const asks = [this.#ask(request)];
    return (await new Promise((resolve, reject) => this.#join({ asks, resolve, reject })))[0];
  }

  /** Takes all requests of a list, or none, in one trip. In a Cluster, they need one key. */
  async takeAll(requests) {
    const results = requests.length ? await this.#decide(requests) : [];
    const allowed = results.every((result, i) => { // what is forced or only asks denies nothing
      const { cost = 1, force } = requests[i];
      return result.allowed || cost === 0 || (force && cost > 0);
    });
    return { allowed, results };
  }

  /** Reports whether one token of a key would be granted: { limit, key, headroom }. */
  peek({ limit, key, headroom }) {
    return this.take({ limit, key, headroom, cost: 0 });
  }

  /**
   * Returns cost tokens to a key: { limit, key, cost, start_us }. start_us names their grant: before
   * that start, it is cancelled.
   */
  refund({ limit, key, cost = 1, start_us }) {
    if (!(cost >= 1)) wrong("cost", cost, "at least 1");
    return this.take({ limit, key, cost: -cost, start_us });
  }

  /** Puts a key back in its initial state: { limit, key }. */
  async reset({ limit, key }) {
    const { name } = this.#ask({ limit, key });
    await this.#exchange(name, ["del", name]);
  }

  /**
   * Takes cost tokens of a key, and waits until they may be used: { limit, key, cost, headroom,
   * timeout, signal }. Throws a DeniedError if that is not before timeout. Callers wait in line for
   * each key and limit. One that is aborted gives back what it was granted.
   */
  async wait({ timeout = Infinity, signal, ...request }) {
    const { name } = this.#ask(request);
    if (!(timeout >= 0)) wrong("timeout", timeout, "0 or more seconds");
    if (!((request.cost ?? 1) >= 1)) wrong("cost", request.cost, "at least 1");
    const ends = performance.now() / 1000 + timeout;
    const before = this.#lines.get(name);
    const turn = this.#turn(before, request, ends, signal);
    const settled = turn.then(() => before, () => before); // also if it leaves before its turn
    this.#lines.set(name, settled);
    settled.then(() => this.#lines.get(name) === settled && this.#lines.delete(name));
    const answer = await turn;
    try {
      await sleep(answer.wait, signal);
    } catch (error) {
      this.#giveBack(request, answer);
      throw error;
    }
    return answer;
  }

  /** Waits until a caller is the head of its line, and then until it is granted a start. */
  async #turn(before, request, ends, signal) {
    const left = () => ends - performance.now() / 1000;
    signal?.throwIfAborted();
    if (before) {
      const stop = new AbortController();
      const signals = signal ? AbortSignal.any([stop.signal, signal]) : stop.signal;
      const late = sleep(left(), signals).then(() => true);
      try {
        if (await Promise.race([before, late])) throw new DeniedError(await this.peek(request));
      } finally {
        late.catch(() => {});
        stop.abort();
      }
    }
    for (let denials = 0, trip = 0, lead = 0; ; ) {
      if (request.headroom) lead = 0;
      else if (denials >= PATIENCE) lead = Infinity;
      const began = performance.now();
      const asked = this.take({ ...request, max_wait: Math.min(lead, Math.max(left(), 0)) });
      const answer = await asked;
      if (signal?.aborted && answer.allowed) this.#giveBack(request, answer);
      signal?.throwIfAborted();
      if (answer.allowed) return answer;
      trip = Math.max((trip * 7) / 8, (performance.now() - began) / 1000);
      if (answer.retry_after > left() || answer.retry_after === Infinity) throw new DeniedError(answer);
      lead = request.headroom ? 0 : 2 * trip * Math.min(++denials, 4);
      await sleep(Math.max(answer.retry_after - lead, 0), signal);
    }
  }

  #giveBack({ limit, key, cost }, { start_us }) {
    this.refund({ limit, key, cost, start_us }).catch(() => {}); // it stays charged
  }

  /** Returns the key in Redis. */
  #name(key, id) {
    if (typeof key !== "string" || !key.isWellFormed()) wrong("key", typeof key, "a well-formed text");
    let stored = key;
    if (this.#secret !== undefined) {
      if (!/^hash:[A-Za-z0-9_-]{21}[AQgw]$/.test(key)) {
        const sum = createHmac("sha256", this.#secret).update(key).digest();
        stored = "hash:" + sum.subarray(0, 16).toString("base64url");
      }
    } else if (key.length > 341 && Buffer.byteLength(key) > 1024) {
      stored = "sha256:" + createHash("sha256").update(key).digest("hex");
    }
    if (/[%}]/.test(stored)) stored = stored.replaceAll("%", "%25").replaceAll("}", "%7D");
    return `${this.#prefix}{${stored || "%"}}:${id}`;
  }

  /** Checks a request, and returns it as the scripts have it. */
  #ask({ limit: given, key, cost = 1, headroom = 0, max_wait = 0, force = false, start_us, at_us }) {
    const limit = given instanceof Limit ? given : Limit.parse(given);
    if (!Number.isInteger(cost)) wrong("cost", cost, "a whole number");
    if (!(Number.isInteger(headroom) && headroom >= 0) || (headroom && (force || cost < 0 || max_wait))) {
      wrong("headroom", headroom, "0, or a whole number without force, max_wait or refund");
    }
    if (!(max_wait >= 0) || (max_wait && force)) wrong("max_wait", max_wait, "0 or more seconds, 0 with force");
    for (const [field, time] of Object.entries({ start_us, at_us })) {
      if (time !== undefined && !(Number.isSafeInteger(time) && time > 0)) wrong(field, time, "a time in microseconds");
    }
    const forced = force && cost > 0;
    const wait = Math.min(Math.round(max_wait * 1e6), MAX_EXACT);
    const books = wait > 0 || headroom > 0 || start_us !== undefined;
    const what = (forced ? COSTS | FORCED : cost !== 1 ? COSTS : 0) |
      (at_us === undefined ? 0 : TIMED) | (books ? BOOKS : 0);
    const within = forced
      ? Math.min(cost, MAX_EXACT + 1)
      : Math.max(Math.min(cost, limit.capacity + 1), -MAX_EXACT);
    const last = cost < 0 ? (start_us ?? 0) : Math.min(headroom, limit.capacity);
    return { name: this.#name(key, limit.id), limit, what, cost: within, wait, last, at_us };
  }

  /** Decides requests together. */
  #decide(requests) {
    if (requests.length > TOGETHER) wrong("requests", requests.length, `at most ${TOGETHER} together`);
    const asks = requests.map((request) => this.#ask(request));
    const names = new Set(asks.map((ask) => ask.name));
    if (names.size < asks.length) wrong("limit", "twice for one key", "one request for each key and limit");
    if (this.#cluster && new Set(requests.map((r) => r.key)).size > 1) {
      wrong("key", "not that of the first request", "one key: this is a Cluster");
    }
    const together = asks.filter((ask) => ask.what < FORCED).length > 1;
    if (together) { // all are granted after the least wait, or none
      const waits = asks.filter((ask) => ask.what < FORCED && ask.cost > 0).map((ask) => ask.wait);
      const patience = waits.length ? Math.min(...waits) : 0;
      for (const ask of asks) ask.wait = patience;
    }
    return new Promise((resolve, reject) => this.#join({ asks, together, resolve, reject }));
  }

  /** Sends a call with all of this turn of the event loop. */
  #join(call) {
    if (this.#queue.push(call) > 1) return;
    if (this.#trips === 0) process.nextTick(() => this.#flush());
    else setImmediate(() => this.#flush());
  }

  #flush() {
    const calls = this.#queue;
    this.#queue = [];
    for (let from = 0, to = 0; to < calls.length; from = to) {
      let size = 0;
      do size += calls[to++].asks.length;
      while (!this.#cluster && to < calls.length && size + calls[to].asks.length <= BATCH);
      this.#trip(calls.slice(from, to));
    }
  }

  /** Has calls decided, and answers them. It never rejects. */
  async #trip(calls) {
    let reply, slow;
    this.#trips++;
    try {
      if (!this.#cluster && performance.now() >= this.#probeAt) {
        this.#probing ??= this.#probe().finally(() => { this.#probing = undefined; });
        await this.#probing;
      }
      ({ reply, slow } = await this.#run(calls));
    } catch (cause) {
      for (const { reject } of calls) {
        reject(new UnavailableError(`headgate: no decision: ${cause.message}`, { cause }));
      }
      return;
    } finally {
      this.#trips--;
    }
    const clock = slow ? read7(reply, reply.length - 7) : undefined;
    let at = 0;
    for (const { asks, resolve, reject } of calls) {
      try {
        resolve(asks.map((ask, i) => decision(ask, reply, at + 21 * i, clock)));
      } catch (error) {
        reject(error);
      }
      at += 21 * asks.length;
    }
  }

  /** Runs the script for calls. Only what proves that nothing was charged is sent again. */
  async #run(calls) {
    let slow = calls.some((c) => c.together || c.asks.some((ask) => ask.what & ~(COSTS | FORCED)));
    for (let pause = 1; ; ) {
      slow ||= this.#noTime;
      const now = Date.now() * 1000;
      const { script, keys, args } = pack(calls, slow, now);
      if (this.#noTime) args.push(String(now));
      const words = [String(keys.length), ...keys, ...args];
      try {
        let reply;
        try {
          reply = await this.#exchange(keys[0], ["evalsha", script.sha, ...words]);
        } catch (error) {
          if (!begins(error, "NOSCRIPT")) throw error;
          this.#probeAt = 0; // it may be another server than before
          reply = await this.#exchange(keys[0], ["eval", script.text, ...words]);
        }
        return { reply, slow };
      } catch (error) {
        if (begins(error, "NOTIME") && !this.#noTime) this.#noTime = true;
        else if (begins(error, "SLOWPATH") && !slow) slow = true;
        else if (begins(error, "TRYAGAIN") && pause < 256) {
          await sleep(pause / 1000);
          pause *= 2;
        } else throw error;
      }
    }
  }

  /** Sends a command once. */
  #exchange(key, words) {
    return new Promise((resolve, reject) => {
      const command = { late: performance.now() + 1000 * this.#timeout, reject };
      this.#pending.add(command);
      if (!this.#watched) this.#watch(command);
      const answered = (settle) => (answer) => {
        this.#pending.delete(command);
        settle(answer);
      };
      const send = () => {
        // what has failed by now would be charged later
        if (this.#pending.has(command)) this.#send(key, words).then(answered(resolve), answered(reject));
      };
      const { status, isOpen, isReady } = this.#client; // of ioredis, and of redis
      if (!CONNECTS.has(status) && !(isOpen && isReady === false)) send();
      else {
        this.#ready ??= new Promise((ready) => this.#client.once("ready", ready))
          .then(() => { this.#ready = undefined; });
        this.#ready.then(send);
      }
    });
  }

  /** Fails commands that are late. One timer for all of them costs less than one for each. */
  #watch(oldest) {
    this.#watched = true;
    setTimeout(() => {
      this.#watched = false;
      for (const command of this.#pending) {
        if (command.late > performance.now()) {
          this.#watch(command);
          return;
        }
        this.#pending.delete(command);
        command.reject(new Error(`no answer in ${this.#timeout} s`));
      }
    }, Math.ceil(oldest.late - performance.now())).unref();
  }

  /** Checks that one script reaches all keys: a proxy may send it to the server of the first. */
  async #probe() {
    const id = randomUUID();
    const names = Array.from({ length: PROBES }, (_, i) => `${this.#prefix}{${id}${i}}:@probe`);
    let seen;
    try {
      await Promise.all(names.map((n) => this.#exchange(n, ["set", n, "", "px", "10000"])));
      seen = (await this.#exchange(names[0], ["eval", lua("probe"), String(PROBES), ...names]))[0];
    } catch (error) {
      if (["BITS", "CROSSSLOT", "MOVED", "no answer"].some((text) => begins(error, text))) throw error;
    }
    if (seen !== undefined && Number(seen) !== PROBES) {
      throw new Error("keys are on several servers behind a proxy");
    }
    this.#probeAt = performance.now() + PROBE_INTERVAL;
  }
}

/** Returns the script, the keys and the arguments for calls. */
function pack(calls, slow, now) {
  const one = calls[0].asks[0];
  if (calls.length === 1 && calls[0].asks.length === 1 && !slow) {
    const arg = Buffer.allocUnsafe(29);
    one.limit.pack(now).copy(arg);
    arg[write7(arg, one.cost, 21)] = one.what & FORCED ? 1 : 0;
    return { script: scriptFor([one.limit.number], false, true), keys: [one.name], args: [arg] };
  }
  const keys = new Map();
  const limits = new Map(); // and of calendars, those of each time
  const rows = [];
  let size = 0;
  for (const { asks } of calls) size += 35 * asks.length;
  const requests = Buffer.allocUnsafe(size);
  let at = 0;
  for (const { asks, together } of calls) {
    asks.forEach((ask, i) => {
      const { limit, name } = ask;
      if (!keys.has(name)) keys.set(name, keys.size + 1);
      const id = limit.unit && ask.at_us !== undefined ? `${limit.text} ${ask.at_us}` : limit.text;
      if (!limits.has(id)) {
        limits.set(id, limits.size + 1);
        rows.push(Buffer.of(limit.number), limit.pack(ask.at_us ?? now));
      }
      requests[at] = ask.what | (together && i < asks.length - 1 ? JOINED : 0);
      requests.writeUIntLE(keys.get(name), at + 1, 3);
      requests.writeUIntLE(limits.get(id), at + 4, 3);
      at += 7;
      if (ask.what & COSTS) at = write7(requests, ask.cost, at);
      if (ask.what & TIMED) at = write7(requests, ask.at_us, at);
      if (ask.what & BOOKS) at = write7(requests, ask.last, write7(requests, ask.wait, at));
    });
  }
  const numbers = new Set(calls.flatMap(({ asks }) => asks.map((ask) => ask.limit.number)));
  const script = scriptFor([...numbers].sort(), slow, false);
  return { script, keys: [...keys.keys()], args: [Buffer.concat(rows), requests.subarray(0, at)] };
}

const refused = { "-3": "is not a string", "-4": "was not written: the server is at maxmemory" };

function decision(ask, text, at, clock) {
  const { limit, what, cost, wait, name } = ask;
  const retry = read7(text, at + 7);
  if (retry < -1) {
    const why = refused[retry] ?? "is not a state of this limit";
    throw new UnavailableError(`headgate: the value of "${name}" ${why}`);
  }
  const least = what & FORCED && retry ? -MAX_EXACT : 0;
  const most = what & FORCED && retry ? 0 : limit.capacity;
  const allowed = retry >= 0 && retry <= wait;
  const answer = {
    allowed,
    limit: limit.text,
    capacity: limit.capacity,
    remaining: Math.min(Math.max(read7(text, at), least), most),
    retry_after: allowed ? 0 : retry < 0 ? Infinity : retry / 1e6,
    reset_after: Math.max(read7(text, at + 14), 0) / 1e6,
    wait: allowed ? retry / 1e6 : 0,
  };
  if (allowed && clock !== undefined && what & BOOKS && cost > 0) answer.start_us = (ask.at_us ?? clock) + retry;
  return answer;
}
