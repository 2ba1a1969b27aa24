"""Tests of headgate against the server at HEADGATE_URL, with the rules of service_test.go."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import multiprocessing
import os
import pickle
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import traceback
import unittest
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO
from unittest import mock

import headgate
from headgate.testing import FakeAsyncClient, FakeClient

URL = os.environ["HEADGATE_URL"]
TIMEOUT = 30.0  # of calls that should not reach it, on a busy machine


class Server:
    """A program that answers connections, one after the other, with texts: one for each request.
    With a pause, it sends the texts to the first request. Without texts, it never answers."""

    def __init__(self, *connections: list[bytes], pause: float = 0) -> None:
        self._connections, self._pause = connections, pause
        self.requests, self.closed, self._end = 0, threading.Semaphore(0), threading.Event()

    def __enter__(self) -> Server:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(TIMEOUT)
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        for texts in self._connections:
            connection, _ = self._listener.accept()
            with connection, contextlib.suppress(OSError):
                for i, text in enumerate(texts or [b""]):
                    if i == 0 or not self._pause:
                        self._read(connection.makefile("rb"))
                    connection.sendall(text)
                    self._end.wait(self._pause if texts else TIMEOUT)
            self.closed.release()

    def _read(self, stream: BinaryIO) -> None:
        length = 0
        while (line := stream.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split()[1])
        stream.read(length)
        self.requests += 1


def response(status: bytes, body: bytes, more: bytes = b"") -> bytes:
    length = b"" if status[:3] == b"204" else b"Content-Length: %d\r\n" % len(body)
    return b"HTTP/1.1 %s\r\n%s%s\r\n%s" % (status, more, length, body)


class Blocking:
    """What AsyncClient returns, used without async and await."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner, self._loop = inner, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return functools.partial(self._run, found) if callable(found) else found

    def __bool__(self) -> bool:
        return bool(self._inner)

    def __enter__(self) -> Any:
        return self._run(self._inner.__aenter__)

    def __exit__(self, *error: Any) -> None:
        self._run(self._inner.__aexit__, *error)

    def _run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        async def run() -> Any:
            answer = function(*args, **kwargs)
            return await answer if hasattr(answer, "__await__") else answer

        answer = self._loop.run_until_complete(run())
        return Blocking(answer, self._loop) if hasattr(answer, "__aenter__") else answer


