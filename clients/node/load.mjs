// Sends CALLS takes at once to the server at HEADGATE_URL, ROUNDS times, and prints what failed.
// usage: node load.mjs CALLS ROUNDS

import { Client } from "headgate";

const [calls, rounds] = process.argv.slice(2).map(Number);
const limits = new Client(process.env.HEADGATE_URL, { token: "secret", timeout: 60 });
const failed = new Map();
for (let round = 0; round < rounds; round++) {
  const key = `load:${process.pid}:${round}`;
  const all = Array.from({ length: calls }, () => limits.take({ limit: `${calls}/h`, key }));
  for (const { value, reason } of await Promise.allSettled(all)) {
    const why = value?.allowed ? undefined : reason?.message ?? "denied";
    if (why) failed.set(why, (failed.get(why) ?? 0) + 1);
  }
}
console.log(failed);
