"""Tests of headgate.redis against the servers of e2e/clients, which sets the environment."""

from __future__ import annotations

import asyncio
import base64
import json
import linecache
import math
import os
import signal
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel

import headgate
from headgate.redis import AsyncStore, Decision, Limit, Request, Store

TESTDATA = Path(__file__).resolve().parents[2] / "limittest" / "testdata"
EPOCH = 4_102_444_800_000_000  # of the vectors, in microseconds


def address(name: str) -> dict[str, Any]:
    host, port = os.environ["HEADGATE_" + name].rsplit(":", 1)
    return {"host": host, "port": int(port), "socket_timeout": 10}


def request_of(v: dict[str, Any]) -> Request:
    start, wait = v.get("cancels_start_us"), v.get("max_wait_us", 0) / 1_000_000
    return Request(
        v["limit"],
        "python %d" % v["key"],
        v["cost"],
        headroom=v.get("headroom", 0),
        force=v.get("force", False),
        max_wait=wait,
        start_us=None if start is None else EPOCH + start,
        at_us=EPOCH + v["at_us"],
    )


def answer_of(d: Decision) -> dict[str, Any]:
    retry = d.wait or d.retry_after
    return {
        "allowed": d.allowed,
        "remaining": d.remaining,
        "retry_after_us": None if retry == math.inf else round(retry * 1_000_000),
        "reset_after_us": round(d.reset_after * 1_000_000),
    }