class Calls(unittest.TestCase):
    """What both clients do, with Client."""

    sleep = "time.sleep"

    def setUp(self) -> None:
        self.key = "python:" + self.id()
        self.limits: Any = self.client(URL)

    def client(self, url: str, token: str = "secret", timeout: float = TIMEOUT) -> Any:
        client = headgate.Client(url, token=token, timeout=timeout)
        self.addCleanup(client.close)
        return client

    def test_take(self) -> None:
        answer = self.limits.take("login", self.key, 5)
        self.assertTrue(answer.allowed)
        self.assertEqual((answer.limit, answer.capacity, answer.remaining), ("5/h", 5, 0))
        self.assertEqual((answer.retry_after, answer.degraded, answer.rule), (0, False, "login"))
        answer = self.limits.take("login", self.key)
        self.assertFalse(answer.allowed)
        self.assertTrue(600 < answer.retry_after <= 720)
        self.assertEqual(answer.headers["Retry-After"], str(math.ceil(answer.retry_after)))
        never = self.limits.take("login", self.key, 6)
        self.assertEqual((never.retry_after, never.headers), (math.inf, {}))
        self.assertTrue(600 < self.limits.take("login", self.key, max_wait=800).wait <= 720)
        self.assertEqual(self.limits.take(limit="7/h", key=self.key).remaining, 6)

    def test_denial_is_false(self) -> None:
        answer = self.limits.take_all([{"rule": "login", "key": self.key, "cost": 5}])
        self.assertTrue(answer and answer.results[0])
        self.assertFalse(self.limits.take("login", self.key))
        self.assertFalse(self.limits.peek("login", self.key).limits[0])
        reservation = self.limits.reserve("tokens", self.key)
        self.assertEqual(bool(reservation) and reservation.commit(1).used, 1)
        self.assertFalse(self.limits.reserve("tokens", self.key, 1001))

    def test_peek_refund_force_reset(self) -> None:
        self.limits.take("login", self.key, 3)
        self.assertEqual(self.limits.peek("login", self.key).limits[0].remaining, 2)
        self.assertEqual(self.limits.refund("login", self.key, 2).remaining, 4)
        answer = self.limits.take("login", self.key, 10, force=True)
        self.assertEqual((answer.allowed, answer.remaining), (False, -6))
        self.limits.reset("login", self.key)
        self.assertEqual(self.limits.peek("login", self.key).remaining, 5)
        for key in ".", "..", "../a", "%2E":
            self.limits.take("tokens", key, 5)
            self.limits.reset("tokens", key)
            self.assertEqual(self.limits.peek("tokens", key).remaining, 1000, key)

    def test_take_all(self) -> None:
        both = [{"rule": "login", "key": self.key, "cost": 4}, {"rule": "tokens", "key": self.key}]
        answer = self.limits.take_all(both)
        self.assertEqual([r.remaining for r in answer.results], [1, 999])
        answer = self.limits.take_all(both)
        self.assertFalse(answer)
        self.assertGreater(answer.retry_after, 0)
        self.assertEqual([r.allowed for r in answer.results], [False, True])
        self.assertEqual(answer.headers["Retry-After"], str(math.ceil(answer.retry_after)))

    def test_reserve(self) -> None:
        with self.limits.reserve("tokens", self.key, 800) as reservation:
            self.assertEqual(reservation.commit(300).refunded, 500)
        with self.assertRaises(ZeroDivisionError), self.limits.reserve("tokens", self.key, 600):
            raise ZeroDivisionError
        self.assertEqual(self.limits.peek("tokens", self.key).remaining, 700)
        with self.limits.reserve("tokens", self.key, 100):
            pass  # not settled: used
        self.assertEqual(self.limits.peek("tokens", self.key).remaining, 600)
        with self.assertRaises(headgate.Denied) as denied:
            with self.limits.reserve("tokens", self.key, 700):
                self.fail("entered")
        self.assertTrue(0 < denied.exception.retry_after < math.inf)
        self.assertFalse(pickle.loads(pickle.dumps(denied.exception)).answer)

    def test_waits(self) -> None:
        for _ in range(20):  # a busy machine may be late, but not each time
            self.limits.take(limit="5/s", key=self.key, cost=5)
            began = time.monotonic()
            answer = self.limits.wait(limit="5/s", key=self.key, timeout=60)
            self.assertGreaterEqual(time.monotonic() - began, answer.wait)
            if answer.wait > 0:
                break
        self.assertGreater(answer.wait, 0)
        with self.assertRaises(headgate.Denied) as denied:
            self.limits.wait("login", self.key, 6)
        self.assertEqual(str(denied.exception), "denied; no wait helps")
        with self.assertRaisesRegex(ValueError, "timeout is nan; want 0 or more"):
            self.limits.wait("login", self.key, timeout=math.nan)

    def test_interrupted_wait_is_free(self) -> None:
        self.limits.take(limit="1/h", key=self.key)
        with mock.patch(self.sleep, side_effect=ZeroDivisionError):
            with self.assertRaises(ZeroDivisionError):
                self.limits.wait(limit="1/h", key=self.key, timeout=4000)
        self.assertTrue(self.limits.take(limit="1/h", key=self.key, max_wait=4000))

    def test_acquire(self) -> None:
        with self.limits.acquire("exports", self.key, ttl=30) as first:
            self.assertEqual((first.permits, first.in_use, first.ttl), (2, 1, 30))
            self.assertTrue(first.renew())
            with self.limits.acquire("exports", self.key):
                with self.assertRaises(headgate.Denied):
                    self.limits.acquire("exports", self.key).__enter__()
        self.assertFalse(first.release())
        self.assertEqual(self.limits.acquire("exports", self.key).in_use, 1)

    def test_permit_released_later(self) -> None:
        with self.limits.acquire("exports", self.key, after=100):
            pass
        with self.assertRaises(KeyError):
            with self.limits.acquire("exports", self.key, ttl=200, after=100):
                raise KeyError
        denied = self.limits.acquire("exports", self.key)
        self.assertFalse(denied)
        self.assertTrue(0 < denied.retry_after <= 100, denied)
        self.assertEqual(denied.headers, {"Retry-After": str(math.ceil(denied.retry_after))})
        other = self.limits.acquire("exports", self.key + ":other", ttl=200, after=100)
        self.assertTrue(other.release())
        self.assertFalse(other.release())
        self.assertEqual(self.limits.acquire("exports", self.key + ":other").in_use, 2)

    def test_limit(self) -> None:
        function = self.decorated()
        self.assertEqual(function(self.key), self.key)
        self.assertEqual(function.__name__, "called")
        for _ in range(4):
            function(self.key)
        with self.assertRaises(headgate.Denied):
            function(self.key)

    def decorated(self) -> Any:
        def called(key: str) -> str:
            return key

        async def asynchronous() -> None: ...

        with self.assertRaises(TypeError):
            self.limits.limit("login")(asynchronous)
        return self.limits.limit("login", key=lambda key: key)(called)

    def test_invalid(self) -> None:
        with self.assertRaises(headgate.Invalid) as wrong:
            self.limits.take("login", self.key, cost=0)
        self.assertEqual((wrong.exception.status, wrong.exception.field), (400, "cost"))
        self.assertIn("cost is 0; want", str(wrong.exception))
        self.assertEqual(pickle.loads(pickle.dumps(wrong.exception)).field, "cost")
        with self.assertRaisesRegex(headgate.Invalid, "want one of rule and limit"):
            self.limits.take("login", self.key, limit="5/s")
        with self.assertRaisesRegex(headgate.Invalid, "rule is missing"):
            self.limits.peek(key=self.key)
        with self.assertRaisesRegex(headgate.Invalid, "key is missing"):
            self.limits.acquire("exports").__enter__()
        with self.assertRaises(headgate.Invalid) as wrong:
            self.client(URL, token="other").take("login", self.key)
        self.assertEqual(wrong.exception.status, 401)
        for bad in "127.0.0.1:8080", "http://", "ftp://127.0.0.1", "http://h\u00f6st":
            with self.assertRaisesRegex(ValueError, "url is"):
                self.client(bad)
        for timeout in -1, 0, math.nan, math.inf:
            with self.assertRaisesRegex(ValueError, "timeout is .*; want more than 0"):
                self.client(URL, timeout=timeout)
        with self.assertRaisesRegex(ValueError, "token has"):
            self.client(URL, token="secret\n")

    def test_pickle(self) -> None:
        copy: Any = pickle.loads(pickle.dumps(getattr(self.limits, "_inner", self.limits)))
        self.assertEqual(copy._arguments["token"], "secret")

    def test_answers_of_other_programs(self) -> None:
        problem = b"Content-Type: application/problem+json\r\n"
        for status, more, body in (
            (b"200 OK", b"", b"{}"),
            (b"200 OK", b"", b"[]"),
            (b"200 OK", b"", b"hello"),
            (b"200 OK", b"", b'{"allowed":1,"limit":"x"}'),
            (b"200 OK", b"", b"[" * 100_000),
            (b"204 No Content", b"", b""),
            (b"301 Moved", b"Location: " + URL.encode() + b"/v1/take\r\n", b""),
            (b"404 Not Found", b"Content-Type: application/json\r\n", b'{"detail":"Not Found"}'),
            (b"429 Too Many Requests", problem, b'{"detail":"slow down"}'),
            (b"502 Bad Gateway", b"", b"<html>"),
            (b"503 Unavailable", problem, b'{"detail":"the store is unavailable"}'),
        ):
            with self.subTest(body[:50]), Server([response(status, body, more)]) as server:
                with self.assertRaises(headgate.Unavailable) as raised:
                    self.client(server.url).take("login", self.key)
                self.assertIn(raised.exception.status, (int(status[:3]), 200))
        with Server([response(b"200 OK", b"{}")]) as server:
            with self.assertRaises(headgate.Unavailable):
                self.client(server.url).reset("login", self.key)

    def test_never_is_left_out(self) -> None:
        body = b'{"allowed":false,"limit":"ban","capacity":0,"remaining":0}'
        with Server([response(b"200 OK", body)]) as server:
            answer = self.client(server.url).take("login", self.key)
        self.assertEqual((answer.retry_after, answer.reset_after), (math.inf, math.inf))

    def test_one_timeout_for_all(self) -> None:
        slow = [bytes([byte]) for byte in response(b"200 OK", b" " * 400)]
        for texts in [], slow:  # slow takes 20 s
            with Server(texts, pause=0.05) as server:
                with self.assertRaisesRegex(headgate.Unavailable, "no answer"):
                    self.client(server.url, timeout=0.2).take("login", self.key)

    def test_connections_are_kept_and_renewed(self) -> None:
        answer = response(b"200 OK", b'{"allowed":true,"limit":"5/h"}')
        with Server([answer], [answer, answer]) as server:
            client = self.client(server.url)
            for _ in range(2):
                self.assertTrue(client.take("login", self.key))
                server.closed.acquire(timeout=TIMEOUT) if server.requests == 1 else None
            self.assertTrue(client.take("login", self.key))
            self.assertEqual(server.requests, 3)

    def test_unavailable(self) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            with self.assertRaises(headgate.Unavailable):
                self.client("http://127.0.0.1:%d" % closed.getsockname()[1]).take("a", self.key)


