"""What both clients have in common."""

from __future__ import annotations

import functools
import inspect
import json
import math
import ssl
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

import httpcore2

from ._answers import Decision, Decisions, foreign, read
from ._errors import Invalid, Unavailable

# A connection that was idle for longer, or that the server has closed, is not used again. So a
# request is sent once: nothing is charged twice.
_MAX_IDLE = 20.0

_MAX_TIMEOUT = 86400.0
_MAX_AHEAD = 366 * 86400.0  # the longest max_wait that the server accepts

One = TypeVar("One")
All = TypeVar("All")
Held = TypeVar("Held")
Lent = TypeVar("Lent")
Done = TypeVar("Done")
F = TypeVar("F", bound=Callable[..., Any])
Reader = Callable[[dict[str, Any]], Any]
Reply = tuple[int, list[tuple[bytes, bytes]], bytes]


class Core(Generic[One, All, Held, Lent, Done]):
    """What both clients have in common: what they ask, and how they read answers."""

    _reservation: type[Any]
    _permit: type[Any]

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        token: str | None = None,
        timeout: float | None = 2.0,
        *,
        connections: int = 10,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """timeout limits a whole call, in seconds; context is for https.

        At most that many connections are open at a time. Further calls wait for one.
        """
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii():
            raise ValueError("url is %r; want http://HOST:PORT or https://HOST:PORT" % url)
        if timeout is not None and not 0 < timeout <= _MAX_TIMEOUT:
            raise ValueError(
                "timeout is %r; want more than 0 and at most 86400 seconds, or None" % timeout
            )
        if connections < 1:
            raise ValueError("connections is %r; want at least 1" % connections)
        if token and not (token.isascii() and token.isprintable()):
            raise ValueError("token has a character that no header field can have")
        self._arguments: dict[str, Any] = dict(
            url=url, token=token, timeout=timeout, connections=connections, context=context
        )
        self._timeout, self._connections = timeout, connections
        self._url = httpcore2.URL(url.rstrip("/") + "/v1/")
        self._to: dict[str, Any] = dict(
            origin=self._url.origin, ssl_context=context, keepalive_expiry=_MAX_IDLE
        )
        self._headers = {
            "Host": parts.netloc.rpartition("@")[2],
            "Content-Type": "application/json",
        }
        if token:
            self._headers["Authorization"] = "Bearer " + token
        self._open()

    def __reduce__(self) -> Any:
        return functools.partial(type(self), **self._arguments), ()

    def take(
        self,
        rule: str | None = None,
        key: str = "",
        cost: int | None = None,
        *,
        limit: str | None = None,
        max_wait: float = 0,
        force: bool = False,
        headroom: int | None = None,
    ) -> One:
        """Take cost tokens of key, under a rule of the server or an inline limit.

        With max_wait, sleep answer.wait seconds before you use the grant. With headroom, it is
        granted only if that many tokens are left afterwards. force charges what does not fit.
        """
        body = _target(rule, limit, key, cost=cost, headroom=headroom)
        if max_wait:
            body["max_wait"] = max_wait
        if force:
            body["force"] = True
        return self._decision("take", body)

    def take_all(self, requests: Iterable[Mapping[str, Any]]) -> All:
        """Take all requests of a list, or none. Each is a dict with rule, key, cost, headroom."""
        answer: All = self._call(
            "take-all", {"requests": list(requests)}, functools.partial(read, Decisions, {})
        )
        return answer

    def peek(
        self,
        rule: str | None = None,
        key: str = "",
        *,
        limit: str | None = None,
        headroom: int | None = None,
    ) -> One:
        """Report the state of key. Nothing is charged."""
        return self._decision("peek", _target(rule, limit, key, headroom=headroom))

    def refund(
        self,
        rule: str | None = None,
        key: str = "",
        cost: int | None = None,
        *,
        limit: str | None = None,
    ) -> One:
        """Return cost tokens to key."""
        return self._decision("refund", _target(rule, limit, key, cost=cost))

    def reserve(
        self,
        rule: str | None = None,
        key: str = "",
        cost: int | None = None,
        *,
        limit: str | None = None,
        max_wait: float = 0,
    ) -> Held:
        """Reserve an estimated cost. Use it in a with statement, and commit the real cost.

        The with statement waits at most max_wait seconds until the start of the reservation.
        """
        body = _target(rule, limit, key, cost=cost)
        if max_wait:
            body["max_wait"] = min(max_wait, _MAX_AHEAD)
        held: Held = self._hold("reserve", body, self._reader(self._reservation))
        return held

    def acquire(
        self,
        rule: str,
        key: str = "",
        *,
        ttl: float = 60,
        after: float = 0,
        headroom: int | None = None,
    ) -> Lent:
        """Acquire a permit, if headroom permits are free afterwards. Use it in a with statement.

        For an API that counts requests as they arrive, after is the period of its limit.
        """
        body = _target(rule, None, key, headroom=headroom, ttl=ttl)
        lent: Lent = self._hold("acquire", body, self._reader(self._permit, _after=after))
        return lent

    def wait(
        self,
        rule: str | None = None,
        key: str = "",
        cost: int | None = None,
        *,
        limit: str | None = None,
        timeout: float = math.inf,
    ) -> One:
        """Take cost tokens, and sleep until they may be used. Raise Denied if that is not before
        timeout. What interrupts the sleep gives the tokens back, unless others come after it."""
        if not timeout >= 0:
            raise ValueError("timeout is %r; want 0 or more seconds" % timeout)
        answer: One = self._enter(self.reserve(rule, key, cost, limit=limit, max_wait=timeout))
        return answer

    def reset(self, rule: str, key: str) -> Done:
        """Reset key to its initial state under a rule."""
        path = "keys/%s/%s" % (urllib.parse.quote(rule, ""), urllib.parse.quote(key, ""))
        done: Done = self._call(path.replace(".", "%2E"), None, _nothing)  # .. is a path
        return done

    def limit(
        self,
        rule: str | None = None,
        key: str | Callable[..., str] = "",
        cost: int | None = None,
        *,
        limit: str | None = None,
        timeout: float = 0,
    ) -> Callable[[F], F]:
        """Decorate a function: each call of it waits at most timeout seconds for cost tokens, or
        raises Denied. key is a text, or a function of the arguments that returns it."""

        def wait(*args: Any, **kwargs: Any) -> Any:
            of = key if isinstance(key, str) else key(*args, **kwargs)
            return self.wait(rule, of, cost, limit=limit, timeout=timeout)

        def decorate(function: F) -> F:
            def waiting(*args: Any, **kwargs: Any) -> Any:
                wait(*args, **kwargs)
                return function(*args, **kwargs)

            async def waiting_async(*args: Any, **kwargs: Any) -> Any:
                await wait(*args, **kwargs)
                return await function(*args, **kwargs)

            is_async = inspect.iscoroutinefunction(function)
            if is_async != inspect.iscoroutinefunction(self._call):
                raise TypeError("%r: want AsyncClient for async functions only" % function)
            decorated: Any = waiting_async if is_async else waiting
            functools.update_wrapper(decorated, function)
            return cast(F, decorated)

        return decorate

    def _open(self) -> None:
        """Begin without connections."""
        raise NotImplementedError

    def _decision(self, path: str, body: dict[str, Any]) -> One:
        answer: One = self._call(path, body, functools.partial(read, Decision, {}))
        return answer

    def _call(self, path: str, body: dict[str, Any] | None, reader: Reader) -> Any:
        """Send a request, a DELETE if it has no body, and read its answer."""
        raise NotImplementedError

    def _reader(self, kind: type[Any], **more: Any) -> Reader:
        return functools.partial(read, kind, {"_client": self, **more})

    def _hold(self, path: str, body: dict[str, Any], reader: Reader) -> Any:
        """Reserve or acquire what a with statement holds."""
        return self._call(path, body, reader)

    def _enter(self, held: Any) -> Any:
        """Enter the with statement of a reservation, and leave it."""
        raise NotImplementedError

    def _request(self, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        """Return the arguments of an HTTP request."""
        to = self._url
        return {
            "method": "DELETE" if body is None else "POST",
            "url": httpcore2.URL(
                scheme=to.scheme, host=to.host, port=to.port, target=to.target + path.encode()
            ),
            "headers": self._headers,
            "content": None if body is None else json.dumps(body).encode(),
        }


def _target(rule: str | None, limit: str | None, key: str, **more: Any) -> dict[str, Any]:
    named = dict(more, rule=rule, limit=limit)  # the server refuses both, and none
    return {"key": key, **{name: value for name, value in named.items() if value is not None}}


def _nothing(body: dict[str, Any]) -> None:
    if body:
        raise foreign()


def parse(status: int, headers: list[tuple[bytes, bytes]], content: bytes) -> dict[str, Any]:
    """Return the JSON object of an answer, empty for status 204, or raise its problem."""
    if status == 204:
        return {}
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not body:
        raise foreign(status)
    if status == 200:
        return body
    kinds = [value for name, value in headers if name.lower() == b"content-type"]
    if kinds != [b"application/problem+json"]:  # another program, such as a gateway
        raise foreign(status)
    error = Invalid if 400 <= status < 500 and status != 429 else Unavailable
    raise error("headgate: " + str(body.get("detail")), status, body.get("field"))
