"""The clients of headgate serve, for threads and for asyncio."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Coroutine, Generator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import anyio
import httpcore2
from httpcore2 import AsyncHTTPConnection, HTTPConnection

from ._answers import (
    AsyncPermit,
    AsyncReservation,
    AsyncWith,
    Decision,
    Decisions,
    Permit,
    Reservation,
)
from ._core import Core, Reader, Reply, parse
from ._deadline import Backend
from ._errors import Error, Unavailable

_NO_ANSWER = (
    httpcore2.NetworkError,
    httpcore2.RemoteProtocolError,
    httpcore2.TimeoutException,
    OSError,
)

T = TypeVar("T")
C = TypeVar("C", bound="Client")
A = TypeVar("A", bound="AsyncClient")
E = TypeVar("E", bound=AsyncWith)


class Client(Core[Decision, Decisions, Reservation, Permit, None]):
    """Client of one server. Threads, greenlets and forked processes may share it."""

    _reservation, _permit = Reservation, Permit

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are not in use. A later call opens a new one."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _open(self) -> None:
        self._idle: deque[HTTPConnection] = deque()  # the one that was used last, last
        self._turns: SimpleQueue[None] = SimpleQueue()  # one for each call that may begin
        self._running: set[object] = set()  # calls that have a turn
        self._fill()
        self._pid = os.getpid()

    def _fill(self) -> None:
        """Add the turns that are missing: all, or those that interrupted calls had."""
        for _ in range(self._connections):
            self._add()

    def _add(self) -> None:
        if len(self._running) + self._turns.qsize() < self._connections:
            self._turns.put(None)

    def _call(self, path: str, body: dict[str, Any] | None, reader: Reader) -> Any:
        return reader(parse(*self._exchange(path, body)))

    def _enter(self, held: Reservation) -> Decision:
        with held:
            return held

    def _exchange(self, path: str, body: dict[str, Any] | None) -> Reply:
        if self._pid != os.getpid():  # after a fork, the connections are of the parent
            self.close()
            self._open()
        request, call = self._request(path, body), object()
        try:
            return self._send(call, **request)
        except _NO_ANSWER as error:
            raise _unanswered(error) from error
        except BaseException:  # such as KeyboardInterrupt, at any line
            self._running.discard(call)
            self._fill()
            raise

    def _send(self, call: object, **request: Any) -> Reply:
        end = None if self._timeout is None else time.monotonic() + self._timeout
        times = dict.fromkeys(("connect", "write", "read"), end)
        try:
            self._turns.get(timeout=self._timeout)
        except Empty:
            raise TimeoutError from None  # all connections are in use
        try:
            self._running.add(call)
            connection = self._connect()
            response = connection.request(**request, extensions={"timeout": times})
            if connection.is_idle():
                self._idle.append(connection)
        finally:
            self._running.discard(call)
            self._add()
        return response.status, response.headers, response.content

    def _connect(self) -> HTTPConnection:
        with suppress(IndexError):
            while (connection := self._idle.pop()).has_expired():
                connection.close()
            return connection
        return HTTPConnection(**self._to, network_backend=Backend())


class AsyncClient(
    Core[
        Coroutine[Any, Any, Decision],
        Coroutine[Any, Any, Decisions],
        "Entry[AsyncReservation]",
        "Entry[AsyncPermit]",
        Coroutine[Any, Any, None],
    ]
):
    """Client for asyncio. Tasks may share it, and each event loop has connections of its own."""

    _reservation, _permit = AsyncReservation, AsyncPermit

    async def __aenter__(self: A) -> A:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of this event loop that are not in use. A later call opens a new
        one. It first waits until what cancelled calls got is given back."""
        loop = asyncio.get_running_loop()
        while tasks := [task for task in list(self._tasks) if task.get_loop() is loop]:
            await asyncio.wait(tasks)
        _, idle = self._pools.get((os.getpid(), loop), (None, deque()))
        while idle:
            await idle.pop().aclose()

    def _open(self) -> None:
        self._pools: dict[Any, tuple[anyio.CapacityLimiter, deque[AsyncHTTPConnection]]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()

    async def _call(self, path: str, body: dict[str, Any] | None, reader: Reader) -> Any:
        return reader(parse(*await self._exchange(path, body)))

    def _hold(self, path: str, body: dict[str, Any], reader: Reader) -> Any:
        return Entry(self, path, body, reader)

    async def _enter(self, held: Entry[AsyncReservation]) -> Decision:
        async with held as entered:
            return entered

    async def _exchange(self, path: str, body: dict[str, Any] | None) -> Reply:
        here = os.getpid(), asyncio.get_running_loop()
        if here not in self._pools:
            for there in list(self._pools):
                if there[1].is_closed():
                    self._pools.pop(there, None)
            self._pools[here] = anyio.CapacityLimiter(self._connections), deque()
        turns, idle = self._pools[here]
        try:
            with anyio.fail_after(self._timeout):
                async with turns:
                    connection = await self._connect(idle)
                    response = await connection.request(**self._request(path, body))
                    if connection.is_idle():
                        idle.append(connection)
        except _NO_ANSWER as error:
            raise _unanswered(error) from error
        return response.status, response.headers, response.content

    async def _connect(self, idle: deque[AsyncHTTPConnection]) -> AsyncHTTPConnection:
        while idle:
            if not (connection := idle.pop()).has_expired():
                return connection
            await connection.aclose()
        return AsyncHTTPConnection(**self._to)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Start work that goes on if the caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class Entry(Generic[E]):
    """A reservation or a permit, to await, or to enter by async with."""

    def __init__(
        self, client: AsyncClient, path: str, body: dict[str, Any], reader: Reader
    ) -> None:
        self._client, self._request = client, (path, body, reader)

    def __bool__(self) -> bool:
        raise TypeError("await the call, or use async with")

    def __await__(self) -> Generator[Any, Any, E]:
        return self._answer().__await__()

    async def __aenter__(self) -> E:
        self._entered: E = await self._answer()
        return await self._entered.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._entered.__aexit__(*error)

    async def _answer(self) -> E:
        asked: asyncio.Future[E] = self._client._start(self._client._call(*self._request))
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            self._client._start(_give_back(asked))
            raise


async def _give_back(asked: asyncio.Future[E]) -> None:
    with suppress(Error):
        held = await asked
        if held.allowed:
            await held._leave(held._undo(), Error)


def _unanswered(error: Exception) -> Unavailable:
    late = isinstance(error, (TimeoutError, httpcore2.TimeoutException))
    why = "not within the timeout" if late else str(error) or type(error).__name__
    return Unavailable("headgate: no answer: " + why)
