"""Verifies that the statements of a vault are one unbroken chain, signed by the service, with every day and revision."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import sleep
from typing import Any

from ._caller import Caller
from ._errors import CustodyError
from ._model import decode
from ._signed import JsonObject, NotVerifiable, VerificationError, equal, signed_claims, trusted_keys
from ._statement_content import content_fault, is_day, missing_day, opening_fault
from .models import SigningKeySet, Statement

READS, BETWEEN = 3, 1.0
"""How often statements are read at most while more are sealed, and how long to wait in between, in seconds."""


@dataclass(frozen=True, kw_only=True)
class VerifiedStatements:
    """Statements that are complete, with all revisions."""

    statements: int
    hash: str | None
    """The hash of the last one: store it, and pass it the next time. None without statements."""
    days: list[Statement]
    """The newest revision of each day, in order, as it was signed."""


def verify_statements(
    client: Caller,
    vault_id: str,
    *,
    until: dt.date | str | None = None,
    hash: str | None = None,
    keys: SigningKeySet | Mapping[str, Any] | None = None,
) -> VerifiedStatements:
    """Verifies everything that was ever sealed for a vault.

    Reads all its statements with all revisions, and verifies each one, that its lines add up, that the days follow each other
    without gaps and each opens with the closing of the one before, and their chain from its beginning. A chain that ends too
    early is not visible in itself: ``until`` is the day that statements must reach, and ``hash`` the one that an earlier
    verification ended with, which the chain must contain. ``keys`` is a JSON Web Key Set that you stored: only its keys are
    trusted, instead of those that the service publishes.

    Raises :class:`VerificationError` if something differs, :class:`NotVerifiable` for arguments that are not valid, and
    ``ImportError`` without ``cryptography``, which ``pip install 'custody-client[verify]'`` installs.
    """
    last_day = until.isoformat() if isinstance(until, dt.date) else until
    if last_day is not None and not is_day(last_day):
        raise NotVerifiable(f"{last_day} is not a day such as 2026-03-31.")
    if hash is not None and re.fullmatch("[0-9a-f]{64}", hash) is None:
        raise NotVerifiable("The stored hash is not a SHA-256 in hex.")
    trusted = trusted_keys({} if keys is not None else client._call(dict[str, Any], "GET", "/v1/jwks.json"), keys)
    before: list[str] | None = None
    for read in range(1, READS + 1):
        newest, every = _read(client, vault_id, trusted)
        fault = _whole_fault(newest, every) or _expectation_fault(newest, every, hash, last_day)
        if fault is None:
            break
        # Days and revisions that were sealed meanwhile may be missing, or not join yet: they are there when read again.
        now = [one["hash"] for one in every]
        if read == READS or now == before:
            raise VerificationError(fault)
        before = now
        sleep(BETWEEN)
    followed = {one["previousHash"] for one in every}
    end: str | None = next((one["hash"] for one in every if one["hash"] not in followed), None)
    return VerifiedStatements(statements=len(every), hash=end, days=[_decoded(one) for one in newest])


def _decoded(one: JsonObject) -> Statement:
    # Lines that were sealed before fees had a field of their own have none.
    return decode(Statement, {**one, "assets": [{"fees": "0", **line} for line in one["assets"]]})


def _read(client: Caller, vault_id: str, keys: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """The newest statement of each day in order, and every revision, each verified."""
    newest: dict[str, JsonObject] = {}
    every: list[JsonObject] = []

    def add(one: JsonObject, date: object, revision: object) -> None:
        if one.get("vaultId") != vault_id:
            raise VerificationError(f"{_name(one)}, is of {one.get('vaultId')} and not of {vault_id}")
        if one.get("date") != date or not equal(one.get("revision"), revision):
            asked = f"the statement of {date}, revision {revision}"
            raise VerificationError(f"for {asked}, the one of {one.get('date')}, revision {one.get('revision')}, was returned")
        _verify_statement(one, keys)
        every.append(one)

    for one in client._pages(dict[str, Any], "/v1/vaults/{}/statements", (vault_id,), query={"limit": 100}):
        add(one, one.get("date"), one.get("revision"))
        date, count = one["date"], one["revision"]
        if date in newest:
            raise VerificationError(f"the statement of {date} is listed twice")
        newest[date] = one
        for revision in range(1, count):
            path, query = "/v1/vaults/{}/statements/{}", {"revision": revision}
            try:
                earlier = client._call(dict[str, Any], "GET", path, (vault_id, date), query=query)
            except CustodyError as error:
                if error.code != "not_found":
                    raise
                raise VerificationError(f"revision {revision} of {date} is missing") from error
            add(earlier, date, revision)
    return [newest[date] for date in sorted(newest)], every


def _name(one: JsonObject) -> str:
    return f"the statement of {one.get('date')}, revision {one.get('revision')}"


def _canonical(value: object) -> object:
    """JSON whose names are in the order of RFC 8785, that of their UTF-16 code units."""
    if isinstance(value, list):
        return [_canonical(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _canonical(value[name]) for name in sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))}
    return value


def statement_hash(statement: JsonObject) -> str:
    """SHA-256, in hex, of a statement as RFC 8785 JSON without ``hash`` and ``jws``."""
    sealed = {name: value for name, value in statement.items() if name not in ("hash", "jws")}
    text = json.dumps(_canonical(sealed), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _verify_statement(one: JsonObject, keys: list[JsonObject]) -> None:
    if statement_hash(one) != one.get("hash"):
        raise VerificationError(f"{_name(one)} has a different hash from the one it states")
    claims = signed_claims(one.get("jws"), keys)
    if claims is None:
        raise VerificationError(f"{_name(one)} is not signed by a published key")
    if not all(equal(claims.get(name), one.get(name)) for name in ("vaultId", "date", "revision", "hash")):
        raise VerificationError(f"the signature of {_name(one)} is for different content")
    fault = content_fault(one)
    if fault is not None:
        raise VerificationError(fault)


def _whole_fault(newest: Sequence[JsonObject], every: Sequence[JsonObject]) -> str | None:
    """Why these statements are not everything from the first one of the vault up to the last."""
    day = missing_day(newest)
    if day is not None:
        return f"the statement of {day} is missing"
    by_previous: dict[str | None, JsonObject] = {}
    for one in every:
        other = by_previous.setdefault(one.get("previousHash"), one)
        if other is not one:
            return f"the statements of {other['date']} and {one['date']} both follow the same statement"
    hashes = {one["hash"] for one in every}
    gap = next((one for previous, one in by_previous.items() if previous is not None and previous not in hashes), None)
    if gap is not None:
        return f"the statement that the one of {gap['date']}, revision {gap['revision']}, follows is missing"
    faults = (opening_fault(previous, one) for previous, one in zip(newest, newest[1:]))
    return next((fault for fault in faults if fault is not None), None)


def _expectation_fault(
    newest: Sequence[JsonObject], every: Sequence[JsonObject], hash: str | None, until: str | None
) -> str | None:
    """Why statements are not those that the caller knows of."""
    if hash is not None and all(one["hash"] != hash for one in every):
        return f"the chain does not contain the stored hash {hash}"
    if until is None or (newest and newest[-1]["date"] >= until):
        return None
    if not newest:
        return f"there is no statement of {until}"
    return f"the newest statement is of {newest[-1]['date']}, and not of {until}"
