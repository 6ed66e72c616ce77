"""Following the event feed: each event once, across lost connections."""

import itertools
import threading
import unittest
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from unittest import mock

import httpx

from custody_client import Client, CustodyError, NoAnswerError

from .scripted import KEY, Scripted, event, message, problem, serving

Connection = Callable[[BaseHTTPRequestHandler], None]


def stream(*messages: bytes, size: int = 1 << 20) -> Connection:
    """A connection that sends these messages, in parts of a size, and ends."""

    def handle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream; charset=utf-8")
        handler.end_headers()
        whole = b"".join(messages)
        for at in range(0, len(whole), size):
            handler.wfile.write(whole[at : at + size])

    return handle


def refusing(status: int, code: str, retry_after: str | None = None) -> Connection:
    """A connection that is answered with an error."""

    def handle(handler: BaseHTTPRequestHandler) -> None:
        body = problem(status, code).content
        handler.send_response(status)
        handler.send_header("content-length", str(len(body)))
        if retry_after is not None:
            handler.send_header("retry-after", retry_after)
        handler.end_headers()
        handler.wfile.write(body)

    return handle


def busy_proxy(handler: BaseHTTPRequestHandler) -> None:
    """A connection that is answered with a proxy's page."""
    body = b"<html>"
    handler.send_response(429)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class Follow(unittest.TestCase):
    def setUp(self) -> None:
        waits = mock.patch("custody_client._follow.sleep")
        self.slept = waits.start()
        self.addCleanup(waits.stop)

    def served(self, connections: Iterable[Connection]) -> tuple[str, list[tuple[str, str | None]]]:
        """A server that handles connections in turn; gives its URL and the path and cursor of each."""
        seen: list[tuple[str, str | None]] = []
        lock, left = threading.Lock(), iter(connections)

        def handle(handler: BaseHTTPRequestHandler) -> None:
            with lock:
                seen.append((handler.path, handler.headers["last-event-id"]))
                one = next(left)
            one(handler)

        return self.opened(handle), seen

    def opened(self, handle: Connection) -> str:
        manager = serving(handle)
        url = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return url

    def test_each_connection_resumes_from_the_last_cursor_of_the_one_before(self) -> None:
        url, seen = self.served(
            [
                stream(message("c0"), message("c1", event(1)), message("c2", event(2))),
                stream(message("c3")),
                refusing(503, "service_unavailable"),
                busy_proxy,
                stream(message("c3"), message("c4", event(3)), message("c5", event(4))),
            ]
        )
        places: list[str] = []
        lost: list[Exception] = []
        opened: list[int] = []
        with Client(url, KEY) as client:
            following = client.follow_events(
                from_="now",
                kind=["vault.updated", "vault.created"],
                vault_id=["vault_a"],
                on_cursor=places.append,
                on_connected=lambda: opened.append(len(places)),
                on_lost=lost.append,
            )
            found = [(one.event.id, one.resume_cursor) for one in itertools.islice(following, 4)]
        self.assertEqual(found, [("evt_1", "c1"), ("evt_2", "c2"), ("evt_3", "c4"), ("evt_4", "c5")])
        filters = "kind=vault.updated&kind=vault.created&vaultId=vault_a"
        path = f"/v1/event-feed/stream?{filters}"
        self.assertEqual(seen, [(f"{path}&from=now", None), (path, "c2"), (path, "c3"), (path, "c3"), (path, "c3")])
        self.assertEqual((places, opened), (["c0", "c1", "c2", "c3", "c3", "c4"], [0, 3, 4]))
        self.assertEqual([type(one) for one in lost], [NoAnswerError, NoAnswerError, CustodyError, NoAnswerError])

    def test_the_text_of_an_event_may_have_line_separators_and_arrive_in_any_parts(self) -> None:
        label = "a\u2028b\u0085c\x1cd\r\n€ 金庫"
        for size in (1, 7, 1 << 20):
            url, _ = self.served([stream(message("c0"), message("c1", event(1, label)), size=size)])
            with Client(url, KEY) as client:
                found = next(client.follow_events())
            self.assertEqual(found.event.raw, event(1, label))

    def test_it_waits_longer_after_each_failure_and_begins_anew_once_connected(self) -> None:
        broken = [refusing(500, "internal_error")] * 7
        url, _ = self.served([stream(message("c0")), *broken, stream(message("c0")), stream(message("c1", event(1)))])
        with Client(url, KEY) as client:
            next(client.follow_events())
        waits = [call.args[0] for call in self.slept.call_args_list]
        for wait, longest in zip(waits, [0.25, 0.5, 1, 2, 4, 5, 5, 5, 0.25], strict=True):
            self.assertTrue(longest / 2 <= wait <= longest, (wait, longest))

    def test_it_waits_at_most_five_minutes_whatever_it_is_asked_to(self) -> None:
        url, _ = self.served([stream(message("c0")), refusing(503, "x", retry_after="999999999"), stream(message("c1", event(1)))])
        with Client(url, KEY) as client:
            next(client.follow_events())
        self.assertEqual(max(call.args[0] for call in self.slept.call_args_list), 300)

    def test_a_message_without_end_is_not_kept(self) -> None:
        url, _ = self.served([stream(b"data: " + b"x" * 200_000)])
        with mock.patch("custody_client._follow.LARGEST", 100_000), Client(url, KEY) as client, self.assertRaises(NoAnswerError) as caught:
            next(client.follow_events())
        self.assertEqual(caught.exception.reason, "unexpected_answer")

    def test_it_ends_with_an_error_that_will_not_pass(self) -> None:
        for status, code in ((401, "revoked_api_key"), (410, "cursor_expired"), (400, "invalid_cursor")):
            url, _ = self.served([stream(message("c0")), refusing(status, code)])
            with Client(url, KEY) as client, self.assertRaises(CustodyError) as caught:
                next(client.follow_events(after="c"))
            self.assertEqual(caught.exception.code, code)

    def test_a_first_connection_that_fails_is_an_error(self) -> None:
        script = Scripted(httpx.ConnectError("refused"))
        with self.assertRaises(NoAnswerError) as caught:
            next(script.client().follow_events())
        self.assertEqual((caught.exception.reason, len(script.seen)), ("network", 1))
        page = Scripted(httpx.Response(200, text="<html>"))
        with self.assertRaises(NoAnswerError) as caught:
            next(page.client().follow_events())
        self.assertEqual(caught.exception.reason, "unexpected_answer")

    def test_a_message_that_is_no_event_ends_it(self) -> None:
        for data in (b"id: c1\ndata: {}\n\n", b"id: c1\ndata: no json\n\n", b"id: \xff\n\n"):
            url, seen = self.served([stream(message("c0"), data)])
            with Client(url, KEY) as client, self.assertRaisesRegex(NoAnswerError, "not an event"):
                next(client.follow_events())
            self.assertEqual(len(seen), 1)

    def test_a_redirect_is_not_followed_with_the_key(self) -> None:
        script = Scripted(httpx.Response(307, headers={"location": "https://elsewhere.example.com/"}))
        with self.assertRaises(NoAnswerError):
            next(script.client().follow_events())
        self.assertEqual(len(script.seen), 1)

    def test_a_cursor_and_now_cannot_be_combined(self) -> None:
        with self.assertRaisesRegex(ValueError, "combined"):
            Scripted(problem(500, "x")).client().follow_events(after="c1", from_="now")