class RedisTest(unittest.TestCase):
    def setUp(self) -> None:
        self.client = redis.Redis(**address("REDIS"))
        self.store = Store(self.client)
        self.key = self.id()

    def tearDown(self) -> None:
        self.client.close()

    def test_vectors(self) -> None:
        vectors = json.loads((TESTDATA / "vectors.json").read_text())
        self.assertGreater(len(vectors), 200)
        for v in vectors:
            if v.get("reset"):
                self.store.reset(v["limit"], "python %d" % v["key"])
                continue
            got = self.store.take_all([request_of(v)]).results[0]
            self.assertEqual(answer_of(got), v["answer"], v)

    def test_vectors_asyncio(self) -> None:
        async def run() -> None:
            store = AsyncStore(redis.asyncio.Redis(**address("REDIS")), prefix="asyncio:")
            for v in json.loads((TESTDATA / "vectors.json").read_text()):
                if v.get("reset"):
                    await store.reset(v["limit"], "python %d" % v["key"])
                    continue
                got = (await store.take_all([request_of(v)])).results[0]
                self.assertEqual(answer_of(got), v["answer"], v)

        asyncio.run(run())

    def test_limits_and_keys(self) -> None:
        file = json.loads((TESTDATA / "limits.json").read_text())
        for want in file["limits"]:
            if want.get("refused"):
                with self.assertRaises(headgate.Invalid, msg=want):
                    Limit.parse(want["text"])
                continue
            limit = Limit.parse(want["text"])
            packed = limit.pack(want.get("at_us", 0))
            numbers = [int.from_bytes(packed[i : i + 7], "little") for i in (0, 7, 14)]
            self.assertEqual(
                [str(limit), limit.id, limit.number, *numbers],
                [want[f] for f in ("limit", "id", "algorithm", "capacity", "a", "b")],
                want,
            )
        for want in file["keys"]:
            secret = want["secret"].encode() if "secret" in want else None
            store = Store(self.client, key_secret=secret)
            name = store._name(base64.b64decode(want["key_base64"]), Limit.parse("1/s"))
            self.assertEqual(name, base64.b64decode(want["redis_key_base64"]), want)

    def test_limit_of_parts(self) -> None:
        for limit, text in (
            (Limit.of(100, 60, burst=20, name="api"), "api=100/m burst 20"),
            (Limit.of(5, 900.0, algorithm="sliding-log"), "5/15m sliding-log"),
            (Limit.of(9, "month", zone="Europe/Zurich", anchor="17", name="q"),
             "q=9/month tz Europe/Zurich anchor 17"),
            (Limit.of(9, "day", zone="UTC"), "9/day tz UTC"),
        ):  # fmt: skip
            self.assertEqual((str(limit), limit), (text, Limit.parse(text)))
        with self.assertRaisesRegex(headgate.Invalid, "of at least 1"):
            Limit.of(1, 60, burst=0)

    def test_all_or_none(self) -> None:
        both = [Request("3/h", self.key, 2), Request("5/h sliding-log", self.key + "b")]
        self.assertTrue(self.store.take_all(both))
        denied = self.store.take_all(both)
        self.assertFalse(denied)
        self.assertEqual([r.allowed for r in denied.results], [False, True])
        self.assertEqual(self.store.peek("5/h sliding-log", self.key + "b").remaining, 4)
        with self.assertRaisesRegex(headgate.Invalid, "twice for one key"):
            self.store.take_all([both[0], both[0]])
        self.assertTrue(self.store.take_all([]))

    def test_who_decides_a_group(self) -> None:
        self.store.take("1/h", self.key + "full")
        full, free = Request("1/h", self.key + "full"), Request("9/h", self.key)
        for left, other in (
            (None, full),
            (None, full._replace(max_wait=7200)),  # for which the other one would not wait
            (8, full._replace(cost=0)),
            (7, full._replace(force=True)),
        ):
            answer = self.store.take_all([free, other])
            self.assertEqual(answer.allowed, left is not None, other)
            self.assertEqual(self.store.peek(*free[:2]).remaining, left or 9)

    def test_peek_refund_headroom_force_reset(self) -> None:
        self.assertFalse(self.store.take("4/h", self.key, headroom=4))
        self.assertEqual(self.store.take("4/h", self.key, headroom=3).remaining, 3)
        self.assertEqual(self.store.take("4/h", self.key, 9, force=True).remaining, -6)
        self.assertFalse(self.store.peek("4/h", self.key))
        self.assertEqual(self.store.refund("4/h", self.key, 8).remaining, 2)
        self.assertEqual(self.store.take("4/h", self.key, 5).retry_after, math.inf)
        self.store.reset("4/h", self.key)
        self.assertEqual(self.store.peek("4/h", self.key).remaining, 4)

    def test_calendar(self) -> None:
        limit = Limit.parse("2/month tz Asia/Tokyo anchor 31")
        self.assertEqual(self.store.take(limit, self.key, 2).remaining, 0)
        ends = time.time() + self.store.take(limit, self.key).retry_after
        self.assertAlmostEqual(ends, limit.bounds(time.time_ns() // 1000)[1] / 1e6, delta=30)

    def test_bad_input(self) -> None:
        for call in (
            lambda: self.store.take("5/s", self.key, 1.5),  # type: ignore[arg-type]
            lambda: self.store.take("5/s", self.key, headroom=-1),
            lambda: self.store.take("5/s", self.key, max_wait=math.nan),
            lambda: self.store.take("5/s", self.key, max_wait=1, force=True),
            lambda: self.store.refund("5/s", self.key, 0),
            lambda: self.store.wait("5/s", self.key, 0),
            lambda: self.store.wait("5/s", self.key, timeout=-1),
            lambda: Store(self.client, prefix="a{b"),
            lambda: Store(self.client, key_secret=b"short"),
        ):
            with self.assertRaises(headgate.Invalid):
                call()

    def test_slow_path(self) -> None:
        booked = self.store.take("2/h", self.key, 2)
        self.assertTrue(booked)
        ahead = self.store.take("2/h", self.key, max_wait=7200)
        self.assertTrue(ahead and ahead.start_us and 1700 < ahead.wait <= 1800)
        self.assertFalse(self.store.take("2/h", self.key))  # plain, on a state that was booked
        self.assertTrue(self.store.refund("2/h", self.key, start_us=ahead.start_us))
        self.store.take("n=100/s", self.key, 100)
        self.assertLess(self.store.take("n=1/h burst 2", self.key, 1).remaining, 2)  # prolonged

    def test_script_flush(self) -> None:
        for _ in range(3):
            self.client.script_flush()
            self.assertTrue(self.store.take("9/h", self.key))
        self.assertEqual(self.store.peek("9/h", self.key).remaining, 6)

    def test_damaged_values(self) -> None:
        self.client.set("hg:{%s}:9/h" % self.key, "no state")
        self.client.rpush("hg:{%sb}:9/h" % self.key, "list")
        for suffix, why in (("", "is not a state"), ("b", "is not a string")):
            with self.assertRaisesRegex(headgate.Unavailable, why):
                self.store.take("9/h", self.key + suffix)

    def test_decoding_client(self) -> None:
        client = redis.Redis(decode_responses=True, **address("REDIS"))
        self.assertEqual(Store(client).take("9/h", self.key).remaining, 8)

    def test_no_time(self) -> None:
        client = redis.Redis(username="notime", password="secret", **address("REDIS"))
        store = Store(client)
        for left in (8, 7):
            self.assertEqual(store.take("9/h", self.key).remaining, left)
        wait = store.take("9/h", self.key, 9).retry_after
        self.assertTrue(700 < wait <= 800, wait)

    def test_a_lost_answer_is_not_repeated(self) -> None:
        store = Store(redis.Redis(**address("LOSSY")))
        store.take("9/h", self.key + "other")  # the scripts and the probe are through
        with self.assertRaisesRegex(headgate.Unavailable, "no decision"):
            for _ in range(3):
                store.take("9/h", "lost")
        self.assertEqual(self.store.peek("9/h", "lost").remaining, 8)

    def test_no_server(self) -> None:
        with self.assertRaises(headgate.Unavailable) as caught:
            Store(redis.Redis(port=1)).take("9/h", self.key)
        self.assertIsInstance(caught.exception.__cause__, RedisError)
        with self.assertRaises(headgate.Unavailable):
            Store(redis.Redis(port=1)).reset("9/h", self.key)

    def test_router(self) -> None:
        with self.assertRaisesRegex(headgate.Unavailable, "several servers behind a proxy"):
            Store(redis.Redis(**address("ROUTER"))).take("9/h", self.key)

    def test_threads_share_trips(self) -> None:
        def calls() -> int:
            stats = self.client.info("commandstats")
            return int(stats["cmdstat_evalsha"]["calls"])

        self.store.take("1000/h", self.key)
        before, granted = calls(), []

        def take(n: int) -> None:
            for _ in range(50):
                granted.append(bool(self.store.take("1000/h", self.key)))

        threads = [threading.Thread(target=take, args=(n,)) for n in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(granted), sum(granted)), (1600, 999))
        self.assertLess(calls() - before, 1400)

    def test_an_interrupted_thread_leaves(self) -> None:
        class Left(Exception):
            pass

        def leave(*_: object) -> None:
            raise Left

        self.store.take("9/h", self.key)
        signal.signal(signal.SIGALRM, leave)
        for handed_over in (False, True):
            self.client.client_pause(300)  # the first thread waits for its answer
            first = threading.Thread(target=self.store.take, args=("9/h", self.key))
            first.start()
            while not self.store._leading:
                time.sleep(0)
            others = [threading.Thread(target=self.store.take, args=("9/h", self.key))]
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            if not handed_over:
                others[0].start()
            with self.assertRaises(Left):
                self.store.take("9/h", self.key)
                while True:
                    time.sleep(1)
            if handed_over:
                others[0].start()
            for thread in (first, *others):
                thread.join(5)
                self.assertFalse(thread.is_alive())
        self.assertTrue(self.store.take("10/h", self.key))

    def test_an_exception_at_any_line(self) -> None:
        """What a signal raises in one call does not keep later ones from being answered."""

        class Left(Exception):
            pass

        own, left = str(Path(headgate.__file__).parent), 0

        def trace(frame: Any, event: str, _: object) -> Any:
            nonlocal left
            name, line = frame.f_code.co_filename, frame.f_lineno
            if not name.startswith(own):
                return None
            # Python does not run handlers of signals between these and their blocks.
            begins = linecache.getline(name, line).strip().startswith(("try:", "with "))
            left -= event == "line" and not begins
            if left == 0:
                raise Left("%s:%d" % (name, line))
            return trace

        self.store.take("900/h", self.key)
        for line in range(1, 1000):
            left = line
            sys.settrace(trace)
            try:
                self.store.take("900/h", self.key)
                break
            except (Left, headgate.Unavailable) as error:
                where = str(error)
            finally:
                sys.settrace(None)
            later = threading.Thread(target=self.store.take, args=("900/h", self.key), daemon=True)
            later.start()
            later.join(5)
            self.assertFalse(later.is_alive(), "after an exception at " + where)
        self.assertGreater(line, 60)

    def test_a_stalled_server_in_asyncio(self) -> None:
        async def run() -> None:
            client = redis.asyncio.Redis(max_connections=20, **address("REDIS"))
            store = AsyncStore(client)
            await store.take("900/h", self.key)
            await client.client_pause(300)
            tasks = []
            for _ in range(1000):  # each in a turn of its own
                tasks.append(asyncio.ensure_future(store.take("900/h", self.key)))
                await asyncio.sleep(0)
            self.assertEqual(sum(map(bool, await asyncio.gather(*tasks))), 899)
            await client.aclose()

        asyncio.run(run())

    def test_large_calls_together(self) -> None:
        async def run() -> None:
            store = AsyncStore(redis.asyncio.Redis(**address("REDIS")))
            keys = [["%s %d %d" % (self.key, n, i) for i in range(3000)] for n in range(4)]
            calls = (store.take_all([Request("9/h", key) for key in of]) for of in keys)
            self.assertTrue(all(await asyncio.gather(*calls, store.take("9/h", self.key))))

        asyncio.run(run())

    def test_forks(self) -> None:
        self.store.take("100/h", self.key)
        readers = []
        for _ in range(4):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    got = [bool(self.store.take("100/h", self.key)) for _ in range(30)]
                    os.write(writer, b"%d" % sum(got))
                finally:
                    os._exit(0)
            os.close(writer)
            readers.append((child, reader))
        counts = []
        for child, reader in readers:
            counts.append(int(os.read(reader, 16)))
            os.close(reader)
            os.waitpid(child, 0)
        self.assertEqual(sum(counts), 99)

    def test_wait(self) -> None:
        order: list[int] = []

        def wait(n: int) -> None:
            self.store.wait("50/s burst 1", self.key)
            order.append(n)

        began, threads = time.monotonic(), []
        for n in range(11):
            thread = threading.Thread(target=wait, args=(n,))
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        self.assertEqual(len(order), 11)
        with self.assertRaises(headgate.Denied) as caught:
            self.store.wait("1/h", self.key, timeout=1)
            self.store.wait("1/h", self.key, timeout=1)
        self.assertGreater(caught.exception.answer.retry_after, 3000)
        self.assertEqual(self.store._lines, {})

    def test_wait_asyncio(self) -> None:
        async def run() -> None:
            store, limit = AsyncStore(redis.asyncio.Redis(**address("REDIS"))), "20/s burst 1"
            order: list[int] = []

            async def wait(n: int) -> None:
                await store.wait(limit, self.key)
                order.append(n)

            tasks = [asyncio.ensure_future(wait(n)) for n in range(9)]
            while not order:
                await asyncio.sleep(0)
            tasks[2].cancel()  # one that sleeps, or asks
            tasks[5].cancel()  # and one in the line
            await asyncio.gather(*tasks, return_exceptions=True)
            self.assertEqual(order, [0, 1, 3, 4, 6, 7, 8])
            await store.wait("1/h", self.key)
            with self.assertRaises(headgate.Denied):
                await store.wait("1/h", self.key, timeout=0.5)
            await store.take("9/h", self.key, 9)
            waiting = asyncio.ensure_future(store.wait("9/h", self.key, 5))
            with self.assertRaises(headgate.Denied):
                await store.wait("9/h", self.key, timeout=0.2)  # its turn does not come
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            self.assertEqual(store._lines, {})

        asyncio.run(run())

    def test_cancelled_calls_do_not_mix(self) -> None:
        async def run() -> None:
            store = AsyncStore(redis.asyncio.Redis(**address("REDIS")))
            for turn in range(50):
                tasks = [
                    asyncio.ensure_future(store.take("%d/h" % (n + 1), "%s %d" % (self.key, turn)))
                    for n in range(6)
                ]
                for _ in range(turn % 7):
                    await asyncio.sleep(0)
                tasks[turn % 6].cancel()
                answers = await asyncio.gather(*tasks, return_exceptions=True)
                for n, answer in enumerate(answers):
                    if not isinstance(answer, asyncio.CancelledError):
                        assert isinstance(answer, Decision)
                        self.assertEqual(answer.remaining, n)

        asyncio.run(run())

    def test_cluster(self) -> None:
        with self.assertRaisesRegex(headgate.Invalid, "repeats requests"):
            Store(redis.RedisCluster(**address("CLUSTER")))
        client = redis.RedisCluster(retry=Retry(NoBackoff(), 0), **address("CLUSTER"))
        store = Store(client)
        for n in range(30):
            key = "%s %d" % (self.key, n)
            both = [Request("9/h", key), Request("1/h", key)]
            self.assertTrue(store.take_all(both))
            self.assertFalse(store.take_all(both))
            self.assertEqual(store.take("9/h", key).remaining, 7)
        with self.assertRaisesRegex(headgate.Invalid, "one key"):
            store.take_all([Request("9/h", "a"), Request("9/h", "b")])
        store.reset("9/h", self.key + " 1")

    def test_cluster_asyncio(self) -> None:
        async def run() -> None:
            retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
            client = redis.asyncio.RedisCluster(retry=retry, **address("CLUSTER"))
            store = AsyncStore(client)
            keys = ["%s %d" % (self.key, n) for n in range(30)]
            first = await asyncio.gather(*(store.take("1/h", key) for key in keys))
            second = await asyncio.gather(*(store.take("1/h", key) for key in keys))
            self.assertEqual([sum(map(bool, first)), sum(map(bool, second))], [30, 0])
            await client.aclose()

        asyncio.run(run())

    def test_sentinel(self) -> None:
        host, port = os.environ["HEADGATE_SENTINEL"].rsplit(":", 1)
        make: Any = Sentinel  # which has no types
        sentinel = make([(host, int(port))], socket_timeout=10)
        store = Store(sentinel.master_for(os.environ["HEADGATE_SENTINEL_NAME"]))
        self.assertEqual(store.take("9/h", self.key).remaining, 8)


if __name__ == "__main__":
    unittest.main()
