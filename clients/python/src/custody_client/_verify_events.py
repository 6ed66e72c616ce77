"""Verifies that a copy of an entity's events is complete.

The feed's events between two checkpoints are added to the hash chain, and the result is compared with what the service signed.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from types import NoneType
from typing import Any

from ._caller import Caller
from ._model import Model, decode
from ._pages import each_page
from ._signed import JsonObject, NotVerifiable, VerificationError, equal, raw_of, signed_claims, trusted_keys
from .models import EventCheckpoint, FeedPagination, SigningKeySet


@dataclass(frozen=True, kw_only=True)
class VerifiedEvents:
    """Events that are complete between two checkpoints."""

    events: int
    from_: EventCheckpoint | None
    """Where the verification began: what came before is not covered. None is the entity's first event."""
    to: EventCheckpoint


@dataclass(frozen=True, kw_only=True)
class _FeedPage(Model):
    """A page of the feed, whose events are verified as the service sent them."""

    data: list[Any]
    pagination: FeedPagination


def verify_events(
    client: Caller,
    entity_id: str,
    since: EventCheckpoint | Mapping[str, Any] | None = None,
    *,
    keys: SigningKeySet | Mapping[str, Any] | None = None,
    now: float | None = None,
) -> VerifiedEvents:
    """Verifies the events of an entity between ``since``, or else the oldest checkpoint in the log, and the current one.

    ``since`` is a checkpoint that you stored, as the client or as the API returned it. ``keys`` is a JSON Web Key Set that you
    stored: only its keys are trusted, instead of those that the service publishes. Every field that an event repeats from its
    payload is compared with it. ``now`` is in Unix seconds and by default the clock's time.

    Raises :class:`VerificationError` if something differs, :class:`NotVerifiable` for arguments that are not valid or if the
    current checkpoint is before ``since`` or more than 10 minutes from ``now``, and ``ImportError`` without ``cryptography``, which
    ``pip install 'custody-client[verify]'`` installs.
    """
    start = None if since is None else raw_of(since)
    if start is not None and not _is_checkpoint(start):
        raise NotVerifiable("The stored checkpoint is not a checkpoint.")
    trusted = trusted_keys({} if keys is not None else client._call(dict[str, Any], "GET", "/v1/jwks.json"), keys)
    if start is not None:
        _verify_checkpoint(start, entity_id, trusted)
    to = client._call(dict[str, Any], "GET", "/v1/event-checkpoints/latest", query={"entityId": entity_id})
    _verify_checkpoint(to, entity_id, trusted)
    current = decode(EventCheckpoint, to)
    _require_current(current, start, time.time() if now is None else now)
    marks: list[JsonObject] = [to]
    for one in client._pages(dict[str, Any], "/v1/event-checkpoints", query={"entityId": entity_id}):
        if one.get("resumeCursor") is None or (start is not None and str(one.get("at")) <= start["at"]):
            break
        _verify_checkpoint(one, entity_id, trusted)
        # A checkpoint sealed between the two requests may count events that the current one does not.
        if one["count"] <= to["count"]:
            marks.insert(0, one)
    if start is None and len(marks) > 1:
        start = marks.pop(0)
    if start is not None and start.get("resumeCursor") is None:
        raise NotVerifiable("The starting checkpoint is no longer in the log.")
    _compare_feed(client, entity_id, start, marks)
    count: int = to["count"] - (0 if start is None else start["count"])
    from_ = None if start is None else decode(EventCheckpoint, dict(start))
    return VerifiedEvents(events=count, from_=from_, to=current)


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
"""A time as the service writes it, so that times can be compared as text."""


def _is_checkpoint(one: object) -> bool:
    if not isinstance(one, Mapping) or not all(isinstance(one.get(name), str) for name in ("entityId", "hash", "at", "jws")):
        return False
    if not isinstance(one.get("resumeCursor"), (str, NoneType)):
        return False
    return type(one.get("count")) is int and _TIME.fullmatch(one["at"]) is not None


