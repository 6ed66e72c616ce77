"""Delivery contract 3: consumers verify the signature on the raw body before trusting it."""

import hashlib
import hmac
import json
import math
import time
import unittest
from decimal import Decimal
from email.message import Message
from pathlib import Path
from typing import Any

from custody_client import Event, SignatureError, verify_signature
from custody_client.models import TransactionConfirmedEvent, VaultUpdatedEvent, WebhookPingEvent

VECTORS = json.loads((Path(__file__).parents[3] / "src/client/vectors.json").read_text())["vectors"]
WHOLE = VECTORS[0]
SECRET: str = WHOLE["secrets"][0]
NOW: int = WHOLE["now"]


def outcome(body: Any, headers: Any, secrets: Any, **options: Any) -> str:
    try:
        verify_signature(body, headers, secrets, **options)
    except SignatureError as error:
        return error.reason
    return "valid"


def signed(envelope: Any, at: int = NOW) -> tuple[bytes, dict[str, str]]:
    body = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
    digest = hmac.new(SECRET.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return body, {"X-Service-Signature": f"t={at},v1={digest}"}


def ping(**fields: Any) -> dict[str, Any]:
    known = {"id": "evt_1", "kind": "webhook.ping", "schemaVersion": 1, "date": "2026-01-01T00:00:00.000Z"}
    return {**known, "entityId": "entity_1", "vaultIds": None, "data": {"webhookId": "whs_1"}, **fields}


class Signature(unittest.TestCase):
    def test_published_vectors_have_the_outcome_that_they_name(self) -> None:
        self.assertGreater(len(VECTORS), 30)
        for vector in VECTORS:
            with self.subTest(vector["name"]):
                expected = "valid" if vector["valid"] else vector["reason"]
                options = {"now": vector["now"], "tolerance": vector["tolerance"]}
                for body in (vector["body"], vector["body"].encode()):
                    self.assertEqual(outcome(body, vector["headers"], vector["secrets"], **options), expected)

    def test_a_verified_delivery_is_a_typed_event_with_exact_amounts(self) -> None:
        event = verify_signature(WHOLE["body"], WHOLE["headers"], SECRET, now=NOW)
        assert isinstance(event, TransactionConfirmedEvent)
        self.assertEqual(event.data.transaction.amount, Decimal("0.000000000000000001"))
        self.assertEqual((event.date.isoformat(), event.vault_ids), ("2026-01-01T00:00:00+00:00", ["vault_1"]))
        self.assertEqual(event.raw, json.loads(WHOLE["body"]))
        self.assertIsInstance(verify_signature(*signed(ping()), SECRET, now=NOW), WebhookPingEvent)

    def test_an_unknown_kind_schema_version_or_field_does_not_fail(self) -> None:
        for change in ({"kind": "vault.exploded"}, {"kind": "vault.updated", "schemaVersion": 2}, {"more": [1]}):
            event = verify_signature(*signed(ping(**change)), SECRET, now=NOW)
            self.assertEqual(event.raw, ping(**change))
            if "kind" in change:
                self.assertIs(type(event), Event)
                self.assertEqual((event.kind, event.data), (change["kind"], {"webhookId": "whs_1"}))
        self.assertNotEqual(VaultUpdatedEvent, Event)

    def test_a_signed_body_that_is_no_event_is_malformed(self) -> None:
        for body in (b"{}", b"[]", b"null", b"no json", b"\xff", json.dumps(ping(kind="vault.updated")).encode()):
            self.assertEqual(outcome(*signed(body), SECRET, now=NOW), "malformed")

    def test_the_time_of_the_clock_and_a_tolerance_of_300_seconds_are_the_defaults(self) -> None:
        now = int(time.time())
        self.assertEqual(outcome(*signed(ping(), now), SECRET), "valid")
        self.assertEqual(outcome(*signed(ping(), now - 310), SECRET), "too_old")
        self.assertEqual(outcome(*signed(ping(), now + 310), SECRET), "too_new")

    def test_a_tolerance_or_time_that_is_no_number_is_rejected(self) -> None:
        old = signed(ping(), NOW - 10_000)
        for name in ("tolerance", "now"):
            values: list[Any] = [math.nan, math.inf, "300", True, Decimal(300), [300]]
            for value in (*values, *([None] if name == "tolerance" else [])):
                options: dict[str, Any] = {"now": NOW, name: value}
                with self.subTest(name, value=value), self.assertRaises((TypeError, ValueError)) as caught:
                    verify_signature(*old, SECRET, **options)
                self.assertIn(name, str(caught.exception))

    def test_a_secret_with_white_space_or_quotes_or_cut_short_is_named_as_the_cause(self) -> None:
        causes = {f"{SECRET}\n": "newline", f" {SECRET}": "white space", f'"{SECRET}"': "quotes", f"'{SECRET}'": "quotes"}
        causes |= {SECRET[:-3]: "complete", "whsec_": "complete", "": "empty"}
        for secret, cause in causes.items():
            for given in (secret, [SECRET, secret]):
                with self.subTest(secret), self.assertRaisesRegex(ValueError, cause):
                    verify_signature(*signed(ping()), given, now=NOW)
        with self.assertRaisesRegex(ValueError, "needs a signing secret"):
            verify_signature(*signed(ping()), [], now=NOW)
        with self.assertRaisesRegex(TypeError, "bytes"):
            verify_signature(*signed(ping()), [SECRET.encode()], now=NOW)  # type: ignore[list-item]

    def test_a_parsed_body_is_named_as_the_cause(self) -> None:
        _, headers = signed(ping())
        with self.assertRaisesRegex(TypeError, "was parsed.*raw bytes"):
            verify_signature(ping(), headers, SECRET, now=NOW)  # type: ignore[arg-type]

    def test_headers_are_accepted_as_servers_provide_them(self) -> None:
        headers: dict[str, str] = WHOLE["headers"]
        message = Message()
        for name, value in headers.items():
            message[name] = value
        lists = {name.upper(): [value] for name, value in headers.items()}
        asgi = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        for given in (headers, message, lists, asgi, iter(asgi)):
            self.assertEqual(outcome(WHOLE["body"], given, SECRET, now=NOW), "valid")

    def test_headers_that_no_signer_writes_are_rejected_as_any_other(self) -> None:
        for name, value in (("webhook-signature", "v1,é"), ("webhook-id", "evt_\udc80"), ("webhook-id", "evt_é")):
            headers = {"webhook-id": "evt_1", "webhook-timestamp": str(NOW), "webhook-signature": "v1,AAAA", name: value}
            self.assertIn(outcome(b"{}", headers, SECRET, now=NOW), ("malformed", "no_match"))
        deep, headers = signed(b"[" * 200_000)
        self.assertEqual(outcome(deep, headers, SECRET, now=NOW), "malformed")

    def test_changing_a_byte_of_the_body_the_time_or_the_signature_makes_it_fail(self) -> None:
        body, headers = signed(ping())
        for at in range(len(body)):
            changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
            self.assertEqual(outcome(changed, headers, SECRET, now=NOW), "no_match")
        header = headers["X-Service-Signature"]
        for at in (*range(2, 12), *range(16, len(header))):
            changed_header = header[:at] + ("8" if header[at] == "7" else "7") + header[at + 1 :]
            result = outcome(body, {"x-service-signature": changed_header}, SECRET, now=NOW, tolerance=1e12)
            self.assertEqual((at, result), (at, "no_match"))
