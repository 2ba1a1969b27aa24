// Compiled by tsc --strict, and not run: what a program writes has these types.

import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, createSentinel } from "redis";

import { Limit, Store, type Answer } from "./redis.mjs";

export async function uses(): Promise<number> {
  const stores = [
    new Store(new Redis({ autoResendUnfulfilledCommands: false })),
    new Store(new Cluster([{ port: 7000 }], { retryDelayOnFailover: 0 })),
    new Store(await createClient().connect(), { prefix: "a:", keySecret: new Uint8Array(16) }),
    new Store(createCluster({ rootNodes: [] })),
    new Store(createSentinel({ name: "main", sentinelRootNodes: [] })),
  ];
  const limit = Limit.of({ count: 9, period: "month", zone: "UTC", anchor: 17 });
  const answer: Answer = await stores[0]!.take({ limit, key: "k", cost: 2, headroom: 1 });
  const both = await stores[1]!.takeAll([{ limit: "5/m", key: "k" }]);
  await stores[2]!.wait({ limit, key: "k", signal: AbortSignal.timeout(10), timeout: 1 });
  await stores[2]!.reset({ limit, key: "k" });
  // @ts-expect-error a request needs a key
  await stores[3]!.take({ limit });
  // @ts-expect-error a misspelled field
  await stores[3]!.take({ limit, key: "k", maxWait: 1 });
  // @ts-expect-error no client
  new Store("redis://127.0.0.1");
  return answer.retry_after + both.results.length;
}
