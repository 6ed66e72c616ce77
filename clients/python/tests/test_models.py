"""Results: every digit, every field, and what this version does not know."""

import dataclasses
import unittest
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, get_type_hints

from custody_client import Event, models
from custody_client._model import DecodeError, Model, decode
from custody_client.models import AuditEntry, RotatedSecret, Statement, Transaction, Vault, WebhookEvent

from .scripted import event, vault

TRANSACTION = {
    "id": "tx_1",
    "hash": "0xabc",
    "network": "ethereum",
    "status": "confirmed",
    "direction": "inbound",
    "asset": "ethereum/native",
    "amount": "115792089237316195423570985008687907853269984665640564039457.584007913129639935",
    "from": "0x1",
    "to": "0x2",
    "timestamp": "2025-03-24T22:01:59.123Z",
    "fee": {"asset": "ethereum/native", "amount": "0.000000000000000001"},
    "blockNumber": "19505152",
    "blockHash": None,
    "memo": None,
    "externalId": "wd-1",
    "updatedAt": "2025-03-24T22:02:00.000Z",
}


class Results(unittest.TestCase):
    def test_amounts_and_times_keep_every_digit(self) -> None:
        found = decode(Transaction, TRANSACTION)
        self.assertEqual(str(found.amount), TRANSACTION["amount"])
        self.assertEqual(found.timestamp, datetime(2025, 3, 24, 22, 1, 59, 123_000, timezone.utc))
        self.assertEqual(found.from_, "0x1")
        assert found.fee is not None
        self.assertEqual((found.fee.amount, found.block_number, found.memo), (Decimal("0.000000000000000001"), "19505152", None))

    def test_a_time_has_a_zone_and_loses_no_digits(self) -> None:
        for text, micros in (("2025-03-24T22:01:59Z", 0), ("2025-03-24T23:01:59.123456000+01:00", 123_456)):
            found = decode(Transaction, {**TRANSACTION, "timestamp": text})
            self.assertEqual(found.timestamp, datetime(2025, 3, 24, 22, 1, 59, micros, timezone.utc))
        for text in ("2025-03-24T22:01:59", "2025-03-24", "2025-02-30T00:00:00Z", "2025-03-24T22:01:59.1234567Z", "now", ""):
            with self.assertRaisesRegex(DecodeError, "timestamp"):
                decode(Transaction, {**TRANSACTION, "timestamp": text})

    def test_unknown_fields_and_values_are_kept(self) -> None:
        found = decode(Transaction, {**TRANSACTION, "status": "frozen", "nonce": {"number": 1}})
        self.assertEqual((found.status, found.raw["nonce"]), ("frozen", {"number": 1}))
        self.assertEqual(found, dataclasses.replace(found, raw={}))

    def test_a_field_that_is_missing_or_of_another_type_is_named(self) -> None:
        wrong: dict[str, list[Any]] = {"amount": ["1,5", "NaN", "", 1.5, None], "hash": [1, None], "timestamp": [1, None]}
        for name, values in wrong.items():
            for value in values:
                with self.assertRaisesRegex(DecodeError, name):
                    decode(Transaction, {**TRANSACTION, name: value})
        with self.assertRaisesRegex(DecodeError, r"networks\[1\] is int instead of str"):
            decode(Vault, vault(networks=["ethereum", 1]))
        with self.assertRaisesRegex(DecodeError, "the value is missing or null"):
            decode(Vault, None)

    def test_an_event_of_the_log_has_a_typed_payload(self) -> None:
        found = decode(WebhookEvent, event(1))
        assert isinstance(found.payload, models.VaultUpdatedEvent)
        self.assertEqual((found.payload.data.vault.label, found.dispatched_at), ("label", None))

    def test_a_correction_has_the_previous_values_of_the_fields_that_changed(self) -> None:
        common = {"id": "evt_1", "schemaVersion": 1, "date": "2026-01-01T00:00:00.000Z", "entityId": "entity_a", "vaultIds": ["vault_a"]}
        data = {"vaultId": "vault_a", "transaction": TRANSACTION, "previous": {"amount": "1.5", "fee": None}}
        found = decode(Event, {**common, "kind": "transaction.updated", "data": data})
        assert isinstance(found, models.TransactionUpdatedEvent) and found.data.previous is not None
        self.assertEqual((found.data.previous.amount, found.data.previous.fee), (Decimal("1.5"), None))
        self.assertEqual(set(found.data.previous.raw), {"amount", "fee"})

    def test_days_maps_and_values_of_any_kind_are_decoded(self) -> None:
        line = {"asset": "a", "symbol": "A", "opening": "1", "inbound": "0", "outbound": "0", "fees": "0", "other": "-0.5", "closing": "0.5"}
        hashes = {"previousHash": None, "hash": "00", "jws": "x"}
        at = {"date": "2025-03-24", "revision": 1, "sealedAt": "2025-03-25T06:00:00.000Z"}
        found = decode(Statement, {"vaultId": "vault_a", **at, **hashes, "assets": [{**line, "transactionCount": 0}]})
        self.assertEqual((found.date, found.assets[0].other), (date(2025, 3, 24), Decimal("-0.5")))
        entry = {"id": "aud_1", "at": at["sealedAt"], "action": "x", "clientAddress": None, "requestId": None}
        people = {"actor": {"type": "key", "id": None, "userId": None}, "target": {"type": "webhook", "id": "whs_1"}}
        changes = {"status": {"old": None, "new": {"a": [1]}}}
        self.assertEqual(decode(AuditEntry, {**entry, **people, "changes": changes}).changes["status"].new, {"a": [1]})

    def test_a_secret_is_not_in_the_text_of_a_result(self) -> None:
        found = decode(RotatedSecret, {"id": "whs_1", "secret": "whsec_x", "previousSecretExpiresAt": "2026-01-01T00:00:00.000Z"})
        self.assertEqual(found.secret, "whsec_x")
        self.assertNotIn("whsec", repr(found))

    def test_every_model_has_types_that_can_be_decoded(self) -> None:
        def known(kind: Any) -> bool:
            try:
                decode(kind, object())
            except DecodeError:
                return True
            return kind is Any

        classes = [one for one in vars(models).values() if isinstance(one, type) and issubclass(one, Model)]
        self.assertGreater(len(classes), 40)
        for one in classes:
            for name, hint in get_type_hints(one).items():
                if name not in ("raw", "_classes"):
                    self.assertTrue(known(hint), f"{one.__name__}.{name}")
        kinds = {one for one in classes if issubclass(one, Event) and one is not Event}
        self.assertEqual(kinds, set(Event._classes.values()))
