// Tests of headgate.mjs against the server at HEADGATE_URL, with the rules of clients_test.go.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import { Client, DeniedError, InvalidError, UnavailableError } from "./headgate.mjs";

const url = process.env.HEADGATE_URL;
const limits = new Client(url, { token: "secret", timeout: 10 });

test("take", async () => {
  const request = { rule: "login", key: "node:take" };
  let answer = await limits.take({ ...request, cost: 5 });
  const { allowed, limit, remaining, retry_after } = answer;
  assert.deepEqual([allowed, limit, remaining, retry_after], [true, "5/h", 0, 0]);
  answer = await limits.take(request);
  assert.equal(answer.allowed, false);
  assert.ok(answer.retry_after > 600 && answer.retry_after <= 720);
  assert.equal((await limits.take({ ...request, cost: 6 })).retry_after, null);
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
  assert.equal(await limits.withReservation({ ...request, cost: 800 }, () => 300), 300);
  const broken = limits.withReservation({ ...request, cost: 600 }, async () => {
    throw new RangeError("broken");
  });
  await assert.rejects(broken, RangeError);
  assert.equal((await limits.peek(request)).remaining, 700);
  await limits.withReservation({ ...request, cost: 100 }, () => {});
  assert.equal((await limits.peek(request)).remaining, 600);
  await assert.rejects(limits.withReservation({ ...request, cost: 700 }, assert.fail), (error) => {
    return error instanceof DeniedError && error.answer.retry_after > 0;
  });
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
  const { id } = await limits.acquire(other);
  assert.equal(await limits.release(id, 100), true);
  assert.equal(await limits.release(id), false);
  assert.equal((await limits.acquire(other)).in_use, 2);
});

test("errors", async () => {
  await assert.rejects(limits.take({ rule: "login", key: "k", cost: 0 }), (error) => {
    return error instanceof InvalidError && error.status === 400 && error.field === "cost" &&
      error.message.includes("cost is 0; want");
  });
  const other = new Client(url, { token: "other" });
  const refused = { name: "InvalidError", status: 401 };
  await assert.rejects(other.take({ rule: "login", key: "k" }), refused);
  for (const bad of ["127.0.0.1:8080", "localhost:8080", "http://", "http://a b", "ftp://a"]) {
    const message = `url is "${bad}"; want http://HOST:PORT or https://HOST:PORT`;
    assert.throws(() => new Client(bad), { name: "TypeError", message });
  }
  for (const timeout of [-1, 0, NaN]) {
    const message = `timeout is ${timeout}; want more than 0 seconds`;
    assert.throws(() => new Client(url, { timeout }), { name: "TypeError", message });
  }
});

test("connections are kept, and a server that does not answer is unavailable", async (t) => {
  let connections = 0;
  let answers = true;
  const server = createServer((_, response) => answers && response.end('{"allowed":true}'));
  server.on("connection", (connection) => {
    connections++;
    t.after(() => connection.destroy());
  });
  t.after(() => server.close());
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const at = `http://127.0.0.1:${server.address().port}`;
  const client = new Client(at, { timeout: 10 });
  for (let i = 0; i < 20; i++) assert.ok((await client.take({})).allowed);
  assert.ok(connections <= 2, `${connections} connections`);
  answers = false;
  const hasty = new Client(at, { timeout: 0.05 });
  await assert.rejects(hasty.take({}), UnavailableError);
  await assert.rejects(new Client("http://127.0.0.1:1").take({}), UnavailableError);
});
