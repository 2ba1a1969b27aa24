"""Limits: their text form, their numbers, and the bounds of calendars. See docs/protocol.md."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import NoReturn
from zoneinfo import ZoneInfo

from . import Invalid

MAX_EXACT = 2**53 - 1
ALGORITHMS = (
    "token-bucket", "stepped", "fixed-window", "sliding-window", "sliding-log", "calendar-window",
)  # fmt: skip
_ALSO = {"gcra": "token-bucket", "leaky-bucket": "token-bucket"}
_UNITS = {
    "w": 604_800_000_000, "d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000,
    "s": 1_000_000, "ms": 1000, "us": 1,
}  # fmt: skip
_WORDS = {
    "week": "w", "day": "d", "hour": "h", "min": "m", "minute": "m", "sec": "s", "second": "s",
    "µs": "us",
}  # fmt: skip
_CALENDARS = {"d": "day", "w": "week"} | {unit: unit for unit in ("day", "week", "month", "year")}


def wrong(field_: str, value: object, want: str) -> NoReturn:
    raise Invalid("headgate: %s is %s; want %s" % (field_, value, want), field=field_)


@dataclass(frozen=True)
class Limit:
    """A limit. Make one with parse or of, and keep it."""

    algorithm: str
    capacity: int  # the most tokens at once, or the most grants in a window
    refill: int  # tokens that a bucket gains each period; 0 for windows
    period_us: int  # 0 for calendars
    name: str = ""
    unit: str = ""  # of a calendar: day, week, month or year
    zone: str = ""
    anchor: tuple[int, int] = (0, 0)  # its month and day
    id: str = field(init=False, compare=False)  # what state belongs to, besides the key
    number: int = field(init=False, compare=False, repr=False)
    packed: bytes = field(init=False, compare=False, repr=False)
    _bounds: list[tuple[int, int, int]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        a, b = self.period_us, 0
        if self.algorithm == "token-bucket":
            g = gcd(self.refill, self.period_us)
            a, b = self.refill // g, self.period_us // g
        elif self.algorithm == "stepped":
            a, b = self.refill, self.period_us
        end = " ".join(filter(None, [self.unit or _period(self.period_us), self.algorithm]))
        identity = self.name + " " + end
        if not self.name:
            identity = self._text()
        elif self.algorithm == "token-bucket":
            identity = self.name
        elif self.algorithm == "stepped":
            identity = self.name + " stepped"
        for name, value in {
            "id": identity,
            "number": ALGORITHMS.index(self.algorithm) + 1,
            "packed": b"".join(n.to_bytes(7, "little") for n in (self.capacity, a, b)),
            "_bounds": [],
        }.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def parse(text: str) -> Limit:
        """Read the text form, such as "100/m burst 20" or "5/15m sliding-log"."""
        return _parse(text)

    @staticmethod
    def of(
        count: int,
        period: float | str,
        *,
        burst: int | None = None,
        algorithm: str = "token-bucket",
        name: str = "",
        zone: str = "",
        anchor: str = "",
    ) -> Limit:
        """Make a limit of its parts: period is in seconds, or a text such as "15m" or "month"."""
        if not isinstance(period, str):
            period = "%dus" % round(period * 1_000_000)
        words = ["%s/%s" % (count, period), "" if zone or anchor else algorithm]
        for option, value in (("burst", burst), ("tz", zone), ("anchor", anchor)):
            words += [option, str(value)] if value not in (None, "") else []
        return _parse((name + "=" if name else "") + " ".join(words))

    def __str__(self) -> str:
        return (self.name + "=" if self.name else "") + self._text()

    def pack(self, now_us: int) -> bytes:
        """Return the numbers that the scripts need; a calendar has those of a time."""
        if not self.unit:
            return self.packed
        start, following, last = self.bounds(now_us)
        lengths = (following - start) // 1_000_000 * 2**26 + (last - following) // 1_000_000
        return self.packed[:7] + start.to_bytes(7, "little") + lengths.to_bytes(7, "little")

    def bounds(self, now_us: int) -> tuple[int, int, int]:
        """Return where the window of a calendar at a time begins, and the next two."""
        for found in self._bounds:
            if found[0] <= now_us < found[1]:
                return found
        zone, seconds = ZoneInfo(self.zone), now_us // 1_000_000
        n = self._window(_at(seconds, zone).date())
        first = second = self._start(n, zone)
        while second == first or second <= seconds:  # clocks skip it, or are set back past it
            n += 1
            first, second = second, self._start(n, zone)
        third = second
        while third == second:
            n += 1
            third = self._start(n, zone)
        found = (max(first, 0) * 1_000_000, second * 1_000_000, third * 1_000_000)
        self._bounds[:] = [found]
        return found

    def _window(self, date: datetime.date) -> int:
        month, day = self.anchor
        if self.unit == "year":
            before = (date.month, date.day) < (month, _anchor_day(date.year, month, day))
            return date.year - before
        if self.unit == "month":
            before = date.day < _anchor_day(date.year, date.month, day)
            return 12 * date.year + date.month - 1 - before
        days = date.toordinal()
        return (days - 1) // 7 if self.unit == "week" else days  # day 1 was a Monday

    def _start(self, n: int, zone: ZoneInfo) -> int:
        month, day = self.anchor
        if self.unit == "year":
            date = datetime.date(n, month, _anchor_day(n, month, day))
        elif self.unit == "month":
            year, month = n // 12, n % 12 + 1
            date = datetime.date(year, month, _anchor_day(year, month, day))
        else:
            date = datetime.date.fromordinal(7 * n + 1 if self.unit == "week" else n)
        return _first(date, zone)

    def _text(self) -> str:
        if self.unit:
            text = "%d/%s" % (self.capacity, self.unit)
            if self.zone != "UTC" or self.unit in ("day", "week"):
                text += " tz " + self.zone
            month, day = self.anchor
            if day > 1 or month > 1:
                text += " anchor " + ("%02d-%02d" % (month, day) if month else str(day))
            return text
        count = self.refill or self.capacity
        text = "%d/%s" % (count, _period(self.period_us))
        if count != self.capacity:
            text += " burst %d" % self.capacity
        return text if self.algorithm == "token-bucket" else text + " " + self.algorithm

    def _check(self) -> None:
        if self.name and not re.fullmatch("[A-Za-z][A-Za-z0-9._-]{0,63}", self.name):
            wrong("limit name", repr(self.name), "1 to 64 letters, digits, '.', '-' and '_'")
        if self.capacity < 1 and self.algorithm != "fixed-window":
            wrong("count", self.capacity, 'at least 1, or "0/d fixed-window" to deny all')
        if self.unit:
            self._check_calendar()
        elif not 1 <= self.period_us <= MAX_EXACT:
            wrong("period", "%d us" % self.period_us, "at least 1 us and at most 285 years")
        period, most = max(self.period_us, 1), MAX_EXACT
        if self.algorithm == "token-bucket":
            most = MAX_EXACT // 2 // (period // gcd(self.refill, period))
        elif self.algorithm == "stepped":
            steps = min(MAX_EXACT // period * self.refill, MAX_EXACT)
            most = min(steps, 2**62 // period - 1, MAX_EXACT // 2)
        elif self.algorithm == "sliding-window":
            most = min(2**32 - 1, MAX_EXACT // 2 // period)
        elif self.algorithm == "sliding-log":
            most = 65535
        if self.capacity > most or most < 1:
            wrong("count", self.capacity, "at most %d, to be counted exactly" % most)

    def _check_calendar(self) -> None:
        month, day = self.anchor
        try:
            ZoneInfo(self.zone if self.zone != "Local" else "")
            known = True
        except (ValueError, OSError, LookupError):
            known = False
        if not known:
            wrong("time zone", repr(self.zone), "UTC, or a name such as Europe/Zurich")
        good = month == day == 0
        if self.unit == "month":
            good = month == 0 and 1 <= day <= 31
        elif self.unit == "year":
            good = 1 <= month <= 12 and 1 <= day <= _anchor_day(2024, month, 31)
        if not good:
            wrong("anchor", "%d-%d" % (month, day), "a day of a month, or 04-17 of a year")


def _anchor_day(year: int, month: int, day: int) -> int:
    following = datetime.date(year + month // 12, month % 12 + 1, 1)
    return min(day, (following - datetime.timedelta(1)).day)


def _at(seconds: int, zone: ZoneInfo) -> datetime.datetime:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (epoch + datetime.timedelta(seconds=seconds)).astimezone(zone)


def _first(date: datetime.date, zone: ZoneInfo) -> int:
    """Return the first second at which clocks show a date, or a later one."""

    def offset(seconds: int) -> float:
        shift = _at(seconds, zone).utcoffset()
        return shift.total_seconds() if shift is not None else 0

    midnight = (date.toordinal() - 719163) * 86400
    at = midnight - 48 * 3600
    while True:
        here = offset(at)
        if at + here >= midnight:
            return at
        following = min(int(midnight - here), at + 3600)
        if offset(following) != here:  # find the second at which clocks are set
            low = at
            while following - low > 1:
                middle = (low + following) // 2
                low, following = (middle, following) if offset(middle) == here else (low, middle)
        at = following


def _period(micros: int) -> str:
    for unit, size in _UNITS.items():
        if micros and micros % size == 0:
            return unit if micros == size else "%d%s" % (micros // size, unit)
    return "0s"


@lru_cache(maxsize=4096)
def _parse(text: str) -> Limit:
    name, equals, rest = text.partition("=")
    if not equals:
        name, rest = "", text
    elif not name.strip():
        wrong("limit name", "empty", "a name before '='")
    words = rest.split() or [""]
    count, slash, period = words[0].partition("/")
    if not slash:
        want = '"100/m", "10/s burst 50", "5/15m sliding-log" or "api=1000/d fixed-window"'
        wrong("limit", repr(text), "a form like " + want)
    options = _options(words[1:])
    calendar = options.keys() & {"tz", "anchor"} or options.get("algorithm") == "calendar-window"
    if calendar or period in ("month", "year"):
        return _calendar(name.strip(), count, period, options)
    whole, _, fraction = count.partition(".")
    good = re.fullmatch(r"[0-9]{1,19}(\.[0-9]{1,9})?", count)
    if not good or int(whole + fraction) > MAX_EXACT:
        wrong("count", repr(count), "a whole or decimal number, at most %d" % MAX_EXACT)
    n, scale = int(whole + fraction), 10 ** len(fraction)
    n, scale = n // gcd(n, scale), scale // gcd(n, scale)
    micros = _micros(period)
    algorithm = options.get("algorithm", "token-bucket")
    if algorithm in ("token-bucket", "stepped"):
        if n < 1 or micros > MAX_EXACT // scale:
            wrong("count", repr(count), "at least 1, with fewer decimals, or a shorter period")
        burst = int(options["burst"] if "burst" in options else -(-n // scale))
        return Limit(algorithm, burst, n, micros * scale, name.strip())
    if "burst" in options or scale != 1:
        wrong("limit", repr(text), "a whole count and no burst: only buckets have those")
    return Limit(algorithm, n, 0, micros, name.strip())


def _options(words: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    rest = iter(words)
    for given in rest:
        word = _ALSO.get(given, given)
        option, value = ("algorithm", word) if word in ALGORITHMS else (word, next(rest, ""))
        if option not in ("algorithm", "burst", "tz", "anchor") or not value:
            want = "burst N, tz ZONE, anchor DAY, or one of " + ", ".join(ALGORITHMS)
            wrong("option", repr(word), want)
        if option in options:
            wrong(option, repr(value) + " after another", "one " + option)
        if option == "burst" and (not re.fullmatch("[0-9]{1,19}", value) or int(value) < 1):
            wrong("burst", repr(value), "a whole number of at least 1")
        options[option] = value
    return options


def _micros(period: str) -> int:
    parts = re.findall("([0-9]{1,19})([^0-9]+)", period)
    if _WORDS.get(period, period) in _UNITS:
        parts = [("1", period)]
    elif not parts or "".join(n + unit for n, unit in parts) != period:
        parts = [("1", "?")]
    sizes = [_UNITS.get(_WORDS.get(unit, unit), 0) for _, unit in parts]
    if 0 in sizes:
        wrong("period", repr(period), "such as s, 15m, 1h30m or d, or month or year")
    return sum(int(n) * size for (n, _), size in zip(parts, sizes, strict=False))


def _calendar(name: str, count: str, period: str, options: dict[str, str]) -> Limit:
    unit = _CALENDARS.get(period, "")
    algorithm = options.get("algorithm", "calendar-window")
    if not re.fullmatch("[0-9]{1,19}", count) or not 1 <= int(count) <= MAX_EXACT:
        wrong("count", repr(count), "a whole number from 1 to %d for a calendar" % MAX_EXACT)
    if not unit or "burst" in options or algorithm != "calendar-window":
        wrong("period", repr(period), "day, week, month or year alone for a calendar")
    anchor = {"month": (0, 1), "year": (1, 1)}.get(unit, (0, 0))
    text = options.get("anchor")
    if text is not None:
        month, _, day = text.rpartition("-")
        if not re.fullmatch("(?:[0-9]{1,9}-)?[0-9]{1,9}", text):
            wrong("anchor", repr(text), "a day such as 17, or a month and day such as 04-17")
        anchor = (int(month or 0), int(day))
    return Limit("calendar-window", int(count), 0, 0, name, unit, options.get("tz", "UTC"), anchor)
