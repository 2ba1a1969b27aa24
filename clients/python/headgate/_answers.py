"""The answers of the server. All durations are seconds."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import MISSING
from typing import Any, Generic, TypeVar, cast

from ._errors import Denied, Error, Unavailable

T = TypeVar("T")
Settling = TypeVar("Settling")
Told = TypeVar("Told")
Request = tuple[str, dict[str, Any], Callable[[Any], Any]]  # path, body, reader of the answer

_MAX_SLEEP = 86400.0  # some systems refuse a longer one


class _Answer:
    """What can be denied. A denial is false."""

    allowed: bool
    retry_after: float

    def __bool__(self) -> bool:
        return self.allowed

    @property
    def headers(self) -> dict[str, str]:
        """The header fields of an answer with status 429: Retry-After, unless that is never."""
        if self.retry_after == math.inf:
            return {}
        return {"Retry-After": str(math.ceil(self.retry_after))}


@dataclasses.dataclass(kw_only=True)
class Decision(_Answer):
    """The answer to take, peek, refund and wait. A denial is false."""

    allowed: bool
    limit: str  # the limit that decided, or "ban" or "unlimited"
    capacity: float  # math.inf: unlimited
    remaining: float  # below 0, what is used beyond the capacity; math.inf: unlimited
    retry_after: float  # math.inf: never
    reset_after: float
    rule: str = ""
    wait: float = 0  # of a grant with max_wait: sleep so long before you use it
    degraded: bool = False  # the store is unavailable: the server decided alone
    shadow_denied: bool = False  # the rule is in shadow mode, and would have denied the request
    limits: list[Decision] = dataclasses.field(default_factory=list)  # of peek: all of the rule


@dataclasses.dataclass(kw_only=True)
class Decisions(_Answer):
    """The answer to take_all. A denial is false."""

    allowed: bool
    retry_after: float
    results: list[Decision]


@dataclasses.dataclass(kw_only=True)
class Settlement:
    """The answer to commit and cancel."""

    reserved: int
    used: int
    refunded: int
    charged: int  # beyond the reservation
    limit: str
    capacity: float
    remaining: float
    reset_after: float
    rule: str = ""
    degraded: bool = False


@dataclasses.dataclass(kw_only=True)
class _Held:
    """What a with statement holds."""

    id: str = ""
    _client: Any = dataclasses.field(repr=False, compare=False)
    _start: float = dataclasses.field(default_factory=time.monotonic, repr=False, compare=False)

    def _end(self, failed: bool) -> Request | None:
        """Return the request at the end of the with statement."""
        raise NotImplementedError

    def _undo(self) -> Request:
        """Return the request that gives back what was not used."""
        raise NotImplementedError


@dataclasses.dataclass(kw_only=True)
class _Reserved(Decision, _Held, Generic[Settling]):
    _settled: bool = dataclasses.field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._start += self.wait

    def commit(self, cost: int) -> Settling:
        """Settle the reservation at the cost that was used. Call it once."""
        self._settled = True
        settling: Settling = self._client._call(*self._commit(cost))
        return settling

    def cancel(self) -> Settling:
        """Return all reserved tokens."""
        return self.commit(0)

    def _commit(self, cost: int) -> Request:
        return "commit", {"id": self.id, "cost": cost}, functools.partial(read, Settlement, {})

    def _end(self, failed: bool) -> Request | None:
        return self._undo() if failed and not self._settled else None

    def _undo(self) -> Request:
        return self._commit(0)


@dataclasses.dataclass(kw_only=True)
class _Permitted(_Answer, _Held, Generic[Told]):
    allowed: bool
    permits: int
    in_use: int
    retry_after: float  # until a permit expires; one may be released earlier. math.inf: never
    rule: str = ""
    ttl: float = 0
    shadow_denied: bool = False
    _after: float = dataclasses.field(default=0, repr=False, compare=False)

    def renew(self, ttl: float | None = None) -> Told:
        """Extend the permit to at least ttl seconds from now. Return False if it has expired."""
        body = {"id": self.id, "ttl": self.ttl if ttl is None else ttl}
        told: Told = self._client._call("renew", body, functools.partial(flag, "renewed"))
        return told

    def release(self, after: float | None = None) -> Told:
        """Release the permit after so many seconds, by default those of acquire.

        Return False if it had expired.
        """
        told: Told = self._client._call(*self._release(self._after if after is None else after))
        return told

    def _release(self, after: float) -> Request:
        body = {"id": self.id, "after": after} if after else {"id": self.id}
        return "release", body, functools.partial(flag, "released")

    def _end(self, failed: bool) -> Request | None:
        if failed and self._after:
            return None  # the request may still arrive
        return self._release(self._after)

    def _undo(self) -> Request:
        return self._release(0)


H = TypeVar("H", bound="With")
A = TypeVar("A", bound="AsyncWith")


class With(_Held):
    """A with statement. It waits for the start of a reservation."""

    allowed: bool

    def __enter__(self: H) -> H:
        if not self.allowed:
            raise Denied(self)
        try:
            while (left := self._start - time.monotonic()) > 0:
                time.sleep(min(left, _MAX_SLEEP))
        except BaseException:  # such as KeyboardInterrupt
            self._leave(self._undo(), Error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if request := self._end(kind is not None):
            self._leave(request, Error if kind else Unavailable)

    def _leave(self, request: Request, ignored: type[Error]) -> None:
        with suppress(ignored):  # it stays charged, or expires
            self._client._call(*request)


class AsyncWith(_Held):
    """With for asyncio. Its end goes on if the task is cancelled."""

    allowed: bool

    async def __aenter__(self: A) -> A:
        if not self.allowed:
            raise Denied(self)
        try:
            while (left := self._start - time.monotonic()) > 0:
                await asyncio.sleep(min(left, _MAX_SLEEP))
        except BaseException:  # such as CancelledError
            await self._finish(self._undo(), Error)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if request := self._end(kind is not None):
            await self._finish(request, Error if kind else Unavailable)

    async def _finish(self, request: Request, ignored: type[Error]) -> None:
        await asyncio.shield(self._client._start(self._leave(request, ignored)))

    async def _leave(self, request: Request, ignored: type[Error]) -> None:
        with suppress(ignored):
            await self._client._call(*request)


class Reservation(_Reserved[Settlement], With):
    """A reservation. Commit the real cost; an exception in its with statement cancels it."""


class AsyncReservation(_Reserved[Coroutine[Any, Any, Settlement]], AsyncWith):
    """Reservation for asyncio."""


class Permit(_Permitted[bool], With):
    """A permit. Leaving a with statement releases it. It expires after its TTL.

    If it was acquired with after, it stays in use that many seconds longer; after an exception,
    until its TTL has passed.
    """


class AsyncPermit(_Permitted[Coroutine[Any, Any, bool]], AsyncWith):
    """Permit for asyncio."""


def read(kind: type[T], more: dict[str, Any], body: Any) -> T:
    """Read an answer. A number that is null or left out is never, or unlimited."""
    if not isinstance(body, dict):
        raise foreign()
    members = dict(more)
    for name, types, default in _members(cast(Any, kind)):
        value = body.get(name, default)
        if not isinstance(value, types):
            raise foreign()
        if types is list:
            value = [read(Decision, {}, one) for one in value]
        members[name] = math.inf if value is None else value
    return kind(**members)


def flag(name: str, body: dict[str, Any]) -> bool:
    """Read the answer that is one flag."""
    if not isinstance(body.get(name), bool):
        raise foreign()
    return bool(body[name])


def foreign(status: int = 200) -> Unavailable:
    return Unavailable("headgate: the answer is not of headgate serve: check the url", status)


_TYPES = {"bool": bool, "str": str, "int": int, "float": (int, float, type(None))}


@functools.cache
def _members(kind: Any) -> list[tuple[str, Any, Any]]:
    """Return the members of an answer: their names, types, and defaults."""
    return [
        (f.name, _TYPES.get(str(f.type), list), _default(f))
        for f in dataclasses.fields(kind)
        if not f.name.startswith("_")
    ]


def _default(f: dataclasses.Field[Any]) -> Any:
    if f.default_factory is not MISSING:
        return f.default_factory()
    return None if f.default is MISSING else f.default
