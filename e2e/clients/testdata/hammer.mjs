// A process of the hammer in Node, with redis or ioredis. See hammer_test.go.

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [, , name, packages] = process.argv;
const require = createRequire(pathToFileURL(packages + "/"));
const { Store } = await import(pathToFileURL(packages + "/redis.mjs"));
const { HEADGATE_REDIS: address, HAMMER_GROUPS, HAMMER_CALLERS, HAMMER_DENIALS } = process.env;
const [host, port] = address.split(":");
const groups = JSON.parse(HAMMER_GROUPS);

const client = name === "ioredis"
  ? new (require("ioredis"))({ host, port, autoResendUnfulfilledCommands: false })
  : await require("redis").createClient({ socket: { host, port: Number(port) } }).connect();
const store = new Store(client, { timeout: 30 });

async function caller() {
  const denials = groups.map(() => 0);
  while (Math.min(...denials) < HAMMER_DENIALS) {
    for (const [i, group] of groups.entries()) {
      const requests = group.map(([limit, key, cost]) => ({ limit, key, cost }));
      if ((await store.takeAll(requests)).allowed) writeSync(1, `${i}\n`);
      else denials[i]++;
    }
  }
}

console.log("ready");
createInterface({ input: process.stdin }).once("line", async () => {
  await Promise.all(Array.from({ length: Number(HAMMER_CALLERS) }, caller));
  console.log("done");
  process.exit(0);
});
