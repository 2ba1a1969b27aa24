// Measures headgate/redis beside rate-limiter-flexible and rate-limit-redis on one Redis, in
// alternating rounds. The packages are those of clients/node, which scripts/deps clients installs.
//
// usage: node bench/clients/bench.mjs [SECONDS of a round] [ROUNDS]

import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";

import { Store } from "../../clients/node/redis.mjs";

const require = createRequire(new URL("../../clients/node/", import.meta.url));
const Redis = require("ioredis");
const { createClient } = require("redis");
const { RateLimiterRedis } = require("rate-limiter-flexible");
const { RedisStore } = require("rate-limit-redis");

const seconds = Number(process.argv[2] ?? 2);
const rounds = Number(process.argv[3] ?? 5);
const keys = Array.from({ length: 10_000 }, (_, n) => `user:${n}`);
const count = 1000, period = 10; // of each key: all is granted

const free = createServer().listen(0, "127.0.0.1");
await new Promise((resolve) => free.once("listening", resolve));
const { port } = free.address();
free.close();
const server = spawn(process.env.HEADGATE_REDIS_SERVER ?? "redis-server",
  ["--port", port, "--save", "", "--dir", mkdtempSync(`${tmpdir()}/bench`)], { stdio: "ignore" });
const client = () => new Redis({ port, autoResendUnfulfilledCommands: false, retryStrategy: () => 20 });
const admin = client().on("error", () => {});
await admin.ping();

async function redisCPU() {
  const cpu = await admin.info("cpu");
  return ["user", "sys"].reduce((sum, part) => sum + Number(RegExp(`used_cpu_${part}:(.+)`).exec(cpu)[1]), 0);
}

const store = new Store(client(), { timeout: 60 });
const other = new Store(await createClient({ socket: { port } }).connect(), { timeout: 60 });
const flexible = new RateLimiterRedis({ storeClient: client(), points: count, duration: period });
const sending = client();
const limited = new RedisStore({ sendCommand: (...args) => sending.call(...args) });
await limited.init({ windowMs: period * 1000 });
const bucket = `${count}/${period}s`;
const limiters = {
  headgate: async (key) => (await store.take({ limit: bucket, key })).allowed,
  "headgate, redis": async (key) => (await other.take({ limit: bucket, key })).allowed,
  "headgate fixed": async (key) => (await store.take({ limit: `${bucket} fixed-window`, key })).allowed,
  "rate-limiter-flexible": async (key) => (await flexible.consume(key)).remainingPoints >= 0,
  "rate-limit-redis": async (key) => (await limited.increment(key)).totalHits <= count,
};

async function measure(limiter, callers) {
  let n = 0, denied = 0;
  const before = await redisCPU();
  const own = process.cpuUsage();
  const began = performance.now();
  const ends = began + 1000 * seconds;
  await Promise.all(Array.from({ length: callers }, async () => {
    while (performance.now() < ends) {
      if (!(await limiter(keys[Math.floor(Math.random() * keys.length)]))) denied++;
      n++;
    }
  }));
  const elapsed = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(own);
  if (denied > 0) throw new Error(`${denied} of ${n} were denied: what is measured is not what is meant`);
  const cell = [n / elapsed, ((await redisCPU()) - before) / n * 1e6, (user + system) / n];
  await admin.flushdb();
  return cell;
}

for (const limiter of Object.values(limiters)) await measure(limiter, 16); // warm up

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
console.log("| callers | limiter | k/s | Redis us | client us | headgate / it: k/s (min-max) | Redis CPU |");
console.log("|---|---|---|---|---|---|---|");
for (const callers of [1, 16, 64]) {
  const found = Object.fromEntries(Object.keys(limiters).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, limiter] of Object.entries(limiters)) found[name].push(await measure(limiter, callers));
  }
  for (const [name, cells] of Object.entries(found)) {
    const [rate, redis, own] = [0, 1, 2].map((i) => median(cells.map((cell) => cell[i])));
    const ratio = (i) => cells.map((cell, r) => found.headgate[r][i] / cell[i]);
    const pace = ratio(0);
    console.log(`| ${callers} | ${name} | ${(rate / 1000).toFixed(2)} | ${redis.toFixed(2)} | ${own.toFixed(1)} | ` +
      `${median(pace).toFixed(2)} (${Math.min(...pace).toFixed(2)}-${Math.max(...pace).toFixed(2)}) | ` +
      `${median(ratio(1)).toFixed(2)} |`);
  }
}
console.log(JSON.stringify({ node: process.version, redis: /redis_version:(.+)\r/.exec(await admin.info("server"))[1] }));
server.kill();
process.exit(0);