class AsyncCalls(Calls):
    """What both clients do, with AsyncClient."""

    sleep = "asyncio.sleep"

    def setUp(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)
        super().setUp()

    def client(self, url: str, token: str = "secret", timeout: float = TIMEOUT) -> Any:
        client = Blocking(headgate.AsyncClient(url, token=token, timeout=timeout), self.loop)
        self.addCleanup(client.close)
        return client

    def decorated(self) -> Any:
        async def called(key: str) -> str:
            return key

        with self.assertRaises(TypeError):
            self.limits.limit("login")(len)
        limited = self.limits.limit("login", key=lambda key: key)(called)
        return functools.wraps(limited)(functools.partial(self.limits._run, limited))


def ask(client: headgate.Client, key: str, times: int) -> None:
    """Check that each answer is of its own key: one is exhausted, and one is not."""
    for i in range(times):
        denied = client.peek("login", key + ":exhausted")
        fresh = client.peek("tokens", key + ":fresh")
        assert not denied and denied.limit == "5/h", (i, denied)
        assert fresh and fresh.limit == "1000/d", (i, fresh)


def ask_and_close(client: headgate.Client, key: str) -> None:
    with client:
        ask(client, key, 1)


async def ask_async(client: headgate.AsyncClient, key: str) -> None:
    denied, fresh = await asyncio.gather(
        client.peek("login", key + ":exhausted"), client.peek("tokens", key + ":fresh")
    )
    assert not denied and denied.limit == "5/h", denied
    assert fresh and fresh.limit == "1000/d", fresh


