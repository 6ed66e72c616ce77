"""The client against the running service: `test/client/python.test.ts` starts it and sets the environment."""

from __future__ import annotations

import json
import os
import threading
import time
import unittest
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeVar

import httpx

from custody_client import (
    Client,
    CustodyError,
    Download,
    Pages,
    VerificationError,
    catch_up,
    copy_vault,
    verify_events,
    verify_statements,
)
from custody_client.models import (
    BalanceUpdatedEvent,
    EventKind,
    PatchedWebhookHeader,
    PatchedWebhookOAuth,
    VaultUpdatedEvent,
    WebhookEvent,
    WebhookHeader,
    WebhookOAuth,
)
from custody_client.operations import Operations

T = TypeVar("T")
VAULT, ENTITY = "vault_a", "entity_a"
LARGE = "115792089237316195423570985008687907853269984665640564039457.584007913129639935"


def client(api_key: str | None = None, **options: Any) -> Client:
    return Client(os.environ["CUSTODY_URL"], os.environ["CUSTODY_API_KEY"] if api_key is None else api_key, **options)


def record(*records: dict[str, Any]) -> None:
    """Feeds records as the custody platform does."""
    for _ in range(100):
        response = httpx.post(
            f"{os.environ['CUSTODY_PLATFORM_URL']}/platform/v1/records",
            content="\n".join(json.dumps(one) for one in records),
            headers={"authorization": f"Bearer {os.environ['CUSTODY_PLATFORM_TOKEN']}", "content-type": "application/x-ndjson"},
            timeout=30,
        )
        # A busy service asks for the batch again.
        if response.status_code != 503:
            break
        time.sleep(0.3)
    assert response.status_code == 200, response.text


def relabel(label: str) -> None:
    at = "2024-01-01T00:00:00.000Z"
    record({"type": "vault", "id": VAULT, "entityId": ENTITY, "label": label, "networks": ["ethereum"], "createdAt": at})


