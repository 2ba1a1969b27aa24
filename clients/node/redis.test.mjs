// Tests of redis.mjs against the servers of e2e/clients, which sets the environment.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { getEventListeners } from "node:events";
import { connect, createServer } from "node:net";
import { after, describe, test } from "node:test";

import Redis, { Cluster } from "ioredis";
import { createClient, createCluster, createSentinel } from "redis";

import { DeniedError, InvalidError, Limit, Store, UnavailableError } from "./redis.mjs";
import { read7 } from "./limit.mjs";

const testdata = new URL("../../limittest/testdata/", import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, testdata)));
const EPOCH = 4_102_444_800e6; // of the vectors, in microseconds

const address = (name) => {
  if (typeof name === "object") return name;
  const [host, port] = process.env[`HEADGATE_${name}`].split(":");
  return { host, port: Number(port) };
};
const quiet = (client) => client.on("error", () => {});
const micros = (seconds) => (seconds === Infinity ? null : Math.round(seconds * 1e6));

// How each client connects: to one server, with more options, to a Cluster and by a Sentinel.
const clients = {
  ioredis: {
    server: async (name, { username, password } = {}) => quiet(new Redis({
      ...address(name), username, password, autoResendUnfulfilledCommands: false,
    })),
    cluster: async () => quiet(new Cluster([address("CLUSTER")], {
      retryDelayOnFailover: 0, redisOptions: { autoResendUnfulfilledCommands: false },
    })),
    sentinel: async () => quiet(new Redis({
      sentinels: [address("SENTINEL")], name: process.env.HEADGATE_SENTINEL_NAME,
      autoResendUnfulfilledCommands: false,
    })),
    close: (client) => client.disconnect(),
    command: (client, ...words) => client.call(...words),
  },
  redis: {
    server: (name, { username, password } = {}) =>
      quiet(createClient({ socket: address(name), username, password })).connect(),
    cluster: () => quiet(createCluster({ rootNodes: [{ socket: address("CLUSTER") }] })).connect(),
    sentinel: () => quiet(createSentinel({
      name: process.env.HEADGATE_SENTINEL_NAME, sentinelRootNodes: [address("SENTINEL")],
    })).connect(),
    close: (client) => client.destroy(),
    command: (client, ...words) => client.sendCommand(words),
  },
};

test("limits and their numbers", () => {
  const { limits } = read("limits.json");
  for (const want of limits) {
    if (want.refused) {
      assert.throws(() => Limit.parse(want.text), InvalidError, want.text);
      continue;
    }
    const limit = Limit.parse(want.text);
    const packed = limit.pack(want.at_us ?? 0);
    assert.deepEqual(
      [limit.text, limit.id, limit.number, ...[0, 7, 14].map((at) => read7(packed, at))],
      [want.limit, want.id, want.algorithm, want.capacity, want.a, want.b],
      want.text,
    );
  }
});

test("limits of parts", () => {
  for (const [parts, text] of [
    [{ count: 100, period: 60, burst: 20, name: "api" }, "api=100/m burst 20"],
    [{ count: 5, period: 900, algorithm: "sliding-log" }, "5/15m sliding-log"],
    [{ count: 9, period: "month", zone: "Europe/Zurich", anchor: 17, name: "q" },
      "q=9/month tz Europe/Zurich anchor 17"],
    [{ count: 9, period: "day", zone: "UTC" }, "9/day tz UTC"],
  ]) assert.equal(String(Limit.of(parts)), text);
  assert.throws(() => Limit.of({ count: 1, period: 60, burst: 0 }), /want a whole number of at least 1/);
});

test("a client that repeats commands or changes keys is refused", () => {
  for (const client of [
    new Redis({ lazyConnect: true }),
    new Cluster([{ port: 1 }], { lazyConnect: true, redisOptions: { autoResendUnfulfilledCommands: false } }),
    new Redis({ lazyConnect: true, autoResendUnfulfilledCommands: false, keyPrefix: "app:" }),
    {}, undefined,
  ]) {
    assert.throws(() => new Store(client), InvalidError);
  }
});

