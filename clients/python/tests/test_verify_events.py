"""The events of an entity against its signed checkpoints: the published vectors, and everything that is changed on the way."""

from __future__ import annotations

import json
import unittest
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from custody_client import Client, NoAnswerError, NotVerifiable, VerificationError, VerifiedEvents, verify_events
from custody_client._verify_events import chain_hash

from .scripted import KEY, answer, page

VECTORS = json.loads((Path(__file__).parents[3] / "src/client/chain-vectors.json").read_text())
ENTITY = "entity_1"
FIRST, LAST = ({**one, "resumeCursor": f"c{one['count']}"} for one in VECTORS["checkpoints"])
KEYS = {"keys": VECTORS["keys"]}
AT = datetime.fromisoformat(LAST["at"].replace("Z", "+00:00")).timestamp()
verify = partial(verify_events, now=AT)


def row(payload: dict[str, Any]) -> dict[str, Any]:
    same = {name: payload[name] for name in ("id", "kind", "schemaVersion", "entityId", "vaultIds")}
    return {**same, "occurredAt": payload["date"], "payload": payload, "createdAt": payload["date"], "dispatchedAt": None}


ROWS = [row(json.loads(payload)) for payload in VECTORS["payloads"]]
FALSE: dict[str, Any] = {
    "id": "evt_01kdxhwa000000000000000009",
    "kind": "vault.created",
    "schemaVersion": True,
    "occurredAt": "2020-01-01T00:00:00.000Z",
    "entityId": "entity_2",
    "vaultIds": ["vault_2"],
}


