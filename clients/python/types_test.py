"""What type checkers see. mypy and pyright report each comment here that hides no error."""

from collections.abc import Coroutine
from typing import Any, assert_type

import headgate


def client(limits: headgate.Client) -> None:
    answer = limits.take("login", "a", limit=None)
    assert_type(answer.remaining, float)
    answer.remaning  # type: ignore
    limits.take("login", "a", cost="3")  # type: ignore
    headgate.Client("http://127.0.0.1:8080", timeout="2")  # type: ignore
    assert_type(limits.peek("login").limits, list[headgate.Decision])
    with limits.reserve("tokens") as reservation, limits.acquire("exports") as permit:
        assert_type(reservation.commit(1).refunded, int)
        assert_type(permit.renew(), bool)

    @limits.limit("login", key=lambda name: "user:" + name)
    def greet(name: str) -> str:
        return name

    assert_type(greet("ann"), str)
    greet(1)  # type: ignore


async def async_client(limits: headgate.AsyncClient) -> None:
    taking = assert_type(limits.take("login"), Coroutine[Any, Any, headgate.Decision])
    assert_type((await taking).remaining, float)
    assert_type((await limits.wait("login", timeout=1)).allowed, bool)
    limits.take("login").allowed  # type: ignore
    assert_type(await limits.reserve("tokens"), headgate.AsyncReservation)
    async with limits.acquire("exports") as permit:
        assert_type(await permit.release(after=1), bool)

    @limits.limit("login")
    async def greet(name: str) -> str:
        return name

    assert_type(await greet("ann"), str)
