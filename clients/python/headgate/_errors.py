"""The errors of all clients."""

from __future__ import annotations

import math
from typing import Any


class Error(Exception):
    """A request that was not answered with a decision."""

    def __init__(self, message: str, status: int | None = None, field: str | None = None) -> None:
        super().__init__(message, status, field)
        self.status = status  # HTTP status; None without an answer
        self.field = field  # the field of the request that is wrong, or None

    def __str__(self) -> str:
        return str(self.args[0])


class Invalid(Error):
    """The request is wrong: an unknown rule or token, or a field that is not accepted."""


class Unavailable(Error):
    """The server or its store does not answer, or cannot check limits. A cost may be charged."""


class Denied(Error):
    """A request that had to be granted was denied: by a with statement, wait or a decorator."""

    def __init__(self, answer: Any) -> None:
        Exception.__init__(self, answer)
        self.status, self.field = 200, None
        self.answer = answer
        self.retry_after: float = answer.retry_after  # seconds; math.inf: never

    def __str__(self) -> str:
        never = self.retry_after == math.inf
        return "denied; " + ("no wait helps" if never else "retry after %s s" % self.retry_after)