def fork(work: Callable[[], None]) -> int:
    """Do work in a forked process, whose exit code is 0 if it succeeds."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    return child


class Interrupted(BaseException):
    pass


class Sharing(unittest.TestCase):
    """Processes, threads and tasks that share a client, and calls that are interrupted."""

    def setUp(self) -> None:
        self.key = "python:" + self.id()
        self.limits = headgate.Client(URL, "secret", TIMEOUT, connections=2)
        self.addCleanup(self.limits.close)
        self.limits.take("login", self.key + ":exhausted", 5)

    def threads(self, number: int, work: Callable[[], None]) -> list[BaseException]:
        errors: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run) for _ in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return errors

    def test_forks(self) -> None:
        """As of Celery or gunicorn: workers are forked from a process that has connections."""
        self.assertEqual(self.threads(2, lambda: ask(self.limits, self.key, 5)), [])
        start, parent = os.pipe()

        def work() -> None:
            os.close(parent)
            os.read(start, 1)
            ask(self.limits, self.key, 100)

        children = [fork(work) for _ in range(4)]  # which ask 800 times
        os.close(start)
        os.close(parent)  # they start
        ask(self.limits, self.key, 100)
        self.assertEqual([os.waitpid(child, 0)[1] for child in children], [0] * 4)

    def test_forked_event_loop(self) -> None:
        loop, client = asyncio.new_event_loop(), headgate.AsyncClient(URL, "secret", TIMEOUT)

        def work() -> None:
            for _ in range(50):
                loop.run_until_complete(ask_async(client, self.key))

        work()
        child = fork(work)
        work()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        loop.run_until_complete(client.close())
        loop.close()

    def test_spawn(self) -> None:
        process = multiprocessing.get_context("spawn").Process(
            target=ask_and_close, args=(self.limits, self.key)
        )
        process.start()
        process.join()
        self.assertEqual(process.exitcode, 0)
        secure = headgate.Client("https://127.0.0.1", context=ssl.create_default_context())
        with self.assertRaisesRegex(TypeError, "cannot pickle 'SSLContext'"):
            pickle.dumps(secure)

    def test_threads_share_connections(self) -> None:
        self.assertEqual(self.threads(8, lambda: ask(self.limits, self.key, 20)), [])
        self.assertLessEqual(len(self.limits._idle), 2)

    def test_gevent(self) -> None:
        code = """if True:
            from gevent import monkey; monkey.patch_all()
            import gevent, random, sys, headgate, headgate_test
            client = headgate.Client(headgate_test.URL, "secret", 30, connections=2)
            def work():
                try:
                    with gevent.Timeout(random.random() / 50):
                        headgate_test.ask(client, sys.argv[1], 5)
                except gevent.Timeout:
                    pass
                headgate_test.ask(client, sys.argv[1], 1)
            tasks = [gevent.spawn(work) for _ in range(50)]
            gevent.joinall(tasks, raise_error=True)
            client.close()
        """
        subprocess.run([sys.executable, "-c", code, self.key], check=True)

    def test_interrupts(self) -> None:
        """A signal raises at any line of a call, as Celery's soft time limit does."""

        def interrupt(*_: object) -> None:
            raise Interrupted

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        warnings.simplefilter("ignore", ResourceWarning)  # Python closes what nobody could
        for i in range(400):
            with contextlib.suppress(Interrupted):
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 2e-3))
                    ask(self.limits, self.key, 100)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            if i % 20 == 0:
                ask(self.limits, self.key, 1)
        ask(self.limits, self.key, 1)

    def test_interrupts_open_no_more_connections(self) -> None:
        """As with gevent.Timeout while the server is slow: calls that wait in line are ended."""

        def interrupt(*_: object) -> None:
            raise Interrupted

        def call() -> None:
            with contextlib.suppress(headgate.Unavailable):
                client.take("login", self.key)

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.settimeout(TIMEOUT)
            url = "http://127.0.0.1:%d" % silent.getsockname()[1]
            client = headgate.Client(url, timeout=TIMEOUT, connections=2)
            threads = [threading.Thread(target=call) for _ in range(2)]
            for thread in threads:
                thread.start()
            accepted = [silent.accept()[0] for _ in threads]
            for _ in range(3):
                with self.assertRaises(Interrupted):
                    signal.setitimer(signal.ITIMER_REAL, 0.1)
                    client.take("login", self.key)
            silent.settimeout(0)
            with self.assertRaises(BlockingIOError):
                silent.accept()
            for connection in accepted:
                connection.close()
            for thread in threads:
                thread.join()
            self.assertEqual(client._turns.qsize(), 2)

    def test_cancelled(self) -> None:
        async def run() -> None:
            async with headgate.AsyncClient(URL, "secret", TIMEOUT, connections=2) as client:
                for i in range(300):
                    tasks = [asyncio.ensure_future(ask_async(client, self.key)) for _ in range(3)]
                    for _ in range(i % 60):
                        await asyncio.sleep(0)
                    for task in tasks[:2]:
                        task.cancel()
                    await asyncio.gather(*tasks[:2], return_exceptions=True)
                    await tasks[2]
                await asyncio.gather(*(ask_async(client, self.key) for _ in range(50)))
                self.assertLessEqual(len(next(iter(client._pools.values()))[1]), 2)

        asyncio.run(run())

    def test_cancelled_permits_are_given_back(self) -> None:
        async def hold(client: headgate.AsyncClient) -> None:
            async with client.acquire("exports", self.key):
                await asyncio.sleep(TIMEOUT)

        async def run(turns: int) -> None:
            async with headgate.AsyncClient(URL, "secret", TIMEOUT) as client:
                task = asyncio.ensure_future(hold(client))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        for turns in range(60):
            asyncio.run(run(turns))  # the end of async with waits until it is given back
            with self.limits.acquire("exports", self.key) as permit:
                self.assertEqual(permit.in_use, 1, turns)

    def test_event_loops(self) -> None:
        client = headgate.AsyncClient(URL, "secret", TIMEOUT)
        with self.assertRaisesRegex(TypeError, "await"):
            bool(client.acquire("exports", self.key))

        async def run() -> None:
            await ask_async(client, self.key)
            self.assertEqual(len(client._pools), 1)  # none of a loop that has ended
            await client.close()

        self.assertEqual(self.threads(1, lambda: asyncio.run(run())), [])
        asyncio.run(run())


