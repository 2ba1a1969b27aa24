"""Limits decided straight on a fleet's Redis or Valkey, by the scripts that Headgate for Go runs.

Processes of all languages that use the same server and prefix share each limit. Calls that come
while another is under way share the next trip to the server. All durations are seconds.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Iterable
from typing import Any, TypeVar, cast

import redis
import redis.asyncio
from redis.exceptions import ResponseError

from . import Unavailable
from ._limit import Limit
from ._protocol import (
    TRIPS,
    AnyLimit,
    Call,
    Commands,
    Core,
    Decision,
    Decisions,
    Key,
    Request,
    Trip,
    deadline,
    decisions,
    denied,
    next_calls,
)

__all__ = ["AsyncStore", "Decision", "Decisions", "Limit", "Request", "Store"]

Result = TypeVar("Result")
_FORGOTTEN = 0.1  # seconds, after which a thread asks for the turn itself


class Store(Core[Decision, Decisions, None]):
    """Decides on a redis.Redis, of Sentinel as well, or a redis.RedisCluster. Threads may share it.

    key_secret is that of Store.HashKeys in Go; all processes need the same prefix and secret.
    """

    def __init__(
        self,
        client: redis.Redis | redis.RedisCluster,
        *,
        prefix: str = "hg:",
        key_secret: bytes | None = None,
    ) -> None:
        super().__init__(client, prefix, key_secret)
        self._begin()

    def _begin(self) -> None:
        self._pid, self._mutex = os.getpid(), threading.Lock()
        self._queue: deque[Call] = deque()
        self._lines, self._leading, self._turn = {}, False, threading.Lock()

    def wait(
        self,
        limit: AnyLimit,
        key: Key,
        cost: int = 1,
        *,
        headroom: int = 0,
        timeout: float = math.inf,
    ) -> Decision:
        """Take cost tokens, and sleep until they may be used. Raise headgate.Denied if that is
        not before timeout. Threads wait in line for each key and limit."""
        r = Request(limit, key, cost, headroom)
        name, gate, ends = self._call([r]).asks[0].name, threading.Event(), deadline(timeout)
        try:
            if not self._join(name, gate) and not gate.wait(min(timeout, threading.TIMEOUT_MAX)):
                raise denied(self.peek(limit, key))
            steps, answer = self._wait(r, ends), cast(Decision | None, None)
            while True:
                step = steps.send(answer)
                if isinstance(step, Request):
                    answer = self._one(step)
                else:
                    time.sleep(step)
                    answer = None
        except StopIteration as stop:
            decision: Decision = stop.value
        finally:
            self._leave(name, gate)
        try:
            time.sleep(decision.wait)
        except BaseException:  # such as KeyboardInterrupt
            self.refund(limit, key, cost, start_us=decision.start_us)
            raise
        return decision

    def _call(self, requests: Iterable[Request]) -> Call:
        if self._pid != os.getpid():  # after a fork, the threads of the parent are not here
            self._begin()
        return super()._call(requests)

    def _all(self, requests: list[Request]) -> Decisions:
        return decisions(requests, self._decide(requests) if requests else [])

    def _one(self, r: Request) -> Decision:
        return self._decide([r])[0]

    def _decide(self, requests: list[Request]) -> list[Decision]:
        """Decide requests. One thread at a time makes a trip, for all that have come by then."""
        call = self._call(requests)
        if self._cluster:
            self._drive(self._trip([call]))
        else:
            with self._mutex:
                self._queue.append(call)
                leads, self._leading = not self._leading, True
                if not leads:
                    call.gate = threading.Lock()
                    call.gate.acquire()
            if not leads:  # wait until it is answered or has to lead, or the leader was interrupted
                call.gate.acquire(timeout=_FORGOTTEN)
            if not call.answered():
                self._lead(call)
        if call.error is not None:
            raise call.error
        return call.result

    def _lead(self, own: Call) -> None:
        """Make trips until own is answered. A signal may raise an exception at any line here."""
        with self._turn:
            while not own.answered():
                calls: list[Call] = []
                try:
                    with self._mutex:
                        calls = next_calls(self._queue)
                    if not calls:
                        raise Unavailable("headgate: no decision: a thread was interrupted")
                    self._drive(self._trip(calls))
                finally:
                    with self._mutex:
                        self._leading = bool(self._queue)
                        calls += list(self._queue)[:1]  # which leads next
                    for call in calls:
                        if call.gate and call.gate.locked():
                            call.gate.release()

    def _drive(self, trip: Trip) -> None:
        try:
            commands = next(trip)
            while True:
                try:
                    replies = self._send(commands)
                except BaseException as error:
                    commands = trip.throw(error)
                else:
                    commands = trip.send(replies)
        except StopIteration:
            pass

    def _send(self, commands: Commands) -> list[Any]:
        if self._cluster:
            return [_caught(self._client.execute_command, *c, NEVER_DECODE=True) for c in commands]
        pool = self._client.connection_pool
        connection = pool.get_connection()  # whose commands are sent once, unlike the client's
        try:
            connection.send_packed_command(connection.pack_commands(commands))
            return [_caught(connection.read_response, disable_decoding=True) for _ in commands]
        except BaseException:
            connection.disconnect()
            raise
        finally:
            pool.release(connection)


class AsyncStore(Core[Awaitable[Decision], Awaitable[Decisions], Awaitable[None]]):
    """Store for asyncio, on a redis.asyncio.Redis or RedisCluster. Calls of one turn of the event
    loop share a trip."""

    def __init__(
        self,
        client: redis.asyncio.Redis | redis.asyncio.RedisCluster,
        *,
        prefix: str = "hg:",
        key_secret: bytes | None = None,
    ) -> None:
        super().__init__(client, prefix, key_secret)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: deque[Call] = deque()
        self._trips = 0
        self._tasks: set[asyncio.Future[Any]] = set()
        self._ready = asyncio.Lock()

    async def wait(
        self,
        limit: AnyLimit,
        key: Key,
        cost: int = 1,
        *,
        headroom: int = 0,
        timeout: float = math.inf,
    ) -> Decision:
        """Take cost tokens, and sleep until they may be used. Raise headgate.Denied if that is
        not before timeout. Tasks wait in line for each key and limit. A task that is cancelled
        gives back what it was granted."""
        r = Request(limit, key, cost, headroom)
        name, gate, ends = self._call([r]).asks[0].name, asyncio.Event(), deadline(timeout)
        asked: asyncio.Future[Decision] | None = None
        try:
            if not self._join(name, gate):
                try:
                    await asyncio.wait_for(gate.wait(), None if timeout == math.inf else timeout)
                except asyncio.TimeoutError:
                    raise denied(await self.peek(limit, key)) from None
            steps, answer = self._wait(r, ends), cast(Decision | None, None)
            while True:
                step = steps.send(answer)
                if isinstance(step, Request):
                    asked = self._keep(self._one(step))
                    answer = await asyncio.shield(asked)
                else:
                    await asyncio.sleep(step)
                    answer = None
        except StopIteration as stop:
            decision: Decision = stop.value
        except asyncio.CancelledError:
            if asked is not None:
                self._keep(self._give_back(asked, r))
            raise
        finally:
            self._leave(name, gate)
        try:
            await asyncio.sleep(decision.wait)
        except asyncio.CancelledError:
            self._keep(self.refund(limit, key, cost, start_us=decision.start_us))
            raise
        return decision

    async def _give_back(self, asked: asyncio.Future[Decision], r: Request) -> None:
        decision = await asked
        if decision:
            await self.refund(r.limit, r.key, r.cost, start_us=decision.start_us)

    def _keep(self, work: Awaitable[Result]) -> asyncio.Future[Result]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _all(self, requests: list[Request]) -> Decisions:
        return decisions(requests, await self._decide(requests) if requests else [])

    async def _one(self, r: Request) -> Decision:
        return (await self._decide([r]))[0]

    async def _decide(self, requests: list[Request]) -> list[Decision]:
        call, loop = self._call(requests), asyncio.get_running_loop()
        if self._cluster:
            await asyncio.shield(self._keep(self._drive(self._trip([call]))))
        else:
            if loop is not self._loop:
                self._loop, self._queue, self._trips = loop, deque(), 0
            call.gate = loop.create_future()
            self._queue.append(call)
            if len(self._queue) == 1:
                loop.call_soon(self._flush)
            await call.gate
        if call.error is not None:
            raise call.error
        return call.result

    def _flush(self) -> None:
        while self._queue and self._trips < TRIPS:
            self._trips += 1
            self._keep(self._answer(next_calls(self._queue)))

    async def _answer(self, calls: list[Call]) -> None:
        try:
            await self._drive(self._trip(calls))
        finally:
            for call in calls:
                if not call.gate.done():  # it is if its caller was cancelled
                    call.gate.set_result(None)
            self._trips -= 1
            self._flush()

    async def _drive(self, trip: Trip) -> None:
        try:
            commands = next(trip)
            while True:
                try:
                    replies = await self._send(commands)
                except BaseException as error:
                    commands = trip.throw(error)
                else:
                    commands = trip.send(replies)
        except StopIteration:
            pass

    async def _send(self, commands: Commands) -> list[Any]:
        if self._cluster:
            async with self._ready:  # redis 8.1 closes connections in use if many calls come first
                run = (await self._client.initialize()).execute_command
            return [await _acaught(run(*c, NEVER_DECODE=True)) for c in commands]
        pool = self._client.connection_pool
        connection = await pool.get_connection()  # whose commands are sent once
        try:
            await connection.send_packed_command(connection.pack_commands(commands))
            read = connection.read_response
            return [await _acaught(read(disable_decoding=True)) for _ in commands]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)


def _caught(run: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return run(*args, **kwargs)
    except ResponseError as error:
        return error


async def _acaught(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except ResponseError as error:
        return error
