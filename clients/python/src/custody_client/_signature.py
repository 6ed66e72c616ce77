"""Verifies deliveries on the raw body, before anything else.

``X-Service-Signature`` is ``t=<unix seconds>,v1=<hex>…`` over ``t.body``, keyed with the secret's text; the Standard Webhooks
headers are ``v1,<base64>…`` over ``id.t.body``, keyed with the bytes that the secret encodes. Every scheme in the request must
verify.
"""

from __future__ import annotations

import base64
import hmac
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, cast

from ._model import Event, decode, parse

SignatureReason = Literal["missing", "malformed", "too_old", "too_new", "no_match"]


class SignatureError(Exception):
    """Why a request is rejected.

    ``reason`` is ``missing``: there is no signature; ``malformed``: a header or the body is invalid; ``too_old`` and ``too_new``:
    its time differs from now by more than the tolerance; ``no_match``: none of the secrets signed this body at this time.
    """

    def __init__(self, reason: SignatureReason, message: str) -> None:
        super().__init__(reason, message)
        self.reason: SignatureReason = reason
        self.message = message

    def __str__(self) -> str:
        return self.message


class HasItems(Protocol):
    """Headers of a server, such as those of Django, Flask, Starlette, ``http.server`` or a ``dict``."""

    def items(self) -> Iterable[tuple[str, str | Sequence[str]]]: ...


class _Scheme(NamedTuple):
    time: int
    given: list[bytes]
    sign: Callable[[str], bytes]


def verify_signature(
    body: bytes | str,
    headers: HasItems | Iterable[tuple[bytes, bytes]],
    secrets: str | Sequence[str],
    *,
    now: float | None = None,
    tolerance: float = 300,
) -> Event:
    """Verifies a request's signature and returns its event.

    Pass the body exactly as received, before any parsing, and during a rotation every secret that may have signed. Names of
    headers are in any letter case; pairs of bytes are those of ASGI. ``tolerance`` is the most seconds between the signature's
    time and ``now``, which is in Unix seconds and by default the clock's time.

    Raises :class:`SignatureError` if the signature or the body is invalid, and ``TypeError`` or ``ValueError`` for arguments with
    which nothing can be verified.
    """
    if not isinstance(body, (bytes, bytearray, memoryview, str)):
        raise TypeError(f"body was parsed (it is a {type(body).__name__}): pass the raw bytes of the request")
    raw = body.encode() if isinstance(body, str) else bytes(body)
    known = _secrets(secrets)
    limit = _number("tolerance", tolerance)
    clock = math.floor(time.time()) if now is None else _number("now", now)
    found = _schemes(_by_name(headers), raw)
    if not found:
        raise SignatureError("missing", "The request carries no signature.")
    for scheme in found:
        # Every pair is compared, each in constant time.
        matches = [hmac.compare_digest(given, scheme.sign(secret)) for given in scheme.given for secret in known]
        if not any(matches):
            why = "the secret is another one, or the body is not the raw body of the request"
            raise SignatureError("no_match", f"No signature matches the given secrets: {why}.")
        age = clock - scheme.time
        if age > limit:
            raise SignatureError("too_old", f"The signature is {age:g} s old; the tolerance is {limit:g} s.")
        if -age > limit:
            raise SignatureError("too_new", f"The signature is {-age:g} s in the future; the tolerance is {limit:g} s.")
    try:
        return decode(Event, parse(raw.decode()))
    except ValueError as error:
        raise SignatureError("malformed", f"The body is not an event: {error}") from error


def _secrets(secrets: str | Sequence[str]) -> list[str]:
    known = [secrets] if isinstance(secrets, str) else list(secrets)
    if not known:
        raise ValueError("verify_signature needs a signing secret")
    for secret in known:
        if not isinstance(secret, str):
            raise TypeError(f"a signing secret is a str such as 'whsec_…', not a {type(secret).__name__}")
        if secret == "":
            raise ValueError("the signing secret is empty: is its variable set?")
        if secret.strip() != secret:
            raise ValueError("the signing secret begins or ends with white space, such as the newline of a file: strip it")
        if secret[0] in "\"'" or secret[-1] in "\"'":
            raise ValueError("the signing secret is in quotes: remove them")
        try:
            key = _key(secret)
        except ValueError:
            key = b""
        if key == b"":
            raise ValueError("the signing secret is not whsec_ followed by base64: is it complete?")
    return known


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)


def _number(name: str, value: object) -> float:
    # A comparison with NaN is false, so it would accept a signature of any age.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number of seconds, not a {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name} is a number of seconds, not {value}")
    return value


def _by_name(headers: HasItems | Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _pairs(headers):
        text = value if isinstance(value, str) else ",".join(value)
        found[name.lower()] = f"{found[name.lower()]},{text}" if name.lower() in found else text
    return found


def _pairs(headers: HasItems | Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[str, str | Sequence[str]]]:
    if isinstance(headers, Iterable) and not hasattr(headers, "items"):
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    return cast(HasItems, headers).items()


def _schemes(headers: Mapping[str, str], body: bytes) -> list[_Scheme]:
    service, standard = headers.get("x-service-signature"), headers.get("webhook-signature")
    return [
        *([] if service is None else [_service(service, body)]),
        *([] if standard is None else [_standard(standard, headers.get("webhook-id"), headers.get("webhook-timestamp"), body)]),
    ]


def _seconds(text: str | None) -> int:
    if text is None or re.fullmatch(r"\d{1,12}", text, re.ASCII) is None:
        raise SignatureError("malformed", "The signature has no timestamp in Unix seconds.")
    return int(text)


def _service(header: str, body: bytes) -> _Scheme:
    parts = [part.strip().partition("=")[::2] for part in header.split(",")]
    at = _seconds(next((value for name, value in parts if name == "t"), None))
    given = [bytes.fromhex(value) for name, value in parts if name == "v1" and re.fullmatch("[0-9a-f]{64}", value)]
    return _Scheme(at, given, lambda secret: hmac.digest(secret.encode(), b"%d." % at + body, "sha256"))


def _standard(header: str, id: str | None, timestamp: str | None, body: bytes) -> _Scheme:
    if id is None or not id.isascii():
        raise SignatureError("malformed", "The webhook-id header is missing, or not ASCII.")
    at = _seconds(timestamp)
    given = []
    for part in header.split(" "):
        if part.startswith("v1,"):
            try:
                given.append(base64.b64decode(part[3:], validate=True))
            # Characters outside ASCII are a ValueError of their own.
            except ValueError:
                continue
    return _Scheme(at, given, lambda secret: hmac.digest(_key(secret), f"{id}.{at}.".encode() + body, "sha256"))