for (const [name, kind] of Object.entries(clients)) {
  describe(name, async () => {
    const client = await kind.server("REDIS");
    const open = [client];
    const opened = async (connecting) => {
      open.push(await connecting);
      return open.at(-1);
    };
    after(() => open.forEach(kind.close));
    const store = new Store(client);
    const key = (t) => `${name} ${t.name}`;

    test("vectors", async () => {
      const vectors = read("vectors.json");
      assert.ok(vectors.length > 200);
      for (const v of vectors) {
        const target = { limit: v.limit, key: `${name} ${v.key}` };
        if (v.reset) {
          await store.reset(target);
          continue;
        }
        const { cost, headroom, force, cancels_start_us: start } = v;
        const got = await store.take({
          ...target, cost, headroom, force, max_wait: (v.max_wait_us ?? 0) / 1e6,
          at_us: EPOCH + v.at_us, start_us: start === undefined ? undefined : EPOCH + start,
        });
        assert.deepEqual({
          allowed: got.allowed,
          remaining: got.remaining,
          retry_after_us: micros(got.wait || got.retry_after),
          reset_after_us: micros(got.reset_after),
        }, v.answer, `line ${v.line}`);
      }
    });

    test("keys", async () => {
      for (const want of read("limits.json").keys) {
        const bytes = Buffer.from(want.key_base64, "base64");
        if (!Buffer.from(bytes.toString()).equals(bytes)) continue; // no text
        const it = new Store(client, { keySecret: want.secret });
        await it.take({ limit: "1/s", key: bytes.toString(), cost: 1, force: true });
        const redisKey = Buffer.from(want.redis_key_base64, "base64").toString();
        assert.equal(await kind.command(client, "EXISTS", redisKey), 1, redisKey);
      }
      await assert.rejects(store.peek({ limit: "1/s", key: "\ud800" }), InvalidError);
    });

    test("all or none", async (t) => {
      const both = [
        { limit: "3/h", key: key(t), cost: 2 }, { limit: "5/h sliding-log", key: key(t) + "b" },
      ];
      assert.equal((await store.takeAll(both)).allowed, true);
      const denied = await store.takeAll(both);
      assert.deepEqual([denied.allowed, ...denied.results.map((r) => r.allowed)], [false, false, true]);
      assert.equal((await store.peek(both[1])).remaining, 4);
      await assert.rejects(store.takeAll([both[0], both[0]]), /twice for one key/);
      assert.equal((await store.takeAll([])).allowed, true);
    });

    test("who decides a group", async (t) => {
      const [full, free] = [{ limit: "1/h", key: key(t) + "full" }, { limit: "9/h", key: key(t) }];
      await store.take(full);
      for (const [left, other] of [
        [undefined, full],
        [undefined, { ...full, max_wait: 7200 }], // for which the other one would not wait
        [8, { ...full, cost: 0 }],
        [7, { ...full, force: true }],
      ]) {
        assert.equal((await store.takeAll([free, other])).allowed, left !== undefined, other);
        assert.equal((await store.peek(free)).remaining, left ?? 9);
      }
    });

    test("peek, refund, headroom, force, reset", async (t) => {
      const target = { limit: "4/h", key: key(t) };
      assert.equal((await store.take({ ...target, headroom: 4 })).allowed, false);
      assert.equal((await store.take({ ...target, headroom: 3 })).remaining, 3);
      assert.equal((await store.take({ ...target, cost: 9, force: true })).remaining, -6);
      assert.equal((await store.peek(target)).allowed, false);
      assert.equal((await store.refund({ ...target, cost: 8 })).remaining, 2);
      assert.equal((await store.take({ ...target, cost: 5 })).retry_after, Infinity);
      await store.reset(target);
      assert.equal((await store.peek(target)).remaining, 4);
    });

    test("bad input", async (t) => {
      const target = { limit: "5/s", key: key(t) };
      for (const request of [
        { cost: 1.5 }, { headroom: -1 }, { max_wait: NaN }, { max_wait: 1, force: true },
        { headroom: 1, max_wait: 1 }, { key: undefined }, { key: 42 }, { limit: undefined },
        { cost: -1, start_us: "1" }, { cost: -1, start_us: -1 }, { at_us: 0.5 },
        { limit: "1/constructor tz UTC" },
      ]) await assert.rejects(store.take({ ...target, ...request }), InvalidError);
      await assert.rejects(async () => store.refund({ ...target, cost: 0 }), InvalidError);
      await assert.rejects(store.wait({ ...target, cost: 0 }), InvalidError);
      await assert.rejects(store.wait({ ...target, timeout: -1 }), InvalidError);
      for (const options of [{ prefix: "a{b" }, { keySecret: "short" }, { timeout: 0 }, { timeout: Infinity }]) {
        assert.throws(() => new Store(client, options), InvalidError);
      }
      assert.equal((await new Store(client, { timeout: 2.0099999 }).take(target)).allowed, true);
    });

    test("the slow path", async (t) => {
      const target = { limit: "2/h", key: key(t) };
      await store.take({ ...target, cost: 2 });
      const ahead = await store.take({ ...target, max_wait: 7200 });
      assert.ok(ahead.allowed && ahead.start_us && ahead.wait > 1700 && ahead.wait <= 1800);
      assert.equal((await store.take(target)).allowed, false); // plain, on a state that was booked
      assert.equal((await store.refund({ ...target, start_us: ahead.start_us })).allowed, true);
      await store.take({ limit: "n=100/s", key: key(t), cost: 100 });
      assert.ok((await store.take({ limit: "n=1/h burst 2", key: key(t) })).remaining < 2); // prolonged
    });

    test("SCRIPT FLUSH", async (t) => {
      const target = { limit: "9/h", key: key(t) };
      for (let i = 0; i < 3; i++) {
        await kind.command(client, "SCRIPT", "FLUSH");
        assert.equal((await store.take(target)).allowed, true);
      }
      assert.equal((await store.peek(target)).remaining, 6);
    });

    test("values that are no states fail alone", async (t) => {
      await kind.command(client, "SET", `hg:{${key(t)}}:9/h`, "no state");
      await kind.command(client, "RPUSH", `hg:{${key(t)}b}:9/h`, "list");
      const take = (suffix) => store.take({ limit: "9/h", key: key(t) + suffix });
      const [bad, list, good] = await Promise.allSettled([take(""), take("b"), take("c")]);
      assert.match(bad.reason.message, /is not a state/);
      assert.match(list.reason.message, /is not a string/);
      assert.equal(good.value.remaining, 8);
      await assert.rejects(take(""), UnavailableError);
    });

    test("a server that refuses TIME", async (t) => {
      const user = await opened(kind.server("REDIS", { username: "notime", password: "secret" }));
      const it = new Store(user);
      const target = { limit: "9/h", key: key(t) };
      for (const left of [8, 7]) assert.equal((await it.take(target)).remaining, left);
      const { retry_after } = await it.take({ ...target, cost: 9 });
      assert.ok(retry_after > 700 && retry_after <= 800, String(retry_after));
    });

    test("a lost answer is not repeated", async () => {
      const target = { limit: `${name}=9/h`, key: "lost" };
      const it = new Store(await opened(kind.server("LOSSY")));
      await it.take({ ...target, key: "other" }); // the scripts and the probe are through
      await assert.rejects(it.take(target), UnavailableError);
      assert.equal((await store.peek(target)).remaining, 8);
    });

    test("servers behind a proxy that routes by key", async (t) => {
      const it = new Store(await opened(kind.server("ROUTER")));
      await assert.rejects(it.take({ limit: "9/h", key: key(t) }), /several servers behind a proxy/);
    });

    test("a server that does not answer", async (t) => {
      const it = new Store(await opened(kind.server("REDIS")), { timeout: 0.5 });
      const target = { limit: "9/h", key: key(t) };
      while (!await it.take(target).catch(() => false));
      await kind.command(client, "CLIENT", "PAUSE", "60000", "WRITE");
      const calls = await Promise.allSettled([it.take(target), it.take(target)]);
      for (const { reason } of calls) assert.match(reason.message, /no answer in 0.5 s/);
      await kind.command(client, "CLIENT", "UNPAUSE");
      while (!await it.take(target).catch(() => false));
    });

    test("calls of one turn share a trip", async (t) => {
      const calls = async () => {
        const stats = await kind.command(client, "INFO", "commandstats");
        return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)[1]);
      };
      await store.take({ limit: "1000/h", key: key(t) });
      const before = await calls();
      const all = Array.from({ length: 1600 }, () => store.take({ limit: "1000/h", key: key(t) }));
      const granted = (await Promise.all(all)).filter((answer) => answer.allowed).length;
      assert.deepEqual([granted, (await calls()) - before <= 8], [999, true]);
    });

    test("large calls together", async (t) => {
      const all = [3000, 3000, 1, 3000].map((size, n) => store.takeAll(
        Array.from({ length: size }, (_, i) => ({ limit: "9/h", key: `${key(t)} ${n} ${i}` }))));
      assert.ok((await Promise.all(all)).every(({ allowed }) => allowed));
    });

    test("what failed during an outage is not charged after it", async (t) => {
      const target = { limit: "9/h", key: key(t) };
      await store.take(target);
      const connections = new Set();
      const proxy = createServer((from) => {
        const to = connect(address("REDIS"));
        connections.add(from.on("error", () => {}).on("close", () => to.destroy()));
        to.on("error", () => {}).pipe(from).pipe(to);
      });
      const listen = (port) => new Promise((done) => proxy.listen(port, "127.0.0.1", done));
      await listen(0);
      const { port } = proxy.address();
      const it = new Store(await opened(kind.server({ host: "127.0.0.1", port })), { timeout: 1 });
      await it.take(target);
      await new Promise((done) => {
        proxy.close(done);
        connections.forEach((connection) => connection.destroy());
      });
      const calls = await Promise.allSettled([it.take(target), it.take(target)]);
      assert.deepEqual(calls.map(({ status }) => status), ["rejected", "rejected"]);
      await listen(port);
      while ((await it.peek(target).catch(() => ({ remaining: 0 }))).remaining === 0);
      assert.equal((await it.take(target)).remaining, 6);
      proxy.close();
    });

    test("wait", async (t) => {
      const target = { limit: "20/s burst 1", key: key(t) };
      const order = [];
      const leave = new AbortController();
      const began = performance.now();
      const waits = Array.from({ length: 9 }, async (_, n) => {
        const signal = n === 2 || n === 5 ? leave.signal : undefined;
        await store.wait({ ...target, signal });
        order.push(n);
        if (n === 0) leave.abort(new Error("left"));
      });
      const ends = await Promise.allSettled(waits);
      assert.deepEqual(order, [0, 1, 3, 4, 6, 7, 8]);
      assert.equal(ends[2].reason.message, "left");
      assert.ok(performance.now() - began >= 6 * 50 - 1);
      const hour = { limit: "1/h", key: key(t), timeout: 0.2 };
      await store.wait(hour);
      await assert.rejects(store.wait(hour), (error) =>
        error instanceof DeniedError && error.answer.retry_after > 3000);
      const waiting = new AbortController();
      const first = store.wait({ limit: "1/h", key: key(t), signal: waiting.signal });
      await assert.rejects(store.wait(hour), DeniedError); // its turn does not come
      waiting.abort();
      await assert.rejects(first, { name: "AbortError" });
      const { signal } = new AbortController();
      await Promise.all([1, 2, 3].map(() => store.wait({ ...target, signal })));
      assert.equal(getEventListeners(signal, "abort").length, 0);
    });

    test("Cluster", async (t) => {
      const it = new Store(await opened(kind.cluster()));
      const keys = Array.from({ length: 30 }, (_, n) => `${key(t)} ${n}`);
      for (const want of [true, false]) {
        const all = keys.map((k) => it.takeAll([{ limit: "9/h", key: k }, { limit: "1/h", key: k }]));
        for (const { allowed } of await Promise.all(all)) assert.equal(allowed, want);
      }
      await assert.rejects(it.takeAll([{ limit: "9/h", key: "a" }, { limit: "9/h", key: "b" }]), /one key/);
      await it.reset({ limit: "1/h", key: keys[0] });
      assert.equal((await it.take({ limit: "1/h", key: keys[0] })).allowed, true);
    });

    test("Sentinel", async (t) => {
      const it = new Store(await opened(kind.sentinel()));
      const target = { limit: "9/h", key: key(t) };
      for (const left of [8, 7]) assert.equal((await it.take(target)).remaining, left); // and probes
      const finder = await clients.ioredis.sentinel();
      const port = Number(/tcp_port:(\d+)/.exec(await finder.info("server"))[1]);
      finder.disconnect();
      const master = await opened(kind.server({ host: "127.0.0.1", port }));
      await kind.command(master, "CLIENT", "PAUSE", "60000", "WRITE");
      const lost = it.take(target);
      lost.catch(() => {});
      while (!/blocked_clients:[1-9]/.test(await kind.command(master, "INFO", "clients")));
      await kind.command(master, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await assert.rejects(lost, UnavailableError);
      await kind.command(master, "CLIENT", "UNPAUSE");
      assert.equal((await new Store(master).peek(target)).remaining, 7); // not sent again
    });
  });
}