def _verify_checkpoint(one: JsonObject, entity_id: str, keys: list[JsonObject]) -> None:
    if not _is_checkpoint(one):
        raise VerificationError("a checkpoint has a field that is not valid")
    at = one["at"]
    if one["entityId"] != entity_id:
        raise VerificationError(f"the checkpoint of {at} is of {one['entityId']} and not of {entity_id}")
    claims = signed_claims(one.get("jws"), keys)
    if claims is None:
        raise VerificationError(f"the signature of the checkpoint of {at} does not verify")
    if not all(equal(claims.get(name), one[name]) for name in ("entityId", "count", "hash", "at")):
        raise VerificationError(f"the signature of the checkpoint of {at} is for different content")


_CURRENT_SECONDS = 600
"""Most seconds between the current checkpoint's time and the clock."""


def _require_current(to: EventCheckpoint, start: JsonObject | None, now: float) -> None:
    """Refuses an old checkpoint as the current one: those are signed too, and what came later would be missing unnoticed."""
    current = f"The service returned a checkpoint of {to.raw['at']} as the current one"
    if start is not None and to.raw["at"] < start["at"]:
        raise NotVerifiable(f"{current}, which is before the stored one of {start['at']}.")
    if abs(now - to.at.timestamp()) > _CURRENT_SECONDS:
        clock = datetime.fromtimestamp(now, timezone.utc).isoformat()
        raise NotVerifiable(f"{current}, but the clock says {clock}: more than 10 minutes apart.")


def chain_hash(before: bytes, payload: object) -> bytes:
    """The hash of an entity's chain after an event."""
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
    return hashlib.sha256(before + hashlib.sha256(body).digest()).digest()


def _compare_feed(client: Caller, entity_id: str, start: JsonObject | None, marks: list[JsonObject]) -> None:
    count: int = 0 if start is None else start["count"]
    state = bytes(32) if start is None else bytes.fromhex(start["hash"])
    last: str = "the beginning" if start is None else start["at"]
    total: int = marks[-1]["count"]
    end: str = marks[-1]["at"]
    seen: set[object] = set()

    def compare() -> None:
        """Compares the chain with the checkpoints of its count."""
        nonlocal last
        while marks and marks[0]["count"] <= count:
            mark = marks.pop(0)
            if mark["count"] < count or mark["hash"] != state.hex():
                raise VerificationError(f"the events between {last} and {mark['at']} differ from what was signed")
            last = mark["at"]

    def read(cursor: str | None) -> _FeedPage:
        return client._call(_FeedPage, "GET", "/v1/event-feed", query={"entityId": [entity_id], "limit": 500, "after": cursor})

    compare()
    for page in each_page(read, lambda page: page.pagination.next_cursor, None if start is None else start["resumeCursor"]):
        for event in page.data:
            _check_event(event, entity_id)
            if event["id"] in seen:
                raise VerificationError(f"the event {event['id']} is repeated")
            seen.add(event["id"])
            # An event recorded after the current checkpoint is not in the chain, but none of those before may come again.
            if count < total:
                state = chain_hash(state, event["payload"])
                count += 1
                compare()
    if count < total:
        missing = total - count
        raise VerificationError(f"{missing} {'event is' if missing == 1 else 'events are'} missing between {last} and {end}")


_REPEATED = {
    "id": "id",
    "kind": "kind",
    "schemaVersion": "schemaVersion",
    "occurredAt": "date",
    "entityId": "entityId",
    "vaultIds": "vaultIds",
}
"""The fields of an event that its payload has too, each with its name there. The chain covers the payload only."""


def _check_event(event: object, entity_id: str) -> None:
    payload = event.get("payload") if isinstance(event, Mapping) else None
    if not isinstance(event, Mapping) or not isinstance(payload, Mapping):
        raise VerificationError("an event of the feed has no payload")
    if not isinstance(payload.get("id"), str):
        raise VerificationError("an event of the feed has no id")
    for name, in_payload in _REPEATED.items():
        if not equal(event.get(name), payload.get(in_payload)):
            raise VerificationError(f"the field {name} of the event {payload.get('id')} differs from its payload")
    if payload.get("entityId") != entity_id:
        raise VerificationError(f"the event {payload.get('id')} is of {payload.get('entityId')} and not of {entity_id}")
