// Compiled by tsc --strict, and not run: what a program writes has these types.

import { Agent } from "node:http";

import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, createSentinel } from "redis";

import { Client, DeniedError, headerFields, UnavailableError, type TakeRequest } from "headgate";
import { FakeClient } from "headgate/fake";
import { Limit, Store, type Answer } from "headgate/redis";

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

export async function asks(signal: AbortSignal, user?: { id: string }): Promise<string> {
  const limits: Client = new Client("http://127.0.0.1:8080", { timeout: 1, agent: new Agent() });
  const request: TakeRequest = { rule: "login", key: "k", cost: 2, headroom: 1, signal };
  const answer = await limits.take(request);
  const fields: Record<string, string> = headerFields(answer);
  const { results } = await limits.takeAll([{ rule: "a", key: "k" }, { limit: "5/m", key: "k" }], { signal });
  const text: string = await limits.withReservation({ rule: "a", key: "k", max_wait: 5 }, async (reservation) => {
    reservation.used = 3;
    return reservation.id;
  });
  const { id } = await limits.wait({ rule: "a", key: "k", max_wait: 5, signal });
  const { refunded } = await limits.commit(id, 0);
  const size: number = await limits.withPermit({ rule: "a", key: "k", after: 1 }, (permit) => permit.in_use);
  const fake: Client = new FakeClient(({ rule }) => ({ allowed: rule !== "a", retry_after: 30 }));
  await fake.reset("a", "k");
  // @ts-expect-error a misspelled field
  await limits.take({ ruel: "login", key: "k" });
  // @ts-expect-error a rule or a limit
  await limits.take({ key: "k" });
  // @ts-expect-error an id is a text
  await limits.take({ rule: "a", key: 42n });
  // @ts-expect-error it may be undefined
  await limits.take({ rule: "a", key: user?.id });
  // @ts-expect-error reset needs a key
  await limits.reset("a");
  const error: unknown = undefined;
  if (error instanceof DeniedError) return String(error.retry_after + error.status);
  if (error instanceof UnavailableError) return `${error.may_be_charged} ${error.retry_after} ${error.http_status}`;
  return text + results.length + fields["RateLimit"] + (answer.wait ?? 0) + size + refunded;
}
