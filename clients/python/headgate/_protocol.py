"""What both stores have in common: the protocol of docs/protocol.md, and waiting in line."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import redis
import redis.asyncio
from redis.exceptions import RedisError, ResponseError

from . import Denied, Unavailable
from ._limit import MAX_EXACT, Limit, wrong

AnyLimit = Limit | str
Key = str | bytes

_COSTS, _TIMED, _BOOKS, _JOINED, _FORCED = 2, 4, 8, 16, 32  # what a request has
_TOGETHER = 4000  # requests in one call
_BATCH = 256  # requests in one trip, unless one call has more
TRIPS = 16  # under way for tasks of asyncio, each on a connection of its own
_PATIENCE = 16  # denials, after which a waiting caller books its start however far ahead
_PROBES, _PROBE_INTERVAL = 20, 60.0


class Request(NamedTuple):
    """A request of take_all."""

    limit: AnyLimit
    key: Key
    cost: int = 1
    headroom: int = 0  # tokens that must be left afterwards
    force: bool = False  # charge whether or not it fits
    max_wait: float = 0.0  # a start time up to this much later may be granted
    start_us: int | None = None  # of a refund: the start time of its grant
    at_us: int | None = None  # the time, in place of the server's clock: for tests


class Decision(NamedTuple):
    """The answer to a request. A denial is false."""

    allowed: bool
    limit: Limit
    remaining: int
    retry_after: float  # math.inf: never
    reset_after: float
    wait: float = 0.0  # of a grant with max_wait: until its start
    start_us: int | None = None  # and that start, in microseconds since the Unix epoch

    def __bool__(self) -> bool:
        return self.allowed


class Decisions(NamedTuple):
    """The answer to take_all. A denial is false."""

    allowed: bool  # all that are not forced and cost something
    results: list[Decision]

    def __bool__(self) -> bool:
        return self.allowed


class Ask:
    """A request as the scripts have it: what it has, and its limit, key in Redis and cost."""

    __slots__ = ("cost", "limit", "name", "rest", "time", "wait", "what")

    def __init__(self, name: bytes, limit: Limit, r: Request) -> None:
        self.name, self.limit, self.time, self.rest, self.what = name, limit, r.at_us, b"", 0
        forced, self.wait = r.force and r.cost > 0, 0
        self.cost = max(min(r.cost, limit.capacity + 1), -MAX_EXACT)
        if forced:
            self.cost, self.what = min(r.cost, MAX_EXACT + 1), _COSTS | _FORCED
        elif r.cost != 1:
            self.what = _COSTS
        if r.at_us is not None:
            self.what |= _TIMED
            self.rest = _seven(r.at_us)
        if r.max_wait or r.headroom or r.start_us is not None:
            self.what |= _BOOKS
            last = min(r.headroom, limit.capacity) if r.cost >= 0 else r.start_us or 0
            self.wait = round(min(r.max_wait * 1_000_000, MAX_EXACT))
            self.rest += _seven(self.wait) + _seven(last)


class Call:
    """Requests that are decided together, and their answers."""

    __slots__ = ("asks", "error", "gate", "result", "together")

    def __init__(self, asks: list[Ask]) -> None:
        self.asks = asks
        self.together = sum(a.what < _FORCED for a in asks) > 1
        if self.together:  # all are granted after the least wait, or none
            patience = min((a.wait for a in asks if a.cost > 0 and a.what < _FORCED), default=0)
            for a in asks:
                a.wait = patience
        self.result: list[Decision] = []
        self.error: Exception | None = None
        self.gate: Any = None

    def answered(self) -> bool:
        return bool(self.result or self.error)


def next_calls(queue: deque[Call]) -> list[Call]:
    """Take the calls of one trip from a queue."""
    calls: list[Call] = []
    size = 0
    while queue and (not calls or size + len(queue[0].asks) <= _BATCH):
        size += len(queue[0].asks)
        calls.append(queue.popleft())
    return calls


Commands = list[tuple[Any, ...]]
Trip = Generator[Commands, list[Any], None]


def _seven(n: int) -> bytes:
    return n.to_bytes(7, "little", signed=True)


_files = Path(__file__).with_name("lua")  # copied there when the package is built
if not _files.is_dir():
    _files = Path(__file__).resolve().parents[3] / "redisstore"
_scripts: dict[tuple[int, ...], tuple[str, bytes]] = {}


def _script(*parts: int) -> tuple[str, bytes]:
    """Return the name and the text of a script: its algorithms, and 0 for the slow path or -1
    for a lone request."""
    found = _scripts.get(parts)
    if found is None:
        names = {n: _FILES[n - 1].replace("_", "") for n in parts if n > 0}
        text = _lua("prelude") + "".join(_lua(_FILES[n - 1]) for n in names)
        if -1 in parts:
            text += "local decide = " + names[parts[0]] + "\n" + _lua("lone")
        else:
            table = "".join("[%d] = %s, " % named for named in names.items())
            text += "local algorithms = {" + table + "}\n" + _lua("batch")
            text += _lua("booking") + _lua("slow_path") if 0 in parts else ""
            text += _lua("take") + _lua("write")
        found = _scripts[parts] = (hashlib.sha1(text.encode()).hexdigest(), text.encode())
    return found


_FILES = (
    "token_bucket", "stepped_token_bucket", "fixed_window", "sliding_window", "sliding_log",
    "calendar_window",
)  # fmt: skip


def _lua(name: str) -> str:
    return (_files / (name + ".lua")).read_text(encoding="utf-8")


One = TypeVar("One")
All = TypeVar("All")
Done = TypeVar("Done")


class Core(Generic[One, All, Done]):
    """What both stores have in common: keys, scripts, what is asked and what is answered."""

    def __init__(self, client: Any, prefix: str, key_secret: bytes | None) -> None:
        if "{" in prefix or "}" in prefix:
            wrong("prefix", repr(prefix), "a text without braces")
        if key_secret is not None and len(key_secret) < 16:
            wrong("key_secret", "%d bytes long" % len(key_secret), "at least 16 random bytes")
        self._client, self._prefix, self._secret = client, prefix.encode(), key_secret
        self._cluster = isinstance(client, (redis.RedisCluster, redis.asyncio.RedisCluster))
        if self._cluster and client.retry.get_retries():
            want = "a client that charges once: retry=Retry(NoBackoff(), 0)"
            wrong("client", "one that repeats requests whose answer was lost", want)
        self._mutex = threading.Lock()
        self._lines: dict[bytes, deque[Any]] = {}  # the gates of those that wait, the head first
        self._no_time = False  # the server refuses TIME in scripts
        self._probe_at = 0.0

    def take(
        self,
        limit: AnyLimit,
        key: Key,
        cost: int = 1,
        *,
        headroom: int = 0,
        force: bool = False,
        max_wait: float = 0,
    ) -> One:
        """Take cost tokens of key. With max_wait, sleep decision.wait before you use the grant."""
        return self._one(Request(limit, key, cost, headroom, force, max_wait))

    def take_all(self, requests: Iterable[Request]) -> All:
        """Take all requests, or none, in one trip. In a Cluster, they need one key."""
        return self._all(list(requests))

    def peek(self, limit: AnyLimit, key: Key, *, headroom: int = 0) -> One:
        """Report whether one token would be granted. Nothing is charged."""
        return self._one(Request(limit, key, 0, headroom))

    def refund(
        self, limit: AnyLimit, key: Key, cost: int = 1, *, start_us: int | None = None
    ) -> One:
        """Return cost tokens; start_us names their grant: before that start, it is cancelled."""
        if not isinstance(cost, int) or cost < 1:
            wrong("cost", repr(cost), "at least 1")
        return self._one(Request(limit, key, -cost, start_us=start_us))

    def reset(self, limit: AnyLimit, key: Key) -> Done:
        """Put key back in its initial state under limit."""
        return self._drive(self._delete(self._call([Request(limit, key)]).asks[0].name))

    def _one(self, r: Request) -> One:
        raise NotImplementedError

    def _all(self, requests: list[Request]) -> All:
        raise NotImplementedError

    def _drive(self, trip: Trip) -> Done:
        raise NotImplementedError

    def _delete(self, name: bytes) -> Trip:
        try:
            [reply] = yield [("DEL", name)]
            if isinstance(reply, Exception):
                raise reply
        except (RedisError, OSError) as error:
            raise Unavailable("headgate: not reset: %s" % error) from error

    def _name(self, key: Key, limit: Limit) -> bytes:
        stored = key.encode() if isinstance(key, str) else key
        if self._secret is not None:
            if not re.fullmatch(rb"hash:[A-Za-z0-9_-]{21}[AQgw]", stored):
                sum16 = hmac.new(self._secret, stored, hashlib.sha256).digest()[:16]
                stored = b"hash:" + base64.urlsafe_b64encode(sum16).rstrip(b"=")
        elif len(stored) > 1024:
            stored = b"sha256:" + hashlib.sha256(stored).hexdigest().encode()
        stored = stored.replace(b"%", b"%25").replace(b"}", b"%7D") or b"%"
        return b"".join((self._prefix, b"{", stored, b"}:", limit.id.encode()))

    def _call(self, requests: Iterable[Request]) -> Call:
        asks: list[Ask] = []
        seen = set()
        for r in requests:
            limit = r.limit if isinstance(r.limit, Limit) else Limit.parse(r.limit)
            if not isinstance(r.cost, int) or not isinstance(r.headroom, int):
                wrong("cost", repr((r.cost, r.headroom)), "whole numbers of cost and headroom")
            if r.headroom < 0 or (r.headroom and (r.force or r.cost < 0 or r.max_wait)):
                wrong("headroom", r.headroom, "0, or more without force, max_wait or refund")
            if not r.max_wait >= 0 or (r.max_wait and r.force):
                wrong("max_wait", r.max_wait, "0 or more seconds, and 0 with force")
            ask = Ask(self._name(r.key, limit), limit, r)
            if len(asks) == _TOGETHER:
                wrong("requests", "more", "at most %d together" % _TOGETHER)
            if ask.name in seen:
                wrong("limit", repr(str(limit)) + " twice for one key", "one request for each")
            if self._cluster and asks and ask.name.split(b"}")[0] != asks[0].name.split(b"}")[0]:
                wrong("key", "not that of the first request", "one key: this is a Cluster")
            seen.add(ask.name)
            asks.append(ask)
        return Call(asks)

    def _trip(self, calls: list[Call]) -> Trip:
        """Decide calls: yield commands, be sent their replies, and answer the calls. Only what
        proves by its answer that nothing was charged is sent again."""
        slow = any(c.together or a.what & ~(_COSTS | _FORCED) for c in calls for a in c.asks)
        try:
            if not self._cluster and time.monotonic() >= self._probe_at:
                yield from self._probe()
            while True:
                now = time.time_ns() // 1000
                slow = slow or self._no_time
                (sha, script), keys, args = self._pack(calls, slow, now)
                args += (now,) if self._no_time else ()
                [reply] = yield [("EVALSHA", sha, len(keys), *keys, *args)]
                if _begins(reply, "NOSCRIPT", "No matching script"):
                    self._probe_at = 0.0  # it may be another server than before
                    [reply] = yield [("EVAL", script, len(keys), *keys, *args)]
                if _begins(reply, "NOTIME") and not self._no_time:
                    self._no_time = True
                elif _begins(reply, "SLOWPATH") and not slow:
                    slow = True
                else:
                    break
            if isinstance(reply, Exception):
                raise reply
            at, clock = 0, reply[-7:] if slow else b""
            for call in calls:
                try:
                    call.result = [
                        _decision(ask, reply, at + 21 * i, clock) for i, ask in enumerate(call.asks)
                    ]
                except Unavailable as error:
                    call.error = error
                at += 21 * len(call.asks)
        except BaseException as error:
            for call in calls:
                why = str(error) or type(error).__name__
                call.error = Unavailable("headgate: no decision: " + why)
                call.error.__cause__ = error
            if not isinstance(error, (RedisError, OSError, Unavailable)):
                raise

    def _pack(
        self, calls: list[Call], slow: bool, now: int
    ) -> tuple[tuple[str, bytes], list[bytes], tuple[Any, ...]]:
        first = calls[0].asks[0]
        if len(calls) == 1 and len(calls[0].asks) == 1 and not slow:
            force = b"\1" if first.what & _FORCED else b"\0"
            packed = first.limit.pack(now) + _seven(first.cost) + force
            return _script(first.limit.number, -1), [first.name], (packed,)
        keys: dict[bytes, int] = {}
        limits: dict[bytes, int] = {}
        requests: list[bytes] = []
        for call in calls:
            for i, ask in enumerate(call.asks, 1):
                what = ask.what | (_JOINED if call.together and i < len(call.asks) else 0)
                limit = bytes((ask.limit.number,)) + ask.limit.pack(ask.time or now)
                requests += (
                    bytes((what,)),
                    keys.setdefault(ask.name, len(keys) + 1).to_bytes(3, "little"),
                    limits.setdefault(limit, len(limits) + 1).to_bytes(3, "little"),
                    _seven(ask.cost) if what & _COSTS else b"",
                    ask.rest,
                )
        numbers = sorted({limit[0] for limit in limits} | ({0} if slow else set()))
        return _script(*numbers), list(keys), (b"".join(limits), b"".join(requests))

    def _probe(self) -> Trip:
        """Check that one script reaches all keys, unlike behind a proxy that routes by key."""
        head = self._prefix + b"{" + secrets.token_hex(8).encode()
        names = [head + b"%d}:@probe" % i for i in range(_PROBES)]
        replies = yield [("SET", name, b"", "PX", 10000) for name in names]
        if not any(isinstance(reply, Exception) for reply in replies):
            [seen] = yield [("EVAL", _lua("probe"), _PROBES, *names)]
            if seen != [_PROBES] and _begins(seen, "BITS", "CROSSSLOT", "MOVED"):
                raise seen
            if not isinstance(seen, Exception) and seen != [_PROBES]:
                raise Unavailable("headgate: keys are on several servers behind a proxy")
        self._probe_at = time.monotonic() + _PROBE_INTERVAL

    def _join(self, name: bytes, gate: Any) -> bool:
        """Join a line, and report whether that is its head."""
        with self._mutex:
            line = self._lines.setdefault(name, deque())
            line.append(gate)
            return len(line) == 1

    def _leave(self, name: bytes, gate: Any) -> None:
        with self._mutex:
            line = self._lines[name]
            line.remove(gate)
            if not line:
                del self._lines[name]
            else:
                line[0].set()

    def _wait(self, r: Request, ends: float) -> Generator[Request | float, Any, Decision]:
        """Wait for r as the head of a line: yield requests, and seconds to sleep."""
        if r.cost < 1 or (r.headroom and r.max_wait):
            wrong("cost", r.cost, "at least 1")
        trip, denials, lead = 0.0, 0, 0.0
        while True:
            left = max(ends - time.monotonic(), 0)
            if r.headroom:
                lead = 0
            elif denials >= _PATIENCE:
                lead = math.inf
            began = time.monotonic()
            decision: Decision = yield r._replace(max_wait=min(lead, left))
            trip = max(trip * 7 / 8, time.monotonic() - began)
            if decision.allowed:
                return decision
            denials += 1
            if decision.retry_after > ends - time.monotonic() or decision.retry_after == math.inf:
                raise denied(decision)
            lead = 2 * trip * min(denials, 4)
            yield max(decision.retry_after - (0 if r.headroom else lead), 0)


def decisions(requests: list[Request], results: list[Decision]) -> Decisions:
    """Return the answer to take_all: what is forced or only asks denies nothing."""
    pairs = zip(requests, results, strict=True)
    return Decisions(all(d or not r.cost or (r.force and r.cost > 0) for r, d in pairs), results)


def deadline(timeout: float) -> float:
    if not timeout >= 0:
        wrong("timeout", timeout, "0 or more seconds")
    return time.monotonic() + timeout


def denied(decision: Decision) -> Denied:
    return Denied(decision._replace(allowed=False))


def _begins(reply: object, *texts: str) -> bool:
    return isinstance(reply, ResponseError) and str(reply).startswith(texts)


def _decision(ask: Ask, text: bytes, at: int, clock: bytes) -> Decision:
    remaining, retry, reset = (
        int.from_bytes(text[i : i + 7], "little", signed=True) for i in (at, at + 7, at + 14)
    )
    if retry < -1:
        why = _REFUSED.get(retry, "is not a state of this limit")
        raise Unavailable("headgate: the value of %r %s" % (ask.name, why))
    most = 0 if ask.what & _FORCED and retry else ask.limit.capacity
    remaining = min(remaining if ask.what & _FORCED else max(remaining, 0), most)
    wait, reset_after = math.inf if retry < 0 else retry / 1_000_000, max(reset, 0) / 1_000_000
    if not 0 <= retry <= ask.wait:
        return Decision(False, ask.limit, remaining, wait, reset_after)
    start = None
    if clock and ask.what & _BOOKS and ask.cost > 0:
        start = (ask.time or int.from_bytes(clock, "little")) + retry
    return Decision(True, ask.limit, remaining, 0.0, reset_after, wait, start)


_REFUSED = {-3: "is not a string", -4: "was not written: the server is at maxmemory"}
