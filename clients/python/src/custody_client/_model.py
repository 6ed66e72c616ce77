"""Typed results from the API's JSON, and the API's text for Python values.

Amounts are ``Decimal``, times are aware ``datetime``. Fields that this version does not know stay in ``raw``, and values that it
does not know are kept as they are. A field that is missing or has another type is a :class:`DecodeError`.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


class DecodeError(ValueError):
    """JSON that is not what the API's contract describes."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A JSON object of the API."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The object as it was received, including fields that this version of the client does not know."""

    @classmethod
    def _class_of(cls, _value: Mapping[str, Any]) -> type[Model]:
        return cls


@dataclass(frozen=True, kw_only=True)
class Event(Model):
    """The body of a delivery.

    Each kind has a subclass in ``custody_client.models``. An event of a kind or schema version that this version of the client
    does not know is an ``Event`` itself, and its ``data`` is JSON.
    """

    id: str
    """The event's id: deduplicate on it."""
    kind: str
    schema_version: int
    date: dt.datetime
    """When it occurred: order by it."""
    entity_id: str
    vault_ids: list[str] | None
    """The vaults involved; None if the event is not vault-scoped."""
    data: Any

    _classes: ClassVar[dict[tuple[object, object], type[Event]]] = {}

    def __init_subclass__(cls, *, kind: str, version: int) -> None:
        Event._classes[kind, version] = cls

    @classmethod
    def _class_of(cls, value: Mapping[str, Any]) -> type[Model]:
        kind, version = value.get("kind"), value.get("schemaVersion")
        return Event._classes.get((kind, version), cls) if isinstance(kind, str) and isinstance(version, int) else cls


def parse(text: bytes | str) -> Any:
    """The value of JSON; raises ValueError for anything else, and for JSON that is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode(kind: type[T], value: object) -> T:
    """A value of a type from parsed JSON; raises :class:`DecodeError`."""
    return cast(T, _decode(kind, value, ""))


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    """The name, the name in JSON and the type of each field."""
    hints = get_type_hints(kind)
    return tuple((one.name, _camel(one.name), hints[one.name]) for one in fields(kind) if one.name != "raw")


def _camel(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _decode(kind: Any, value: object, at: str) -> object:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, UnionType):
        if value is None and NoneType in args:
            return None
        # The other members are one type, or known strings and ``str`` for those to come.
        return _decode(next(one for one in reversed(args) if one is not NoneType), value, at)
    if origin is Literal:
        kind = type(args[0])
    if origin is list:
        return [_decode(args[0], one, f"{at}[{index}]") for index, one in enumerate(_expect(list, value, at))]
    if origin is dict:
        return {name: _decode(args[1], one, f"{at}.{name}") for name, one in _expect(dict, value, at).items()}
    if kind is dt.datetime:
        return _datetime(_expect(str, value, at), at)
    if kind is dt.date:
        try:
            return dt.date.fromisoformat(_expect(str, value, at))
        except ValueError:
            raise DecodeError(f"{at} is not a date") from None
    if kind is Decimal:
        return _decimal(_expect(str, value, at), at)
    if isinstance(kind, type) and issubclass(kind, Model):
        record = _expect(dict, value, at)
        actual: Any = kind._class_of(record)
        known = {name: _decode(type_, record.get(key), f"{at}.{key}") for name, key, type_ in _fields_of(actual)}
        return actual(raw=record, **known)
    return _expect(kind, value, at)


def _expect(kind: type[T], value: object, at: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        what = "missing or null" if value is None else f"{type(value).__name__} instead of {kind.__name__}"
        raise DecodeError(f"{at.lstrip('.') or 'the value'} is {what}")
    return value


def _decimal(text: str, at: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise DecodeError(f"{at} is not a decimal") from None
    if not amount.is_finite():
        raise DecodeError(f"{at} is not a decimal")
    return amount


_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def _datetime(text: str, at: str) -> dt.datetime:
    match = _TIME.fullmatch(text)
    # The API's times have milliseconds; one finer than microseconds would lose digits in a datetime.
    if match is None or (match[2] or "")[6:].strip("0") != "":
        raise DecodeError(f"{at} is not a time with a zone and at most microseconds")
    zone = "+00:00" if match[3] == "Z" else match[3]
    try:
        return dt.datetime.fromisoformat(f"{match[1]}.{(match[2] or '')[:6]:0<6}{zone}")
    except ValueError:
        raise DecodeError(f"{at} is not a time") from None


class Unset:
    """The type of :data:`UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()
"""The default of fields that also accept None: the field is not sent."""


def given(value: T | None) -> T | Unset:
    """The value of a field that does not accept None, if there is one."""
    return UNSET if value is None else value


def encode(value: object) -> Any:
    """The API's JSON for a Python value."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone: pass an aware datetime, such as datetime.now(timezone.utc)")
        return value.isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Model):
        # A field that was left out has its default.
        left_out = {one.name for one in fields(value) if getattr(value, one.name) is one.default}
        return {key: encode(getattr(value, name)) for name, key, _ in _fields_of(cast(Any, type(value))) if name not in left_out}
    if isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes)):
        return [encode(one) for one in value]
    return value