def until(what: Callable[[], T | None]) -> T:
    """The first result that is not None, within 60 s."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = what()
        if found is not None:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen within 60 s")


def pending(hash: str) -> dict[str, Any]:
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    sent = {"network": "ethereum", "hash": hash, "status": "pending", "direction": "inbound", "asset": "ethereum/native"}
    return {"type": "transaction", "vaultId": VAULT, **sent, "amount": "1", "from": "0x1", "to": "0x2", "timestamp": at, "occurredAt": at}


def webhook(kinds: list[EventKind] | None = None) -> dict[str, Any]:
    hook = {"url": os.environ["CUSTODY_HOOK_URL"], "notification_email": "ops@example.com"}
    return {**hook, "entity_ids": [ENTITY], "event_kinds": kinds or ["vault.updated"]}


class Recording:
    """A client that keeps the names of the methods that were used."""

    def __init__(self, to: Client) -> None:
        self.to = to
        self.used: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.used.add(name)
        return getattr(self.to, name)


class Service(unittest.TestCase):
    def code(self, call: Callable[[], object]) -> str:
        with self.assertRaises(CustodyError) as caught:
            call()
        return caught.exception.code

    def test_a_list_has_every_item_of_every_page(self) -> None:
        with client() as custody:
            amounts = [one.amount for one in custody.list_transactions(VAULT, status="confirmed", limit=100)]
            self.assertEqual(sorted(amounts), [Decimal(number) for number in range(250)])
            sizes = [len(one.data) for one in custody.list_transactions(VAULT, limit=100).pages()]
            self.assertEqual(sizes, [100, 100, 50])
            first = custody.list_transactions(VAULT, limit=100).page()
            rest = custody.list_transactions(VAULT, limit=500, cursor=first.pagination.next_cursor).page()
            self.assertEqual((first.pagination.limit, len(rest.data), rest.pagination.next_cursor), (100, 150, None))

    def test_every_operation_returns_what_the_contract_defines(self) -> None:
        now = datetime.now(timezone.utc)
        large = "ethereum/large:0x1"
        asset = {"type": "asset", "id": large, "symbol": "L", "name": "Large", "decimals": 18, "network": "ethereum"}
        at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record(asset, {"type": "balance", "vaultId": VAULT, "asset": large, "amount": LARGE, "occurredAt": at})
        with client() as real:
            custody: Any = Recording(real)
            self.assertEqual(custody.get_vault(VAULT).networks, ["ethereum"])
            self.assertEqual([one.id for one in custody.list_vaults()], [VAULT])
            self.assertEqual([one.kind for one in custody.list_networks()], ["mainnet"])
            self.assertEqual([one.decimals for one in custody.list_assets(symbol="ETH")], [18])
            as_of = now.replace(microsecond=now.microsecond // 1000 * 1000)
            self.assertIn((LARGE, as_of), [(str(one.amount), one.as_of) for one in custody.list_balances(VAULT)])
            self.assertEqual([str(one.amount) for one in custody.list_balance_history(VAULT, asset=large)], [LARGE])
            self.assertEqual(list(custody.list_balances(VAULT, at=now - timedelta(days=1))), [])
            self.assertEqual(list(custody.list_addresses(VAULT)), [])
            self.assertEqual([one.id for one in custody.list_entities()], ["entity_a"])
            self.assertEqual([(one.vault_id, str(one.amount)) for one in custody.list_all_balances(asset=large)], [(VAULT, LARGE)])
            sums = custody.list_all_balances(asset=large, sum_by="asset").page().data
            self.assertEqual([(str(one.amount), one.vault_count) for one in sums], [(LARGE, 1)])
            self.assertEqual({one.vault_id for one in custody.list_all_transactions(limit=500)}, {VAULT})
            with custody.export_all_transactions(format="ndjson", vault_id=[VAULT]) as file:
                self.assertEqual(len(b"".join(file).splitlines()), 250)
            newest = custody.list_statements(VAULT).page().data[0]
            self.assertEqual((newest.vault_id, newest.revision, len(newest.hash)), (VAULT, 1, 64))
            self.assertEqual(custody.get_statement(VAULT, newest.date, revision=1), newest)
            self.assertEqual(self.code(lambda: custody.get_statement(VAULT, date(2001, 1, 1))), "not_found")
            summary = custody.get_statement_summary(VAULT, from_=newest.date, to=newest.date, moved_only=True)
            self.assertEqual((summary.from_, summary.last_hash, summary.assets), (newest.date, newest.hash, []))
            self.assertEqual(len(custody.list_transactions(VAULT, limit=1, occurred_before=now).page().data), 1)
            detail = custody.get_transaction(VAULT, next(iter(custody.list_transactions(VAULT, limit=1))).id)
            self.assertEqual([(one.status, one.amount) for one in detail.history], [("confirmed", detail.amount)])
            with custody.export_transactions(VAULT, format="ndjson") as file:
                self.assertIsInstance(file, Download)
                self.assertEqual(len(b"".join(file).splitlines()), 250)

            created = custody.create_webhook(**webhook(["vault.updated", "transaction.confirmed"]), description="Ledger")
            self.assertTrue(created.secret.startswith("whsec_"))
            self.assertEqual(custody.get_webhook(created.id).health.state, "HEALTHY")
            changed = custody.update_webhook(created.id, vault_ids=[VAULT], description=None)
            self.assertEqual((changed.vault_ids, changed.description, changed.status), ([VAULT], "", "ACTIVE"))
            self.assertIsNone(custody.update_webhook(created.id, vault_ids=None).vault_ids)
            held = custody.update_webhook(created.id, headers=[PatchedWebhookHeader(name="X-Api-Key", value="k")])
            self.assertEqual([(one.name, one.value) for one in held.headers], [("X-Api-Key", None)])
            kept = custody.update_webhook(created.id, headers=[PatchedWebhookHeader(name="x-api-key", value=None)])
            self.assertEqual([one.name for one in kept.headers], ["x-api-key"])
            oauth = WebhookOAuth(token_url="https://login.example.com/token", client_id="custody", client_secret="a-secret")
            self.assertNotIn("a-secret", repr(oauth))
            other = custody.create_webhook(**webhook(), headers=[WebhookHeader(name="X-Api-Key", value="k")], oauth=oauth)
            self.assertEqual((len(other.headers), other.oauth and other.oauth.client_authentication), (1, "basic"))
            scoped = custody.update_webhook(other.id, oauth=PatchedWebhookOAuth(scope="a", client_authentication="post")).oauth
            self.assertEqual(scoped and (scoped.scope, scoped.client_authentication), ("a", "post"))
            cleared = custody.update_webhook(other.id, oauth=PatchedWebhookOAuth(scope=None)).oauth
            self.assertEqual(cleared and (cleared.client_id, cleared.scope), ("custody", None))
            self.assertIsNone(custody.update_webhook(other.id, oauth=None).oauth)
            custody.delete_webhook(other.id)
            self.assertIn(created.id, [one.id for one in custody.list_webhooks(status="ACTIVE", entity_id=ENTITY)])
            self.assertTrue(custody.ping_webhook(created.id).success)
            self.assertTrue(custody.ping_webhook(created.id, event_kind="transaction.confirmed").success)
            rotated = custody.rotate_secret(created.id)
            self.assertNotEqual(rotated.secret, created.secret)
            assert rotated.previous_secret_expires_at is not None
            self.assertGreater(rotated.previous_secret_expires_at, now)
            retired = custody.rotate_secret(created.id, expire_previous="now")
            self.assertIsNone(retired.previous_secret_expires_at)
            preview = custody.preview_webhook(entity_ids=[ENTITY], event_kinds=["transaction.confirmed"])
            self.assertEqual((preview.count, preview.by_kind, len(preview.newest)), (250, {"transaction.confirmed": 250}, 5))

            relabel("delivered")
            delivered = real.list_webhook_deliveries(created.id, status=["DELIVERED"])
            delivery = until(lambda: next(iter(delivered), None))
            (sent,) = custody.list_webhook_deliveries(created.id)
            self.assertEqual([one.http_status for one in sent.attempts], [200])
            again = custody.redeliver(delivery.id)
            self.assertEqual((again.replayed_from_delivery_id, again.event_id), (delivery.id, delivery.event_id))
            event = custody.get_event(delivery.event_id)
            self.assertEqual(event.matched_count, 1)
            self.assertGreaterEqual(event.delivery_counts.DELIVERED, 1)
            assert isinstance(event.payload, VaultUpdatedEvent)
            self.assertEqual(event.payload.data.vault.label, "delivered")
            self.assertEqual(len(custody.list_event_deliveries(delivery.event_id).data), 2)
            updated = [one.payload for one in custody.list_events(kind="balance.updated")]
            assert isinstance(updated[0], BalanceUpdatedEvent)
            self.assertEqual(str(updated[0].data.balance.amount), LARGE)
            self.assertEqual(len(custody.read_event_feed(limit=2).data), 2)

            recovery = custody.create_recovery(created.id, since=now - timedelta(hours=1), include=["MISSED"])
            self.assertEqual(custody.get_recovery(recovery.id).webhook_id, created.id)
            self.assertEqual([one.id for one in custody.list_recoveries(created.id)], [recovery.id])
            for change in (custody.pause_recovery, custody.resume_recovery, custody.cancel_recovery):
                try:
                    self.assertEqual(change(recovery.id).id, recovery.id)
                except CustodyError as error:
                    self.assertEqual(error.code, "recovery_ended")
            self.assertIsNone(custody.delete_webhook(created.id))
            self.assertEqual(self.code(lambda: real.get_webhook(created.id)), "not_found")

            credential = custody.get_credential(vault_id="vault_absent")
            self.assertEqual((credential.user.organization_role, credential.vault.because), ("owner", "unknown"))
            self.assertEqual([one.alg for one in custody.get_signing_keys().keys], ["EdDSA"])
            self.assertEqual(custody.get_webhook_source_addresses().addresses, [])
            self.assertGreater(custody.get_latest_event_checkpoint(entity_id=ENTITY).count, 250)
            self.assertIsInstance(custody.list_event_checkpoints(entity_id=ENTITY), Pages)
            for checkpoint in custody.list_event_checkpoints(entity_id=ENTITY):
                self.assertEqual(checkpoint.entity_id, ENTITY)
            entry = next(iter(custody.list_audit_log(action="webhook.created")))
            self.assertEqual((entry.action, entry.target.type, entry.actor.type), ("webhook.created", "webhook", "key"))

            operations = {name for name in vars(Operations) if not name.startswith("_")}
            self.assertEqual(custody.used, operations)

    def test_an_error_of_the_api_names_the_code_the_request_and_the_fields(self) -> None:
        with client() as custody, self.assertRaises(CustodyError) as caught:
            custody.create_webhook(**{**webhook(), "url": "http://x", "entity_ids": []}, request_id="my-request-1")
        error = caught.exception
        self.assertEqual((error.code, error.status, error.request_id), ("invalid_body", 400, "my-request-1"))
        self.assertEqual({one.in_ for one in error.errors}, {"body"})
        self.assertIn("entityIds", [one.field for one in error.errors])
        with client("cds_nonsense") as stranger:
            self.assertEqual(self.code(lambda: stranger.get_vault(VAULT)), "invalid_api_key")
        with client() as custody:
            self.assertEqual(self.code(lambda: custody.get_vault("../delivery/webhooks?limit=1")), "not_found")

    def test_a_creation_whose_response_was_lost_is_retried_and_carried_out_once(self) -> None:
        class Losing(httpx.HTTPTransport):
            keys: list[str] = []

            def handle_request(self, request: httpx.Request) -> httpx.Response:
                response = super().handle_request(request)
                self.keys.append(request.headers["idempotency-key"])
                if len(self.keys) > 1:
                    return response
                response.read()
                response.close()
                raise httpx.ReadError("connection reset")

        with client() as custody, client(transport=Losing()) as losing:
            before = len(list(custody.list_webhooks()))
            created = losing.create_webhook(**webhook())
            self.assertEqual((len(Losing.keys), len(set(Losing.keys))), (2, 1))
            self.assertEqual(len(list(custody.list_webhooks())), before + 1)
            same = custody.create_webhook(**webhook(), idempotency_key=Losing.keys[0])
            self.assertEqual((same.id, same.secret), (created.id, created.secret))
            with self.assertRaises(CustodyError) as caught:
                custody.create_webhook(**webhook(["vault.created"]), idempotency_key=Losing.keys[0])
            self.assertEqual((caught.exception.code, caught.exception.status), ("idempotency_key_reused", 422))
            custody.delete_webhook(created.id)

    def test_a_long_poll_returns_as_soon_as_there_is_an_event(self) -> None:
        with client(timeout=5) as custody:
            start = custody.read_event_feed(from_="now")
            self.assertEqual((start.data, start.pagination.next_cursor), ([], None))
            later = threading.Timer(0.3, relabel, ["polled"])
            later.start()
            began = time.monotonic()
            page = custody.read_event_feed(after=start.resume_cursor, wait=30, kind=["vault.updated"])
            self.assertLess(time.monotonic() - began, 25)
            later.join()
            self.assertEqual([self.label(one) for one in page.data], ["polled"])
            self.assertEqual(custody.read_event_feed(after=page.resume_cursor).data, [])

    def test_verified_events_and_statements_are_complete_and_a_copy_equals_the_lists(self) -> None:
        with client() as custody:
            kept = custody.get_latest_event_checkpoint(entity_id=ENTITY)
            copy = copy_vault(custody, VAULT)
            relabel("copied")
            record(pending("0xc0"))
            record({**pending("0xc0"), "amount": "2"})
            self.assertEqual(verify_events(custody, ENTITY, kept, keys=custody.get_signing_keys()).events, 3)
            self.assertGreater(verify_events(custody, ENTITY).events, 250)
            catch_up(custody, copy)
            self.assertEqual(copy.vault, custody.get_vault(VAULT))
            self.assertEqual(copy.transactions, {one.id: one for one in custody.list_transactions(VAULT, limit=500)})
            self.assertEqual(copy.balances, {one.asset: one for one in custody.list_balances(VAULT)})
            self.assertEqual(copy.addresses, list(custody.list_addresses(VAULT)))

            newest = custody.list_statements(VAULT).page().data[0]
            found = verify_statements(custody, VAULT, until=newest.date, hash=newest.hash)
            self.assertEqual((found.statements, found.hash), (len(list(custody.list_statements(VAULT))), newest.hash))
            with self.assertRaisesRegex(VerificationError, f"of {newest.date}"):
                verify_statements(custody, VAULT, until=newest.date + timedelta(days=1))

    def test_followers_that_continue_from_a_cursor_get_each_event_once(self) -> None:
        labels = [f"a\u2028b\u2029 € 金庫 {number}" for number in range(6)]
        with client() as custody:
            cursor = custody.read_event_feed(from_="now").resume_cursor
        found: list[str] = []
        for follower in range(3):
            for label in labels[2 * follower : 2 * follower + 2]:
                relabel(label)
            with client() as custody:
                for followed in custody.follow_events(after=cursor, entity_id=[ENTITY], kind=["vault.updated"]):
                    found.append(self.label(followed.event))
                    cursor = followed.resume_cursor
                    if len(found) == 2 * follower + 2:
                        break
        self.assertEqual(found, labels)

    def label(self, event: WebhookEvent) -> str:
        assert isinstance(event.payload, VaultUpdatedEvent)
        return event.payload.data.vault.label
