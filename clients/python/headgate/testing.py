"""Clients for tests, which need no server."""

from __future__ import annotations

import json
import math
from typing import Any

from ._client import AsyncClient, Client
from ._core import Reply

Step = bool | float | Exception


class _Script:
    """A client whose answers are a script: a step for each call that can be denied, and for peek.

    True allows, False denies, a number denies for so many seconds, math.inf for ever, and an
    exception is raised. After the last step, each call is allowed. calls lists what was asked.
    """

    def __init__(self, *script: Step) -> None:
        super().__init__()
        self.script = list(script)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def _reply(self, path: str, body: dict[str, Any] | None) -> Reply:
        body = body or {}
        self.calls.append((path, body))
        if path.startswith("keys/"):
            return 204, [], b""
        settles = path in ("refund", "commit", "renew", "release")
        step = True if settles or not self.script else self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        answer: dict[str, Any] = {"allowed": step is True, "renewed": True, "released": True}
        answer |= {"limit": "fake", "capacity": 1, "remaining": int(step is True)}
        answer["reset_after"] = 0
        answer |= {"permits": 1, "in_use": 1, "ttl": body.get("ttl", 0), "id": "fake"}
        answer |= {"reserved": 1, "used": body.get("cost", 1), "refunded": 0, "charged": 0}
        if step != math.inf:
            answer["retry_after"] = 0 if step is True else float(step) or 1
        one = [dict(answer)]
        answer |= {"limits": one, "results": one * len(body.get("requests", ()))}
        return 200, [], json.dumps(answer).encode()


class FakeClient(_Script, Client):
    def _exchange(self, path: str, body: dict[str, Any] | None) -> Reply:
        return self._reply(path, body)


class FakeAsyncClient(_Script, AsyncClient):
    async def _exchange(self, path: str, body: dict[str, Any] | None) -> Reply:
        return self._reply(path, body)


FakeClient.__doc__ = FakeAsyncClient.__doc__ = _Script.__doc__