class Fakes(unittest.TestCase):
    def test_script(self) -> None:
        client = FakeClient(False, 3.5, math.inf, headgate.Unavailable("down"))
        self.assertEqual([client.take("login", "a").retry_after for _ in "123"], [1, 3.5, math.inf])
        with self.assertRaisesRegex(headgate.Unavailable, "down"):
            client.take("login", "a")
        with client.reserve("tokens", "a", 3) as reservation, client.acquire("exports") as permit:
            self.assertTrue(reservation.commit(2) and permit.renew())
        self.assertTrue(client.take_all([{"rule": "login"}]).results[0])
        self.assertEqual(reservation.commit(320).used, 320)
        client.script = [False]
        self.assertTrue(client.refund("tokens", "a"))
        self.assertFalse(client.peek("tokens", "a"))
        client.reset("login", "a")
        self.assertEqual(client.calls[0], ("take", {"key": "a", "rule": "login"}))
        self.assertEqual(client.calls[-1][0], "keys/login/a")

    def test_async_script(self) -> None:
        async def run() -> list[bool]:
            client = FakeAsyncClient(True, False)
            return [bool(await client.take("login", "a")) for _ in range(3)]

        self.assertEqual(asyncio.run(run()), [True, False, True])


if __name__ == "__main__":
    unittest.main()
