"""Calls: lists, errors, retries, and what is sent."""

import gzip
import json
import pickle
import time
import unittest
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from email.utils import format_datetime
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any
from unittest import mock

import httpx

from custody_client import Client, CustodyError, NoAnswerError, SignatureError

from .scripted import KEY, Answer, Scripted, answer, page, problem, serving, vault

BROKEN = httpx.ConnectError("connection reset")


def reason(call: Callable[[], object]) -> str:
    try:
        call()
    except NoAnswerError as error:
        return error.reason
    raise AssertionError("it did not fail")


class Lists(unittest.TestCase):
    def test_iterating_over_a_list_returns_the_items_of_every_page(self) -> None:
        script = Scripted(page([vault("a"), vault("b")], "one"), page([vault("c")], None))
        self.assertEqual([one.id for one in script.client().list_vaults(limit=2)], ["a", "b", "c"])
        self.assertEqual([str(one.url.query, "ascii") for one in script.seen], ["limit=2", "limit=2&cursor=one"])
        script = Scripted(page([vault("a"), vault("b")], "one"), page([vault("c")], None))
        self.assertEqual([len(one.data) for one in script.client().list_vaults().pages()], [2, 1])

    def test_one_page_is_the_page_at_a_cursor_or_the_first_one(self) -> None:
        script = Scripted(page([vault("a")], "two"))
        found = script.client().list_vaults(cursor="one").page()
        self.assertEqual((len(found.data), found.pagination.limit, found.pagination.next_cursor), (1, 2, "two"))
        self.assertEqual(script.seen[0].url.params["cursor"], "one")

    def test_pages_are_requested_lazily_and_none_after_the_iteration_stops(self) -> None:
        script = Scripted(page([vault("a"), vault("b")], "one"))
        vaults = script.client().list_vaults()
        self.assertEqual(len(script.seen), 0)
        for _ in vaults:
            break
        self.assertEqual(len(script.seen), 1)

    def test_a_list_whose_cursor_repeats_ends_with_an_error(self) -> None:
        script = Scripted(page([vault()], "one"), page([vault()], "two"), page([vault()], "one"))
        found = []
        with self.assertRaisesRegex(NoAnswerError, "does not end"):
            for one in script.client().list_vaults():
                found.append(one)
        self.assertEqual((len(found), len(script.seen)), (2, 3))

    def test_a_page_that_lacks_its_pagination_is_an_unexpected_answer(self) -> None:
        pagination = {"limit": 1, "nextCursor": None}
        bodies: list[Any] = [{"data": []}, {"pagination": pagination}, [], {"data": [{}], "pagination": pagination}]
        for body in bodies:
            self.assertEqual(reason(lambda: list(Scripted(answer(json=body)).client().list_vaults())), "unexpected_answer")


