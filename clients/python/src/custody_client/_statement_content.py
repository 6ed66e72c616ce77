"""What a statement's content must satisfy, whoever signed it: a day that exists, plain decimals, and lines that add up."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Context, Decimal, Inexact
from types import NoneType

from ._signed import JsonObject

_UNSIGNED = re.compile(r"[0-9]+(\.[0-9]+)?")
_SIGNED = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_AMOUNTS = ("opening", "inbound", "outbound", "fees", "other", "closing")


def is_day(text: object) -> bool:
    """Whether text is a day that exists, as ``YYYY-MM-DD``."""
    if not isinstance(text, str) or re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def day_after(day: str) -> str:
    """The day after a day."""
    return (dt.date.fromisoformat(day) + dt.timedelta(days=1)).isoformat()


def _line_fault(line: JsonObject) -> str | None:
    # Lines that were sealed before fees had a field of their own have none.
    given = {"fees": "0", **line}
    amounts = {}
    for name in _AMOUNTS:
        value = given.get(name)
        if not isinstance(value, str) or (_SIGNED if name == "other" else _UNSIGNED).fullmatch(value) is None:
            return f"{name} is not a decimal"
        amounts[name] = Decimal(value)
    # With room for every digit of all amounts; a sum that loses one raises an error.
    exact = Context(prec=sum(len(str(given[name])) for name in _AMOUNTS) + len(_AMOUNTS), traps=[Inexact])
    total = amounts["opening"]
    for name, sign in (("inbound", 1), ("outbound", -1), ("fees", -1), ("other", 1)):
        total = exact.add(total, amounts[name]) if sign > 0 else exact.subtract(total, amounts[name])
    return None if total == amounts["closing"] else "closing is not opening + inbound − outbound − fees + other"


def content_fault(statement: JsonObject) -> str | None:
    """Why a statement's content is not valid; None if it is."""
    date, revision, lines = (statement.get(name) for name in ("date", "revision", "assets"))
    which = f"the statement of {date}, revision {revision}"
    if not is_day(date):
        return f"{which}: {date} is not a day"
    if type(revision) is not int or revision < 1:
        return f"{which}: {revision} is not the number of a revision"
    if not isinstance(statement.get("previousHash"), (str, NoneType)):
        return f"{which} has a previous hash that is not one"
    if not isinstance(lines, list):
        return f"{which} has no lines"
    known = set()
    for line in lines:
        asset = line.get("asset") if isinstance(line, dict) else None
        if not isinstance(asset, str):
            return f"{which} has a line without an asset"
        if asset in known:
            return f"{which} has two lines of {asset}"
        known.add(asset)
        fault = _line_fault(line)
        if fault is not None:
            return f"{which}, the line of {asset}: {fault}"
    return None


def missing_day(in_order: Sequence[JsonObject]) -> str | None:
    """The day without a statement between the first and the last of these; None if there is none."""
    for previous, one in zip(in_order, in_order[1:]):
        if one["date"] != day_after(previous["date"]):
            return day_after(previous["date"])
    return None


def opening_fault(previous: JsonObject, one: JsonObject) -> str | None:
    """Why the statement of a day does not begin with the balances that the day before ended with; None if it does."""
    closings = {line["asset"]: line["closing"] for line in previous["assets"]}
    openings = {line["asset"]: line["opening"] for line in one["assets"]}
    for asset in closings | openings:
        # A line of zeros may be absent.
        closing, opening = closings.get(asset, "0"), openings.get(asset, "0")
        if Decimal(closing) != Decimal(opening):
            return f"the opening of {asset} on {one['date']} is {opening}, but the closing of the day before is {closing}"
    return None
