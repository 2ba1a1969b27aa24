// Tests of the client of the server at HEADGATE_URL, with the rules of clients_test.go.

import assert from "node:assert/strict";
import { Agent, createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import test from "node:test";
import { inspect } from "node:util";

import {
  Client, DeniedError, headerFields, InvalidError, ipKey, UnavailableError,
} from "headgate";
import { FakeClient } from "headgate/fake";

const url = process.env.HEADGATE_URL;
const limits = new Client(url, { token: "secret", timeout: 10 });

/** Starts a server that answers as handle does, and returns its URL. */
async function serve(t, handle, address = { port: 0, host: "127.0.0.1" }) {
  const server = createServer(handle).listen(address);
  const connections = new Set();
  server.on("connection", (connection) => connections.add(connection));
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => {
    for (const connection of connections) connection.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { at: `http://127.0.0.1:${server.address().port}`, connections };
}

test("take", async () => {
  const request = { rule: "login", key: "node:take" };
  let answer = await limits.take({ ...request, cost: 5 });
  const { allowed, limit, remaining, retry_after } = answer;
  assert.deepEqual([allowed, limit, remaining, retry_after], [true, "5/h", 0, 0]);
  answer = await limits.take(request);
  assert.equal(answer.allowed, false);
  assert.ok(answer.retry_after > 600 && answer.retry_after <= 720);
  assert.equal((await limits.take({ ...request, cost: 6 })).retry_after, Infinity);
  assert.ok((await limits.take({ ...request, max_wait: 800 })).wait > 600);
});

test("peek, refund, force, reset", async () => {
  const request = { rule: "login", key: "node:/ü?%" };
  await limits.take({ ...request, cost: 3 });
  assert.equal((await limits.peek(request)).limits[0].remaining, 2);
  assert.equal((await limits.refund({ ...request, cost: 2 })).remaining, 4);
  const answer = await limits.take({ ...request, cost: 10, force: true });
  assert.deepEqual([answer.allowed, answer.remaining], [false, -6]);
  await limits.reset(request.rule, request.key);
  assert.equal((await limits.peek(request)).remaining, 5);
});

test("takeAll", async () => {
  const both = [{ rule: "login", key: "node:all", cost: 4 }, { rule: "tokens", key: "node:all" }];
  assert.deepEqual((await limits.takeAll(both)).results.map((r) => r.remaining), [1, 999]);
  const answer = await limits.takeAll(both);
  assert.deepEqual([answer.allowed, ...answer.results.map((r) => r.allowed)], [false, false, true]);
});

test("inline limit", async () => {
  assert.equal((await limits.take({ limit: "7/h", key: "node:inline" })).remaining, 6);
});

test("reservations", async () => {
  const request = { rule: "tokens", key: "node:reserve" };
  const left = async () => (await limits.peek(request)).remaining;
  const model = (used) => async (reservation) => {
    reservation.used = used;
    return { text: "answer" };
  };
  const answer = await limits.withReservation({ ...request, cost: 800 }, model(299.5));
  assert.deepEqual([answer, await left()], [{ text: "answer" }, 700]);
  const broken = (used) => limits.withReservation({ ...request, cost: 600 }, async (reservation) => {
    reservation.used = used;
    throw new RangeError("broken");
  });
  await assert.rejects(broken(), RangeError);
  assert.equal(await left(), 700);
  await assert.rejects(broken(50), RangeError);
  assert.equal(await left(), 650);
  for (const used of [undefined, null]) await limits.withReservation({ ...request, cost: 25 }, model(used));
  assert.equal(await left(), 600);
  for (const used of [{ tokens: 5 }, NaN, -1, "5", Infinity]) {
    const refused = { name: "InvalidError", field: "used" };
    await assert.rejects(limits.withReservation({ ...request, cost: 25 }, model(used)), refused);
  }
  assert.equal(await left(), 600);
  await assert.rejects(limits.withReservation({ ...request, cost: 700 }, assert.fail), (error) => {
    return error instanceof DeniedError && error.answer.retry_after > 0;
  });
  await assert.rejects(limits.withReservation({ ...request, cost: 1001 }, assert.fail), {
    name: "DeniedError", message: "headgate: denied; never granted", retry_after: Infinity,
  });
});

test("a commit that fails loses no result", async (t) => {
  const { at } = await serve(t, (request, response) => {
    if (request.url.endsWith("/commit")) response.statusCode = 503;
    response.end('{"allowed":true,"wait":0,"id":"r"}');
  });
  const work = (reservation) => {
    reservation.used = 3;
    return "done";
  };
  assert.equal(await new Client(at).withReservation({ rule: "tokens", key: "k" }, work), "done");
});

test("withReservation waits for the start", async () => {
  const request = { limit: "5/s", key: "node:ahead" };
  for (let tries = 0, wait = 0; wait === 0; tries++) { // a busy machine may be late, but not each time
    assert.ok(tries < 20);
    await limits.take({ ...request, cost: 5 });
    const began = performance.now();
    await limits.withReservation({ ...request, max_wait: 60 }, (reservation) => {
      wait = reservation.wait;
      assert.ok(performance.now() - began >= wait * 1000);
    });
  }
});

test("permits", async () => {
  const request = { rule: "exports", key: "node:permit", ttl: 30 };
  let id;
  const done = await limits.withPermit(request, async (permit) => {
    id = permit.id;
    assert.deepEqual([permit.permits, permit.in_use, permit.ttl], [2, 1, 30]);
    assert.equal(await limits.renew(id), true);
    await limits.withPermit(request, () => {
      return assert.rejects(limits.withPermit(request, assert.fail), DeniedError);
    });
    return "done";
  });
  assert.equal(done, "done");
  assert.equal(await limits.release(id), false);
  assert.equal((await limits.acquire(request)).in_use, 1);
});

test("a permit released later", async () => {
  const request = { rule: "exports", key: "node:later", ttl: 200, after: 100 };
  assert.equal(await limits.withPermit(request, () => "done"), "done");
  await assert.rejects(limits.withPermit(request, () => Promise.reject(new RangeError())), RangeError);
  await assert.rejects(limits.withPermit(request, assert.fail), (error) => {
    return error instanceof DeniedError && error.answer.retry_after <= 100;
  });
  const other = { rule: "exports", key: "node:other" };
  for (const after of ["1", -1, NaN, null]) {
    const refused = { name: "InvalidError", field: "after" };
    await assert.rejects(limits.withPermit({ ...other, after }, assert.fail), refused);
  }
  const { id } = await limits.acquire(other);
  assert.equal(await limits.release(id, 100), true);
  assert.equal(await limits.release(id), false);
  assert.equal((await limits.acquire(other)).in_use, 2);
});

test("errors of the server", async () => {
  await assert.rejects(limits.take({ rule: "login", key: "k", cost: 0 }), (error) => {
    return error instanceof InvalidError && error.http_status === 400 && error.field === "cost" &&
      error.message.includes("cost is 0; want");
  });
  await assert.rejects(limits.take({ rule: "login", key: "k", cost: NaN }), { field: "cost" });
  const other = new Client(url, { token: "other" });
  const refused = { name: "InvalidError", http_status: 401 };
  await assert.rejects(other.take({ rule: "login", key: "k" }), refused);
});

test("options are checked", async () => {
  const want = "want http://HOST:PORT or https://HOST:PORT";
  for (const bad of ["127.0.0.1:8080", "localhost:8080", "http://", "http://a b", "ftp://a"]) {
    assert.throws(() => new Client(bad), { name: "TypeError", message: `url is "${bad}"; ${want}` });
  }
  for (const bad of ["http://me:secret@a", "me:secret@a", "http://a/?secret", "http://a#secret"]) {
    const message = `url is one with a user, a query or a fragment; ${want}`;
    assert.throws(() => new Client(bad), { name: "TypeError", message });
  }
  for (const timeout of [-1, 0, NaN, Infinity, 1e9, "2", null]) {
    const message = `timeout is ${timeout}; want more than 0 seconds, at most 2147483`;
    assert.throws(() => new Client(url, { timeout }), { name: "TypeError", message });
  }
  for (let hundredths = 1; hundredths <= 1000; hundredths++) new Client(url, { timeout: hundredths / 100 });
  for (const timeout of [1 / 3 + 10, 2.01 + 10, 2147483]) {
    assert.ok(await new Client(url, { token: "secret", timeout }).take({ rule: "tokens", key: "node:time" }));
  }
  for (const connections of [0, 1.5, Infinity, "9"]) {
    assert.throws(() => new Client(url, { connections }), TypeError);
  }
  for (const token of ["sec\nret", "secret\n", " secret", "secrét"]) {
    assert.throws(() => new Client(url, { token }), (error) => {
      return error instanceof TypeError && !error.message.includes("sec");
    });
  }
});

test("a mistake of the program is no outage", async () => {
  for (const key of [undefined, null, 42, 42n, {}]) {
    const refused = { name: "InvalidError", field: "key" };
    await assert.rejects(limits.take({ rule: "tokens", key }), refused);
    await assert.rejects(limits.takeAll([{ rule: "tokens", key: "a" }, { rule: "tokens", key }]), refused);
    await assert.rejects(limits.withPermit({ rule: "exports", key }, assert.fail), refused);
    await assert.rejects(limits.reset("login", key), refused);
  }
  const circular = { rule: "tokens", key: "k" };
  circular.cost = circular;
  await assert.rejects(limits.take(circular), { name: "TypeError" });
  await assert.rejects(limits.take({ rule: "tokens", key: "k", cost: 1n }), { name: "TypeError" });
  await assert.rejects(limits.take(), { name: "TypeError" });
  assert.equal((await limits.acquire({ rule: "partner" })).allowed, true); // the key of all
  const misfit = new Client("https://127.0.0.1:1", { agent: new Agent() });
  await assert.rejects(misfit.take({ rule: "tokens", key: "k" }), { code: "ERR_INVALID_PROTOCOL" });
});

test("answers of never, and of other servers", async (t) => {
  let status, fields, body;
  const { at } = await serve(t, (_, response) => response.writeHead(status, fields).end(body));
  const get = (operation = "take", answer = {}) => {
    [status, fields, body] = [200, {}, JSON.stringify(answer)];
    return new Client(at)[operation]({ rule: "tokens", key: "k" });
  };
  const denial = { allowed: false, capacity: 0 };
  for (const never of [{}, { retry_after: null, reset_after: null }]) {
    const denied = { ...denial, ...never };
    const want = { ...denial, retry_after: Infinity, reset_after: Infinity };
    assert.deepEqual(await get("take", denied), want);
    assert.deepEqual((await get("peek", { ...denied, limits: [denied] })).limits, [want]);
    body = JSON.stringify({ allowed: false, results: [denied] });
    const { retry_after, results } = await new Client(at).takeAll([{ rule: "tokens", key: "k" }]);
    assert.deepEqual([retry_after, results], [Infinity, [want]]);
    assert.deepEqual(await get("acquire", { allowed: false, ...never, reset_after: 0 }),
      { allowed: false, retry_after: Infinity, reset_after: 0 });
    await assert.rejects(get("wait", denied), { name: "DeniedError", message: /never/ });
  }
  for (const [answer, error] of [
    [[200, {}, '{"ok":true}'], { may_be_charged: true }],
    [[200, {}, "[]"], {}],
    [[200, {}, "null"], {}],
    [[200, {}, ""], {}],
    [[200, {}, "<html>"], { message: "headgate: the answer is not that of headgate serve" }],
    [[204, {}, ""], {}],
    [[302, { location: "/elsewhere" }, ""], { message: "headgate: status 302" }],
    [[429, { "retry-after": "7" }, "slow down"], { retry_after: 7, may_be_charged: false }],
    [[408, {}, ""], { may_be_charged: true }],
    [[503, { "retry-after": "1" }, '{"detail":"closed"}'], { retry_after: 1, message: "headgate: closed" }],
    [[502, { "retry-after": "soon" }, ""], { may_be_charged: true }],
    [[404, {}, "not here"], { message: "headgate: status 404", may_be_charged: true }],
    [[403, {}, '{"detail":"blocked"}'], { message: "headgate: blocked" }], // by a gateway
  ]) {
    [status, fields, body] = answer;
    for (const send of [undefined, fetch]) {
      const client = new Client(at, { fetch: send });
      const want = { name: "UnavailableError", http_status: status, ...error };
      await assert.rejects(client.take({ rule: "tokens", key: "k" }), (got) => {
        assert.doesNotMatch(inspect(got), /undefined/);
        for (const name of Object.keys(want)) assert.equal(got[name], want[name]);
        assert.equal(got.status ?? got.statusCode, undefined); // express and fastify would send it
        return true;
      });
      if (status !== 204) await assert.rejects(client.reset("tokens", "k"), { http_status: status });
    }
  }
});

test("connections are bounded and kept; calls end by their time or their signal", async (t) => {
  let answers = true;
  const { at, connections } = await serve(t, (request, response) => {
    if (request.url !== "/base/v1/take") response.statusCode = 404;
    if (answers) response.end('{"allowed":true}');
  });
  const client = new Client(at + "/base/", { timeout: 60 });
  for (let i = 0; i < 20; i++) await client.take({});
  assert.equal(connections.size, 1);
  await Promise.all(Array.from({ length: 1000 }, () => client.take({})));
  assert.equal(connections.size, 10);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  await Promise.all(Array.from({ length: 20 }, () => new Client(at + "/base", { agent }).take({})));
  assert.equal(connections.size, 11);

  answers = false;
  const names = { name: "UnavailableError", message: "headgate: no answer: none in 50 ms" };
  for (const send of [undefined, fetch]) {
    const hasty = new Client(at, { timeout: 0.05, connections: 1, fetch: send });
    const calls = [hasty.take({}), hasty.take({})];
    await assert.rejects(calls[0], { ...names, may_be_charged: true });
    await assert.rejects(calls[1], { ...names, may_be_charged: Boolean(send) }); // it was in line
    const patient = new Client(at, { timeout: 60, fetch: send });
    for (const reason of [undefined, new RangeError("left")]) {
      const stop = new AbortController();
      const call = patient.take({ signal: stop.signal });
      const all = patient.takeAll([{}], { signal: stop.signal });
      setImmediate(() => stop.abort(reason));
      for (const ended of [call, all]) await assert.rejects(ended, reason ?? { name: "AbortError" });
      await assert.rejects(patient.take({ signal: stop.signal }), reason ?? { name: "AbortError" });
    }
  }
  const refused = { name: "UnavailableError", may_be_charged: false, message: /ECONNREFUSED/ };
  await assert.rejects(new Client("http://127.0.0.1:1").take({}), refused);
});

test("a connection that ends without an answer", async (t) => {
  const { at } = await serve(t, (request, response) => {
    if (request.url === "/v1/peek") response.write('{"allowed":');
    setImmediate(() => response.destroy());
  });
  const lost = { name: "UnavailableError", may_be_charged: true };
  await assert.rejects(new Client(at).take({}), lost);
  await assert.rejects(new Client(at).peek({}), lost);
});

test("a Unix socket", async (t) => {
  const path = `${tmpdir()}/headgate ${process.pid}.sock`;
  await serve(t, (request, response) => response.end(`{"allowed":${request.headers.host === "localhost"}}`), path);
  assert.equal((await new Client(`unix:${path}`).take({})).allowed, true);
});

test("calls that are aborted, and others", async () => {
  const outcomes = await Promise.allSettled(Array.from({ length: 600 }, async (_, i) => {
    const stop = new AbortController();
    const call = limits.take({ limit: `${i + 1}/h`, key: "node:mixed", signal: stop.signal });
    if (i % 2 === 0) {
      for (let turns = i % 40; turns > 0; turns--) await new Promise(setImmediate);
      stop.abort();
    }
    const { limit, remaining } = await call;
    assert.deepEqual([limit, remaining], [`${i + 1}/h`, i]);
  }));
  for (const [i, { status, reason }] of outcomes.entries()) {
    assert.ok(status === "fulfilled" || (i % 2 === 0 && reason.name === "AbortError"), inspect(reason));
  }
});

test("wait gives back what it was granted when it is aborted", async () => {
  const target = { rule: "tokens", key: "node:wait" };
  const request = { ...target, max_wait: 86400 };
  await limits.take({ ...target, cost: 1000 });
  const stop = new AbortController();
  const waiting = limits.wait({ ...request, cost: 50, signal: stop.signal });
  const ended = assert.rejects(waiting, { name: "AbortError" });
  const booked = async () => (await limits.peek(target)).retry_after > 300;
  try {
    while (!(await booked()));
  } finally {
    stop.abort();
  }
  await ended;
  assert.equal(await booked(), false);
  await assert.rejects(limits.wait({ ...request, signal: stop.signal }), { name: "AbortError" });
  assert.equal((await limits.wait({ limit: "5/s", key: "node:wait" })).wait, 0);
  await assert.rejects(limits.wait({ ...target, max_wait: 0 }), DeniedError);
});

test("wait waits however long it takes, unless max_wait says otherwise", async () => {
  for (const more of [{}, { max_wait: Infinity }]) {
    const request = { limit: "20/s burst 1", key: "node:patient", ...more };
    const waits = await Promise.all([limits.wait(request), limits.wait(request)]);
    assert.ok(waits.some(({ wait }) => wait > 0));
  }
  const request = { rule: "tokens", key: "node:impatient", cost: 1000 };
  await limits.take(request);
  for (const more of [{}, { max_wait: undefined }]) {
    await assert.rejects(limits.withReservation({ ...request, ...more }, assert.fail), DeniedError);
  }
});

test("acquire and reserve give back what they were granted when they are aborted", async () => {
  const permit = { rule: "exports", key: "node:aborted" };
  const tokens = { rule: "tokens", key: "node:aborted" };
  for (let i = 0; i < 20; i++) {
    const stop = new AbortController();
    const { signal } = stop;
    const calls = Promise.allSettled([
      limits.withPermit({ ...permit, signal }, () => "done"), limits.reserve({ ...tokens, signal }),
    ]);
    for (let turns = i % 4; turns >= 0; turns--) await new Promise(setImmediate);
    stop.abort();
    const [permitted, reserved] = await calls;
    assert.ok(permitted.value === "done" || permitted.reason.name === "AbortError", inspect(permitted));
    if (reserved.value) await limits.commit(reserved.value.id, 0);
  }
  assert.equal((await limits.peek(tokens)).remaining, 1000);
  assert.equal((await limits.acquire(permit)).in_use, 1);
});

test("an answer that arrived while the program was busy is used", async () => {
  const hasty = new Client(url, { token: "secret", timeout: 0.1, connections: 1 });
  for (let i = 0; i < 5; i++) {
    await limits.take({ rule: "tokens", key: "node:busy" });
    await hasty.take({ rule: "tokens", key: "node:busy" }).catch(() => {});
    const call = hasty.take({ rule: "tokens", key: "node:busy" });
    setImmediate(() => {
      for (const end = performance.now() + 300; performance.now() < end;);
    });
    assert.equal((await call).allowed, true);
  }
});

test("header fields", async () => {
  const request = { rule: "login", key: "node:fields" };
  assert.deepEqual(headerFields(await limits.take(request)),
    { "RateLimit-Policy": '"login";q=5', RateLimit: '"login";r=4' });
  const { "Retry-After": after, RateLimit: text } = headerFields(await limits.take({ ...request, cost: 5 }));
  assert.match(after, /^\d+$/);
  assert.equal(text, `"login";r=4;t=${after}`);
  assert.equal(headerFields(await limits.take({ ...request, cost: 6 }))["Retry-After"], undefined);
  const unlimited = await limits.take({ rule: "free", key: "node:fields" });
  assert.deepEqual([unlimited.capacity, unlimited.remaining], [Infinity, Infinity]);
  assert.deepEqual(headerFields(unlimited), {});
  const { id } = await limits.reserve({ rule: "free", key: "node:fields" });
  assert.equal((await limits.commit(id, 1)).remaining, Infinity);
});

test("keys of addresses", async () => {
  for (const [address, key] of Object.entries({
    "192.0.2.1": "ip:192.0.2.1",
    "::ffff:192.0.2.1": "ip:192.0.2.1",
    "::1": "ip:::/64",
    "fe80::1%eth0": "ip:fe80::/64",
    "2001:DB8::1": "ip:2001:db8::/64",
    "2001:db8:0:1:2:3:4:5": "ip:2001:db8:0:1::/64",
    "::2:3:4:5:6:7": "ip:0:0:2:3::/64",
    "1:2::7:8": "ip:1:2::/64",
    "1:2:3:4:5:6:7::": "ip:1:2:3:4::/64",
  })) {
    assert.equal(ipKey(address), key);
    assert.equal((await limits.take({ rule: "mail", key })).allowed, true); // no other spelling is
  }
});

test("the fake", async () => {
  const fake = new FakeClient(({ rule }) => {
    if (rule === "down") throw new Error("down");
    return rule === "login" ? { allowed: false, retry_after: 30 } : {};
  });
  assert.equal((await fake.take({ rule: "tokens", key: "k" })).allowed, true);
  assert.equal((await fake.take({ rule: "login", key: "k" })).retry_after, 30);
  assert.deepEqual((await fake.peek({ rule: "tokens", key: "k" })).limits, []);
  const both = await fake.takeAll([{ rule: "tokens", key: "k" }, { rule: "login", key: "k" }]);
  assert.deepEqual([both.allowed, both.retry_after], [false, 30]);
  await assert.rejects(fake.take({ rule: "down", key: "k" }), UnavailableError);
  await assert.rejects(fake.withPermit({ rule: "login", key: "k" }, assert.fail), DeniedError);
  assert.equal(await fake.withPermit({ rule: "exports", key: "k" }, () => "done"), "done");
  assert.equal(await fake.withReservation({ rule: "tokens", key: "k" }, () => "done"), "done");
  await fake.reset("login", "a/b");
  const operations = "take take peek take-all take-all take acquire acquire release reserve reset".split(" ");
  assert.deepEqual(fake.requests.map((request) => request.operation), operations);
  assert.deepEqual(fake.requests.at(-1), { operation: "reset", rule: "login", key: "a/b" });
});

test("CommonJS has the same classes, whose names minifiers keep", () => {
  const all = createRequire(import.meta.url)("headgate");
  assert.equal(all.Client, Client);
  for (const name of ["HeadgateError", "InvalidError", "UnavailableError", "DeniedError"]) {
    assert.equal(Object.getOwnPropertyDescriptor(all[name].prototype, "name").value, name);
  }
});
