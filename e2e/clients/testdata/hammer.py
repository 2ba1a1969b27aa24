"""A process of the hammer in Python: threads, or tasks of asyncio. See hammer_test.go."""

import asyncio
import json
import os
import sys
import threading

import redis
import redis.asyncio

from headgate.redis import AsyncStore, Request, Store

host, port = os.environ["HEADGATE_REDIS"].split(":")
groups = json.loads(os.environ["HAMMER_GROUPS"])
enough = int(os.environ["HAMMER_DENIALS"])


def granted(i):
    os.write(1, b"%d\n" % i)


def requests(i):
    return [Request(*request) for request in groups[i]]


def thread(store):
    denials = [0] * len(groups)
    while min(denials) < enough:
        for i in range(len(groups)):
            if store.take_all(requests(i)):
                granted(i)
            else:
                denials[i] += 1


async def task(store):
    denials = [0] * len(groups)
    while min(denials) < enough:
        for i in range(len(groups)):
            if await store.take_all(requests(i)):
                granted(i)
            else:
                denials[i] += 1


async def tasks(n):
    store = AsyncStore(redis.asyncio.Redis(host=host, port=int(port)))
    await asyncio.gather(*(task(store) for _ in range(n)))


print("ready", flush=True)
sys.stdin.readline()
callers = int(os.environ["HAMMER_CALLERS"])
if sys.argv[1] == "asyncio":
    asyncio.run(tasks(callers))
else:
    shared = Store(redis.Redis(host=host, port=int(port)))
    all_threads = [threading.Thread(target=thread, args=(shared,)) for _ in range(callers)]
    for each in all_threads:
        each.start()
    for each in all_threads:
        each.join()
print("done", flush=True)
