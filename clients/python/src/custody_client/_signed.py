"""Verification of the service's signatures: compact JWS with Ed25519 and the published keys. Needs ``cryptography``."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ._model import Model, parse

JsonObject = Mapping[str, Any]


class VerificationError(Exception):
    """Something differs from what the service signed; ``difference`` says what."""

    def __init__(self, difference: str) -> None:
        super().__init__(difference)
        self.difference = difference


class NotVerifiable(Exception):
    """A verification was not possible; the message is the reason."""


def trusted_keys(published: Mapping[str, Any], pinned: Model | Mapping[str, Any] | None) -> list[JsonObject]:
    """The keys to verify with: those that the caller trusts, otherwise the published ones."""
    found = published if pinned is None else raw_of(pinned)
    keys = found.get("keys") if isinstance(found, Mapping) else None
    if not isinstance(keys, list) or not all(isinstance(key, Mapping) for key in keys) or (pinned is not None and not keys):
        raise NotVerifiable("The given keys are not a JSON Web Key Set with a key.")
    return keys


def raw_of(value: Model | Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON of a result of the client, or JSON itself."""
    return value.raw if isinstance(value, Model) else value


def signed_claims(jws: object, keys: list[JsonObject]) -> JsonObject | None:
    """The content of a compact JWS; None if none of the keys signed it."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        needs = "verify_events and verify_statements need the package cryptography: pip install 'custody-client[verify]'"
        raise ImportError(needs) from error
    if not isinstance(jws, str) or jws.count(".") != 2:
        return None
    head, body, signature = jws.split(".")
    try:
        header = parse(_bytes(head))
        if not isinstance(header, dict) or header.get("alg") != "EdDSA" or not isinstance(header.get("kid"), str):
            return None
        wanted = {"kty": "OKP", "crv": "Ed25519", "kid": header["kid"]}
        key = next((key for key in keys if all(key.get(name) == value for name, value in wanted.items())), None)
        if key is None:
            return None
        Ed25519PublicKey.from_public_bytes(_bytes(key["x"])).verify(_bytes(signature), f"{head}.{body}".encode())
        claims = parse(_bytes(body))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        # Text that does not parse was not signed by the service.
        return None
    return claims if isinstance(claims, dict) else None


def _bytes(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError("base64url is a str")
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError("this is not base64url") from error


def equal(one: object, other: object) -> bool:
    """Whether two JSON values are equal; in Python, ``True`` is 1 and ``1.0`` is 1."""
    return type(one) is type(other) and one == other