class Requests(unittest.TestCase):
    def test_filters_become_query_parameters_repeated_for_sequences_and_absent_for_none(self) -> None:
        script = Scripted(page([], None))
        zone = timezone(timedelta(hours=2))
        script.client().list_webhook_deliveries(
            "whs_1", limit=2, status=["PENDING", "FAILED"], kind=None, created_after=datetime(2025, 1, 2, 3, 4, 5, 678901, zone)
        ).page()
        at = "2025-01-02T03:04:05.678901+02:00"
        expected = [("limit", "2"), ("status", "PENDING"), ("status", "FAILED"), ("createdAfter", at)]
        self.assertEqual(script.seen[0].url.params.multi_items(), expected)
        self.assertIn(b"%2B02", script.seen[0].url.query)

    def test_an_empty_sequence_as_a_filter_is_rejected(self) -> None:
        script = Scripted(page([], None))
        with self.assertRaisesRegex(ValueError, "status is an empty list"):
            script.client().list_webhook_deliveries("whs_1", status=[]).page()
        with self.assertRaisesRegex(ValueError, "vaultId is an empty list"):
            next(iter(script.client().follow_events(vault_id=[])))
        self.assertEqual(script.seen, [])

    def test_a_time_without_a_zone_is_rejected(self) -> None:
        script = Scripted(page([], None))
        with self.assertRaisesRegex(ValueError, "time zone"):
            script.client().list_transactions("vault_a", occurred_after=datetime(2025, 1, 1)).page()
        self.assertEqual(script.seen, [])

    def test_an_id_is_one_path_segment_and_a_request_without_an_id_is_not_sent(self) -> None:
        script = Scripted(answer(json=vault()))
        script.client().get_vault("../a b?limit=1")
        self.assertEqual(script.seen[0].url.raw_path, b"/v1/vaults/..%2Fa%20b%3Flimit%3D1")
        for id in ("", ".", ".."):
            with self.assertRaisesRegex(ValueError, "not an id"):
                script.client().get_vault(id)
        self.assertEqual(len(script.seen), 1)

    def test_a_day_is_a_path_segment(self) -> None:
        script = Scripted(problem(404, "not_found"))
        with self.assertRaises(CustodyError):
            script.client().get_statement("vault_a", date(2025, 3, 24))
        self.assertEqual(script.seen[0].url.path, "/v1/vaults/vault_a/statements/2025-03-24")

    def test_a_patch_sends_the_given_fields_and_none_where_none_is_a_value(self) -> None:
        script = Scripted(problem(404, "not_found"))
        client = script.client()
        calls: list[Callable[[], object]] = [
            lambda: client.update_webhook("whs_1"),
            lambda: client.update_webhook("whs_1", vault_ids=None, description=None, status=None),
            lambda: client.update_webhook("whs_1", vault_ids=("vault_a",), status="PAUSED"),
        ]
        for call in calls:
            with self.assertRaises(CustodyError):
                call()
        bodies = [b"{}", b'{"vaultIds": null, "description": null}', b'{"vaultIds": ["vault_a"], "status": "PAUSED"}']
        self.assertEqual([one.content for one in script.seen], bodies)

    def test_the_key_is_sent_as_a_bearer_token_and_shown_nowhere(self) -> None:
        script = Scripted(BROKEN)
        client = script.client(retries=0)
        with self.assertRaises(NoAnswerError) as caught:
            client.get_vault("vault_a")
        self.assertEqual(script.seen[0].headers["authorization"], f"Bearer {KEY}")
        for text in (repr(client), repr(caught.exception), repr(caught.exception.__cause__), repr(vars(client))):
            self.assertNotIn(KEY, text)

    def test_a_key_or_url_that_cannot_be_one_is_named_and_not_shown(self) -> None:
        for key in ("", f"{KEY}\n", f" {KEY}", f"{KEY}\u2028"):
            with self.assertRaisesRegex(ValueError, "api_key") as caught:
                Client("https://custody.example.com", key)
            self.assertNotIn(KEY, str(caught.exception))
        for url in ("custody.example.com", "ftp://custody.example.com", "https://", "https://custody.example.com?a=b"):
            with self.assertRaisesRegex(ValueError, "base_url"):
                Client(url, KEY)

    def test_a_long_poll_has_the_timeout_beside_the_time_that_it_waits(self) -> None:
        script = Scripted(answer(json={"data": [], "pagination": {"limit": 1, "nextCursor": None}, "resumeCursor": "one"}))
        self.assertEqual(script.client(timeout=5).read_event_feed(wait=30).resume_cursor, "one")
        self.assertEqual(script.seen[0].extensions["timeout"]["read"], 35)


