"""Measures headgate.redis beside limits and throttled-py on one Redis, in alternating rounds.

usage: clients/python/.venv/bin/python bench/clients/bench.py [SECONDS of a round] [ROUNDS]
"""

import asyncio
import datetime
import json
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import limits
import limits.aio
import redis
import redis.asyncio
import throttled
import throttled.asyncio

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients" / "python"))
import headgate.redis

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
KEYS = ["user:%d" % n for n in range(10_000)]
COUNT, PERIOD = 1000, 10  # of each key: all is granted


def start_redis():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    directory = tempfile.mkdtemp()
    server = subprocess.Popen(
        [os.environ.get("HEADGATE_REDIS_SERVER", "redis-server"), "--port", str(port), "--save", "",
         "--dir", directory],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    client = redis.Redis(port=port)
    while True:
        try:
            client.ping()
            return server, port, client
        except redis.ConnectionError:
            time.sleep(0.01)


def redis_cpu(client):
    cpu = client.info("cpu")
    return cpu["used_cpu_user"] + cpu["used_cpu_sys"]


def own_cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def threads_of(port):
    store = headgate.redis.Store(redis.Redis(port=port))
    bucket, window = "%d/%ds" % (COUNT, PERIOD), "%d/%ds fixed-window" % (COUNT, PERIOD)
    url = "redis://127.0.0.1:%d" % port
    storage = limits.storage.RedisStorage(url)
    item = limits.RateLimitItemPerSecond(COUNT, PERIOD)
    fixed = limits.strategies.FixedWindowRateLimiter(storage)
    quota = throttled.rate_limiter.per_duration(
        duration=datetime.timedelta(seconds=PERIOD), limit=COUNT, burst=COUNT
    )
    shared = throttled.RedisStore(server=url)
    buckets = throttled.Throttled(using="token_bucket", quota=quota, store=shared)
    gcra = throttled.Throttled(using="gcra", quota=quota, store=shared)
    return {
        "headgate": lambda key: store.take(bucket, key).allowed,
        "headgate fixed": lambda key: store.take(window, key).allowed,
        "limits fixed": lambda key: fixed.hit(item, key),
        "throttled bucket": lambda key: not buckets.limit(key).limited,
        "throttled gcra": lambda key: not gcra.limit(key).limited,
    }


async def tasks_of(port):
    store = headgate.redis.AsyncStore(redis.asyncio.Redis(port=port))
    bucket, window = "%d/%ds" % (COUNT, PERIOD), "%d/%ds fixed-window" % (COUNT, PERIOD)
    url = "redis://127.0.0.1:%d" % port
    storage = limits.aio.storage.RedisStorage("async+" + url, implementation="redispy")
    item = limits.RateLimitItemPerSecond(COUNT, PERIOD)
    fixed = limits.aio.strategies.FixedWindowRateLimiter(storage)
    quota = throttled.asyncio.rate_limiter.per_duration(
        duration=datetime.timedelta(seconds=PERIOD), limit=COUNT, burst=COUNT
    )
    shared = throttled.asyncio.RedisStore(server=url)
    buckets = throttled.asyncio.Throttled(using="token_bucket", quota=quota, store=shared)

    async def take(key):
        return (await store.take(bucket, key)).allowed

    async def take_fixed(key):
        return (await store.take(window, key)).allowed

    async def throttle(key):
        return not (await buckets.limit(key)).limited

    return {
        "headgate": take,
        "headgate fixed": take_fixed,
        "limits fixed": lambda key: fixed.hit(item, key),
        "throttled bucket": throttle,
    }


def run_threads(limiter, callers):
    counts, ends = [], time.perf_counter() + SECONDS

    def caller():
        n = denied = 0
        while time.perf_counter() < ends:
            denied += not limiter(random.choice(KEYS))
            n += 1
        counts.append((n, denied))

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts


async def run_tasks(limiter, callers):
    ends = time.perf_counter() + SECONDS

    async def caller():
        n = denied = 0
        while time.perf_counter() < ends:
            denied += not await limiter(random.choice(KEYS))
            n += 1
        return n, denied

    return await asyncio.gather(*(caller() for _ in range(callers)))


class Rounds:
    """What was measured: decisions a second, and microseconds of CPU for each."""

    def __init__(self, client):
        self.client, self.found = client, {}

    def measure(self, way, callers, name):
        self.began = time.perf_counter(), own_cpu(), redis_cpu(self.client)
        self.cell = self.found.setdefault((way, callers), {}).setdefault(name, [])

    def end(self, counts):
        elapsed = time.perf_counter() - self.began[0]
        n, denied = sum(c[0] for c in counts), sum(c[1] for c in counts)
        if denied:
            raise SystemExit("%d of %d were denied: what is measured is not what is meant" % (denied, n))
        server = (redis_cpu(self.client) - self.began[2]) / n * 1e6
        self.cell.append((n / elapsed, server, (own_cpu() - self.began[1]) / n * 1e6))
        self.client.flushdb()

    def print(self):
        print("| way | callers | limiter | k/s | Redis us | client us | "
              "headgate / it: k/s (min-max) | Redis CPU |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|")
        for (way, callers), cells in self.found.items():
            ours = cells["headgate"]
            for name, rounds in cells.items():
                rate, server, own = (statistics.median(r[i] for r in rounds) for i in range(3))
                pace = [a[0] / b[0] for a, b in zip(ours, rounds, strict=True)]
                cost = [a[1] / b[1] for a, b in zip(ours, rounds, strict=True)]
                print("| %s | %d | %s | %.2f | %.2f | %.1f | %.2f (%.2f-%.2f) | %.2f |" % (
                    way, callers, name, rate / 1000, server, own, statistics.median(pace),
                    min(pace), max(pace), statistics.median(cost)))  # fmt: skip


def main():
    server, port, client = start_redis()
    try:
        rounds = Rounds(client)
        for limiter in threads_of(port).values():  # warm up
            run_threads(limiter, 4)
        for callers in (1, 16, 64):
            limiters = threads_of(port)
            for _ in range(ROUNDS):
                for name, limiter in limiters.items():
                    rounds.measure("threads", callers, name)
                    rounds.end(run_threads(limiter, callers))

            async def tasks(callers=callers):
                limiters = await tasks_of(port)
                for _ in range(ROUNDS):
                    for name, limiter in limiters.items():
                        rounds.measure("asyncio", callers, name)
                        rounds.end(await run_tasks(limiter, callers))

            asyncio.run(tasks())
        rounds.print()
        print(json.dumps({"python": sys.version.split()[0], "redis": client.info()["redis_version"],
                          "redis-py": redis.__version__}))  # fmt: skip
    finally:
        server.terminate()


main()
