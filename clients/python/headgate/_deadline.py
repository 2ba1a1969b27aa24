"""Sockets whose time-outs are ends: a server that answers byte by byte does not prolong a call."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress
from typing import Any

import httpcore2


class Backend(httpcore2.SyncBackend):
    """Connects to the first address that accepts. The timeout of everything is an end, in the time
    of time.monotonic."""

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *args: Any, **kwargs: Any
    ) -> httpcore2.NetworkStream:
        error: Exception = OSError("%s has no address" % host)
        for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                found = str(address[0])
                return _Stream(super().connect_tcp(found, port, _left(timeout), *args, **kwargs))
            except (httpcore2.NetworkError, httpcore2.TimeoutException) as failed:
                error = failed
        raise error


class _Stream(httpcore2.NetworkStream):
    """A socket that sends the head and the body of a request together."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream, self._unsent = stream, b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        unsent, self._unsent = self._unsent, b""
        with suppress(httpcore2.WriteError):  # there may be an answer nevertheless
            self._stream.write(unsent, _left(timeout))
        return self._stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._unsent += buffer

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(end: float | None) -> float | None:
    """Return the seconds until an end."""
    if end is None:
        return None
    left = end - time.monotonic()
    if left <= 0:  # 0 is a socket that does not wait
        raise httpcore2.TimeoutException
    return left