class Errors(unittest.TestCase):
    def test_an_error_of_the_api_has_its_code_status_request_id_and_fields(self) -> None:
        issue = {"in": "body", "field": "url", "code": "format", "detail": "is no URL", "more": 1}
        fields = {"errors": [issue], "oldestCursor": "old", "firstDate": "2026-03-18"}
        with self.assertRaises(CustodyError) as caught:
            Scripted(problem(410, "cursor_expired", fields=fields, retry_after="7")).client().read_event_feed(after="x")
        error = caught.exception
        self.assertEqual((error.code, error.status, error.title, error.detail), ("cursor_expired", 410, "T", "D."))
        self.assertEqual((error.request_id, error.oldest_cursor, error.first_date), ("req_1", "old", "2026-03-18"))
        self.assertEqual(error.retry_after, 7)
        self.assertEqual([(one.in_, one.field) for one in error.errors], [("body", "url")])
        self.assertEqual(str(error), "cursor_expired: D. (request req_1)")

    def test_an_error_can_be_passed_to_another_process(self) -> None:
        rejected = CustodyError("not_found", 404, "Not found", "No vault.", "req_1", retry_after=2)
        for error in (rejected, NoAnswerError("unexpected_answer", "A page.", 502), SignatureError("too_old", "Too old.")):
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual((str(copy), vars(copy)), (str(error), vars(error)))

    def test_an_unknown_code_is_kept(self) -> None:
        with self.assertRaises(CustodyError) as caught:
            Scripted(problem(418, "teapot")).client().get_vault("vault_a")
        self.assertEqual(caught.exception.code, "teapot")

    def test_a_failed_connection_a_timeout_and_an_unexpected_response_are_distinguished(self) -> None:
        self.assertEqual(reason(lambda: Client("http://127.0.0.1:9", KEY, retries=0).get_vault("a")), "network")
        unexpected: list[Answer] = [
            httpx.Response(502, text="<html>"),
            httpx.Response(200, text="<html>"),
            answer(json=[]),
            httpx.Response(200, content=b"[" * 200_000),
            httpx.Response(502, content=b"[" * 200_000),
            answer(json=vault(createdAt="yesterday")),
        ]
        for one in unexpected:
            self.assertEqual(reason(lambda: Scripted(one).client(retries=0).get_vault("a")), "unexpected_answer")
        gateway = Scripted(httpx.Response(200, text="<html>")).client(retries=0)
        self.assertEqual(reason(lambda: gateway.delete_webhook("whs_1")), "unexpected_answer")

    def test_a_server_that_is_silent_or_drips_times_out(self) -> None:
        def silent(_: BaseHTTPRequestHandler) -> None:
            time.sleep(1)

        def dripping(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("content-length", "1000")
            handler.end_headers()
            for _ in range(1000):
                handler.wfile.write(b" ")
                time.sleep(0.02)

        for handle in (silent, dripping):
            with serving(handle) as url:
                began = time.monotonic()
                self.assertEqual(reason(lambda: Client(url, KEY, timeout=0.2, retries=0).get_vault("a")), "timeout")
                self.assertLess(time.monotonic() - began, 5)

    def test_a_response_that_decompresses_to_more_than_the_api_sends_is_not_read_to_its_end(self) -> None:
        body = gzip.compress(json.dumps(vault()).encode() + b" " * 1_000_000)

        def compressed(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("content-encoding", "gzip")
            handler.send_header("content-length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        with serving(compressed) as url:
            self.assertEqual(Client(url, KEY).get_vault("vault_a").id, "vault_a")
            with mock.patch("custody_client._caller.LARGEST", 100_000):
                self.assertEqual(reason(lambda: Client(url, KEY, retries=0).get_vault("a")), "unexpected_answer")

    def test_a_redirect_is_not_followed_with_the_key(self) -> None:
        script = Scripted(httpx.Response(302, headers={"location": "https://elsewhere.example.com/"}))
        with self.assertRaises(NoAnswerError) as caught:
            script.client().get_vault("vault_a")
        self.assertEqual((caught.exception.reason, caught.exception.status, len(script.seen)), ("unexpected_answer", 302, 1))
        self.assertIn("redirect to https://elsewhere.example.com/", str(caught.exception))


class Retries(unittest.TestCase):
    def setUp(self) -> None:
        waits = mock.patch("custody_client._caller.sleep")
        self.slept = waits.start()
        self.addCleanup(waits.stop)

    def waits(self) -> list[float]:
        return [call.args[0] for call in self.slept.call_args_list]

    def test_a_read_is_retried_after_a_broken_connection_and_a_503(self) -> None:
        script = Scripted(BROKEN, problem(503, "service_unavailable", retry_after="3"), answer(json=vault()))
        self.assertEqual(script.client().get_vault("vault_a").id, "vault_a")
        first, second = self.waits()
        self.assertTrue(0 <= first <= 0.25)
        self.assertEqual(second, 3)

    def test_a_read_is_retried_after_a_page_of_a_busy_proxy(self) -> None:
        for status in (429, 502):
            script = Scripted(httpx.Response(status, text="<html>"), answer(json=vault()))
            self.assertEqual(script.client().get_vault("vault_a").id, "vault_a")

    def test_retry_after_may_be_an_http_date(self) -> None:
        at = datetime.now(timezone.utc) + timedelta(seconds=20)
        script = Scripted(problem(429, "rate_limited", retry_after=format_datetime(at, usegmt=True)), answer(json=vault()))
        script.client().get_vault("vault_a")
        # Less by the fraction of a second that a date has not, and by a pause of the machine.
        self.assertTrue(10 < self.waits()[0] <= 20)
        past = Scripted(problem(429, "rate_limited", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), answer(json=vault()))
        past.client().get_vault("vault_a")
        self.assertEqual(self.waits()[1], 0)

    def test_a_retry_after_that_is_neither_is_ignored(self) -> None:
        for text in ("soon", "-1", "nan", "1e9", "٣", f"Mon, 01 Jan 2024 00:00:00 +{'9' * 14}"):
            header = [(b"retry-after", text.encode())]
            response = httpx.Response(503, json={"code": "service_unavailable", "requestId": "r"}, headers=header)
            with self.assertRaises(CustodyError) as caught:
                Scripted(response).client(retries=0).get_vault("vault_a")
            self.assertIsNone(caught.exception.retry_after)

    def test_a_wait_of_more_than_30_seconds_is_left_to_the_caller(self) -> None:
        script = Scripted(problem(429, "rate_limited", retry_after="31"))
        with self.assertRaises(CustodyError) as caught:
            script.client().get_vault("vault_a")
        self.assertEqual((caught.exception.retry_after, len(script.seen), self.waits()), (31, 1, []))

    def test_a_rejected_request_is_not_retried_and_retries_end_at_their_number(self) -> None:
        rejected = Scripted(problem(404, "not_found"))
        with self.assertRaises(CustodyError):
            rejected.client().get_vault("vault_a")
        self.assertEqual(len(rejected.seen), 1)
        for retries in (0, 1, 2):
            broken = Scripted(BROKEN)
            self.assertEqual(reason(lambda: broken.client(retries=retries).get_vault("vault_a")), "network")
            self.assertEqual(len(broken.seen), retries + 1)

    def test_a_call_with_an_idempotency_key_is_retried_with_the_same_one(self) -> None:
        rotated = {"id": "whs_1", "secret": "whsec_AA==", "previousSecretExpiresAt": "2026-01-01T00:00:00.000Z"}
        running = problem(409, "idempotency_in_progress", retry_after="1")
        for given in (None, "my-key-1"):
            script = Scripted(BROKEN, running, answer(json=rotated))
            self.assertEqual(script.client().rotate_secret("whs_1", idempotency_key=given).secret, "whsec_AA==")
            keys = {one.headers["idempotency-key"] for one in script.seen}
            self.assertEqual((len(script.seen), len(keys)), (3, 1))
            if given is not None:
                self.assertEqual(keys, {given})
        other = Scripted(answer(json=rotated))
        client = other.client()
        for _ in range(2):
            client.rotate_secret("whs_1")
        self.assertNotEqual(*[one.headers["idempotency-key"] for one in other.seen])

    def test_a_patch_delete_or_ping_is_retried_only_if_it_was_rate_limited(self) -> None:
        for failure in (BROKEN, problem(503, "service_unavailable")):
            script = Scripted(failure)
            client = script.client()
            calls: list[Callable[[], object]] = [
                lambda: client.update_webhook("whs_1"),
                lambda: client.delete_webhook("whs_1"),
                lambda: client.ping_webhook("whs_1"),
            ]
            for call in calls:
                with self.assertRaises((CustodyError, NoAnswerError)):
                    call()
            self.assertEqual(len(script.seen), 3)
        limited = Scripted(problem(429, "rate_limited", retry_after="0"), httpx.Response(204))
        limited.client().delete_webhook("whs_1")
        self.assertEqual(len(limited.seen), 2)


class Downloads(unittest.TestCase):
    def test_a_file_is_received_in_parts_and_an_incomplete_one_fails(self) -> None:
        def handle(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("content-type", "text/csv")
            handler.send_header("content-length", "8")
            handler.end_headers()
            handler.wfile.write(b"a,b\n1," if "csv" in handler.path else b"a,b\n1,2\n")

        with serving(handle) as url, Client(url, KEY) as client:
            with client.export_transactions("vault_a", format="ndjson") as file:
                self.assertEqual(b"".join(file), b"a,b\n1,2\n")
            with client.export_transactions("vault_a", format="csv") as file, self.assertRaisesRegex(NoAnswerError, "incomplete"):
                list(file)

    def test_a_page_of_a_gateway_is_not_a_file(self) -> None:
        page = httpx.Response(200, text="<html>", headers={"content-type": "text/html"})
        export = partial(Scripted(page).client().export_transactions, "vault_a", format="csv")
        self.assertEqual(reason(export), "unexpected_answer")

    def test_a_rejected_export_is_an_error_of_the_api(self) -> None:
        with self.assertRaises(CustodyError) as caught:
            Scripted(problem(422, "too_many_rows")).client().export_transactions("vault_a", format="csv")
        self.assertEqual(caught.exception.code, "too_many_rows")
