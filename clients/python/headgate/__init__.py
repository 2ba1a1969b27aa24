"""Clients of headgate serve, the rate limit server. All durations are seconds."""

from ._answers import (
    AsyncPermit,
    AsyncReservation,
    Decision,
    Decisions,
    Permit,
    Reservation,
    Settlement,
)
from ._client import AsyncClient, Client
from ._errors import Denied, Error, Invalid, Unavailable

__all__ = [
    "AsyncClient",
    "AsyncPermit",
    "AsyncReservation",
    "Client",
    "Decision",
    "Decisions",
    "Denied",
    "Error",
    "Invalid",
    "Permit",
    "Reservation",
    "Settlement",
    "Unavailable",
]
