"""Client of headgate serve, the rate limit server. Python 3.10 and newer, no dependencies.

All durations are seconds. A wait of None means never.
"""

import http.client
import json
import os
import select
import threading
import time
import urllib.parse
from typing import Any

# A connection that was idle for longer, or that the server has closed, is not used again. So a
# request is sent once: nothing is charged twice.
_MAX_IDLE = 20.0

_MAX_SLEEP = 86400.0  # some systems refuse a longer one


class Error(Exception):
    """A request that was not answered with a decision."""

    def __init__(
        self, message: str, status: int | None = None, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status  # HTTP status; None without an answer
        self.field = field  # the field of the request that is wrong, or None


class Invalid(Error):
    """The request is wrong: an unknown rule or token, or a field that is not accepted."""


class Unavailable(Error):
    """The server or its store does not answer, or cannot check the limits. A cost may be charged."""


class Denied(Error):
    """A with statement has entered a reservation or permit that was denied."""

    def __init__(self, answer: Any) -> None:
        super().__init__("denied; retry after %s s" % answer.retry_after, 200)
        self.answer = answer


class Answer(dict):
    """An answer of the server, with its members as attributes, such as answer.allowed.

    A denial is false.
    """

    _defaults = {"degraded": False, "shadow_denied": False, "wait": 0, "id": None}

    def __bool__(self):
        return self.get("allowed", True)

    def __getattr__(self, name):
        if name in self:
            return self[name]
        if name in self._defaults:
            return self._defaults[name]
        raise AttributeError("the answer has no member " + name)


class Reservation(Answer):
    """A reservation. Commit the real cost; an exception in its with statement cancels it.

    With max_wait, its start can be ahead: the with statement waits for it.
    """

    def commit(self, cost):
        """Settle the reservation at the cost that was used. Call it once."""
        self._settled = True
        return self._client._post("commit", {"id": self.id, "cost": cost})

    def cancel(self):
        """Return all reserved tokens."""
        return self.commit(0)

    def __enter__(self):
        if not self.allowed:
            raise Denied(self)
        try:
            self._await_start()
        except BaseException:  # such as KeyboardInterrupt
            self._abandon()
            raise
        return self

    def __exit__(self, kind, value, traceback):
        if kind is not None:
            self._abandon()

    def _await_start(self):
        while True:
            left = self._start - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _MAX_SLEEP))

    def _abandon(self):
        if not self._settled:
            try:
                self.cancel()
            except Error:
                pass  # it stays charged; report the caller's exception instead


class Permit(Answer):
    """A permit. Leaving a with statement releases it. It expires after its TTL.

    If it was acquired with after, it stays in use that many seconds longer; after an exception, until
    its TTL has passed.
    """

    def renew(self, ttl=None):
        """Extend the permit to at least ttl seconds from now. Return False if it has expired."""
        ttl = self.ttl if ttl is None else ttl
        return self._client._post("renew", {"id": self.id, "ttl": ttl})["renewed"]

    def release(self, after=None):
        """Release the permit after so many seconds, by default those of acquire.

        Return False if it had expired.
        """
        body = {"id": self.id}
        after = self._after if after is None else after
        if after:
            body["after"] = after
        return self._client._post("release", body)["released"]

    def __enter__(self):
        if not self.allowed:
            raise Denied(self)
        return self

    def __exit__(self, kind, value, traceback):
        if kind is not None and self._after:
            return  # the request may still arrive
        try:
            self.release()
        except Unavailable:
            pass  # it expires