def service(*pages: list[dict[str, Any]], latest: dict[str, Any] = LAST, keys: dict[str, Any] = KEYS, last: str | None = None) -> Client:
    """A client of a service whose feed has these pages. The last one has the cursor ``last``."""

    def respond(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/v1/jwks.json":
            return answer(json=keys)
        if path == "/v1/event-checkpoints/latest":
            return answer(json=latest)
        if path == "/v1/event-checkpoints":
            return page([FIRST], None)
        after = request.url.params["after"]
        at = int(after[1:]) if after.startswith("p") else 0
        cursor = f"p{at + 1}" if at + 1 < len(pages) else last
        return answer(json={"data": pages[min(at, len(pages) - 1)], "pagination": {"limit": 500, "nextCursor": cursor}, "resumeCursor": "end"})

    return Client("https://custody.example.com", KEY, transport=httpx.MockTransport(respond))


class VerifyEvents(unittest.TestCase):
    def differs(self, pattern: str, call: Callable[[], VerifiedEvents]) -> None:
        with self.assertRaisesRegex(VerificationError, pattern):
            call()

    def test_the_chain_of_the_vectors_is_complete_in_any_pages(self) -> None:
        state = bytes(32)
        for payload, expected in zip(VECTORS["payloads"], VECTORS["hashes"], strict=True):
            state = chain_hash(state, json.loads(payload))
            self.assertEqual(state.hex(), expected)
        # No service signs text that is not Unicode.
        self.assertNotEqual(chain_hash(state, "\ud800"), chain_hash(state, "?"))
        for pages in ([ROWS], [[one] for one in ROWS], [ROWS[:2], [], ROWS[2:]]):
            found = verify(service(*pages), ENTITY)
            self.assertEqual((found.events, found.from_ and found.from_.count, found.to.count), (5, 0, 5))
        self.assertEqual(verify(service(ROWS), ENTITY, FIRST, keys=KEYS).events, 5)
        self.assertEqual(verify(service([]), ENTITY, LAST).events, 0)

    def test_each_invalid_checkpoint_of_the_vectors_is_refused(self) -> None:
        for one in VECTORS["invalid"]:
            with self.subTest(one["name"]):
                self.differs("checkpoint", lambda: verify(service(ROWS, latest=one["checkpoint"]), ENTITY))
                kept = {**one["checkpoint"], "resumeCursor": "c0"}
                self.differs("checkpoint", lambda: verify(service(ROWS), ENTITY, kept))

    def test_a_checkpoint_of_another_form_is_refused(self) -> None:
        for field in ({"at": "Jan 02 2026 00:00:00 GMT (\x1b[2J\n)"}, {"at": None}, {"count": "5"}, {"resumeCursor": 5}):
            with self.subTest(field):
                self.differs("a field that is not valid", lambda: verify(service(ROWS, latest={**LAST, **field}), ENTITY))
                with self.assertRaises(NotVerifiable):
                    verify(service(ROWS), ENTITY, {**LAST, **field})

    def test_an_event_whose_fields_differ_from_its_payload_is_named(self) -> None:
        for name, value in FALSE.items():
            for at in (0, 2, 4):
                rows = [{**one, name: value} if index == at else one for index, one in enumerate(ROWS)]
                expected = f"^the field {name} of the event {ROWS[at]['id']} differs from its payload$"
                with self.subTest(name, at=at):
                    self.differs(expected, lambda: verify(service(rows), ENTITY))
        self.differs("has no payload", lambda: verify(service([{**ROWS[0], "payload": None}]), ENTITY))
        for other in (None, ["x"]):
            false = {**ROWS[0], "id": other, "payload": {**ROWS[0]["payload"], "id": other}}
            self.differs("has no id", partial(verify, service([false]), ENTITY))
        nothing: Any = None
        with self.assertRaises(NoAnswerError):
            verify(service(nothing), ENTITY)

    def test_events_that_are_missing_changed_swapped_or_repeated_are_detected(self) -> None:
        other = row({**ROWS[1]["payload"], "data": {}})
        for pages, expected in (
            ([ROWS[:4]], "^1 event is missing between"),
            ([[ROWS[0], other, *ROWS[2:]]], "^the events between .* differ"),
            ([[ROWS[1], ROWS[0], *ROWS[2:]]], "^the events between .* differ"),
            ([[*ROWS[:2], *ROWS[1:]]], f"^the event {ROWS[1]['id']} is repeated$"),
            ([[*ROWS, ROWS[4]]], f"^the event {ROWS[4]['id']} is repeated$"),
            ([ROWS, [ROWS[4]]], f"^the event {ROWS[4]['id']} is repeated$"),
        ):
            with self.subTest(expected):
                self.differs(expected, lambda: verify(service(*pages), ENTITY))

    def test_only_the_given_keys_are_trusted(self) -> None:
        false = {"keys": [{**VECTORS["keys"][0], "x": "A" * 43}]}
        self.differs("does not verify", lambda: verify(service(ROWS, keys=false), ENTITY))
        self.assertEqual(verify(service(ROWS, keys=false), ENTITY, keys=KEYS).events, 5)
        self.differs("does not verify", lambda: verify(service(ROWS), ENTITY, keys=false))

    def test_an_old_checkpoint_in_place_of_the_current_one_proves_nothing(self) -> None:
        with self.assertRaisesRegex(NotVerifiable, "before the stored one"):
            verify(service([], latest=FIRST), ENTITY, LAST)
        for wrong in (AT - 601, AT + 601):
            with self.subTest(wrong), self.assertRaisesRegex(NotVerifiable, "more than 10 minutes apart"):
                verify_events(service([]), ENTITY, LAST, now=wrong)
        with self.assertRaises(NotVerifiable):
            verify_events(service(ROWS), ENTITY)
        self.assertEqual(verify_events(service(ROWS), ENTITY, now=AT + 599).events, 5)

    def test_an_argument_that_is_not_valid_cannot_be_checked(self) -> None:
        for kept in ({}, {**FIRST, "count": "0"}, {**FIRST, "resumeCursor": None}):
            with self.subTest(kept), self.assertRaises(NotVerifiable):
                verify(service(ROWS), ENTITY, kept)
        with self.assertRaises(NotVerifiable):
            verify(service(ROWS), ENTITY, keys={"keys": []})

    def test_a_feed_whose_cursor_repeats_is_an_error_and_not_a_loop(self) -> None:
        with self.assertRaises(NoAnswerError):
            verify(service(ROWS[:2], ROWS[2:4], last="p1"), ENTITY)
