"""A copy of a vault, from the lists and from the events after its cursor."""

from __future__ import annotations

import unittest
from typing import Any

import httpx

from custody_client import Client, NoAnswerError, catch_up, copy_vault

from .scripted import KEY, answer, event, page, vault


def service(*feed: dict[str, Any]) -> Client:
    """A client of a service with these pages of the feed."""
    pages = iter(feed)

    def respond(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/v1/event-feed":
            return answer(json=next(pages))
        return answer(json=vault()) if path == "/v1/vaults/vault_a" else page([], None)

    return Client("https://custody.example.com", KEY, transport=httpx.MockTransport(respond))


def feed_page(events: list[dict[str, Any]], at: str, more: bool = False) -> dict[str, Any]:
    return {"data": events, "pagination": {"limit": 500, "nextCursor": at if more else None}, "resumeCursor": at}


class Copy(unittest.TestCase):
    def test_events_after_the_cursor_correct_the_lists_in_order(self) -> None:
        other = {**event(9, "other"), "vaultIds": ["vault_b"]}
        start, first = feed_page([], "c0"), feed_page([event(1, "one"), event(2, "two"), other], "c1", more=True)
        custody = service(start, first, feed_page([event(3, "three")], "c2"), feed_page([event(4, "four")], "c3"))
        copy = copy_vault(custody, "vault_a")
        self.assertEqual((copy.vault.label, copy.resume_cursor), ("three", "c2"))
        catch_up(custody, copy)
        self.assertEqual((copy.vault.label, copy.resume_cursor), ("four", "c3"))

    def test_a_feed_whose_cursor_repeats_is_an_error_and_not_a_loop(self) -> None:
        with self.assertRaises(NoAnswerError):
            copy_vault(service(feed_page([], "c0"), feed_page([], "c1", more=True), feed_page([], "c1", more=True)), "vault_a")