class Client:
    """Client of one server. Threads and forks may share it; each has a connection of its own."""

    def __init__(self, url="http://127.0.0.1:8080", token=None, timeout=2.0, context=None):
        """timeout limits each step of a request, in seconds; context is an ssl.SSLContext for https."""
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url is %r; want http://HOST:PORT or https://HOST:PORT" % url)
        if timeout is not None and not timeout > 0:
            raise ValueError("timeout is %r; want more than 0 seconds, or None for none" % timeout)
        self._path = parts.path.rstrip("/") + "/v1/"
        self._parts, self._timeout, self._context = parts, timeout, context
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = "Bearer " + token
        self._local = threading.local()

    def take(self, rule=None, key="", cost=None, limit=None, max_wait=0, force=False,
             headroom=None):
        """Take cost tokens of key, under a rule of the server or an inline limit.

        With max_wait, sleep answer.wait seconds before you use the grant. With headroom, it is
        granted only if that many tokens are left afterwards.
        """
        body = _target(rule, limit, key, cost=cost, headroom=headroom)
        if max_wait:
            body["max_wait"] = max_wait
        if force:
            body["force"] = True
        return self._post("take", body)

    def take_all(self, requests):
        """Take all requests of a list, or none. Each is a dict with rule, key, cost, headroom."""
        answer = self._post("take-all", {"requests": list(requests)})
        answer["results"] = [Answer(r) for r in answer["results"]]
        return answer

    def peek(self, rule=None, key="", limit=None, headroom=None):
        """Report the state of key. Nothing is charged."""
        answer = self._post("peek", _target(rule, limit, key, headroom=headroom))
        answer["limits"] = [Answer(state) for state in answer["limits"]]
        return answer

    def refund(self, rule=None, key="", cost=None, limit=None):
        """Return cost tokens to key."""
        return self._post("refund", _target(rule, limit, key, cost=cost))

    def reserve(self, rule=None, key="", cost=None, limit=None, max_wait=0):
        """Reserve an estimated cost. Use it in a with statement, and commit the real cost.

        The with statement waits at most max_wait seconds until the start of the reservation.
        """
        body = _target(rule, limit, key, cost=cost)
        if max_wait:
            body["max_wait"] = max_wait
        return self._own(Reservation(self._post("reserve", body)))

    def acquire(self, rule, key="", ttl=60, after=0, headroom=None):
        """Acquire a permit, if headroom permits are free afterwards. Use it in a with statement.

        For an API that counts requests as they arrive, after is the period of its limit.
        """
        body = dict(_target(rule, None, key, headroom=headroom), ttl=ttl)
        permit = Permit(self._post("acquire", body))
        permit.__dict__["_after"] = after
        return self._own(permit)

    def reset(self, rule, key):
        """Reset key to its initial state under a rule."""
        path = "keys/%s/%s" % (urllib.parse.quote(rule, ""), urllib.parse.quote(key, ""))
        self._send("DELETE", path, None)

    def close(self):
        """Close the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _own(self, answer):
        answer.__dict__.update(_client=self, _settled=False, _start=time.monotonic() + answer.wait)
        return answer

    def _post(self, path, body):
        return Answer(self._send("POST", path, json.dumps(body)))

    def _send(self, method, path, body):
        try:
            connection = self._connect()
            connection.request(method, self._path + path, body, self._headers)
            response = connection.getresponse()
            status, text = response.status, response.read()
            self._local.used = time.monotonic()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            why = str(error) or type(error).__name__
            raise Unavailable("headgate: no answer: " + why) from error
        try:
            answer = json.loads(text) if text else {}
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise Unavailable("headgate: the answer is no JSON object", status)
        if status >= 300:
            kind = Unavailable if status >= 500 else Invalid
            detail = answer.get("detail", "status %d" % status)
            raise kind("headgate: " + detail, status, answer.get("field"))
        return answer

    def _connect(self):
        connection = getattr(self._local, "connection", None)
        kept = connection is not None and connection.sock is not None
        if kept and self._local.process == os.getpid():  # after a fork, it is of the parent
            idle = time.monotonic() - self._local.used
            if idle <= _MAX_IDLE and not _is_readable(connection.sock):
                return connection
        self.close()
        host, port = self._parts.hostname, self._parts.port
        if self._parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                host, port, timeout=self._timeout, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        self._local.connection, self._local.process = connection, os.getpid()
        return connection


def _target(rule, limit, key, **more):
    named = dict(more, rule=rule, limit=limit)  # the server refuses both, and none
    return dict({n: v for n, v in named.items() if v is not None}, key=key)


def _is_readable(sock):
    """Report whether an idle connection was closed: a server does not begin to speak."""
    if not hasattr(select, "poll"):  # Windows, where select accepts any socket
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
