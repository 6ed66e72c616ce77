"""Connections with scripted responses, and a server on a loopback port."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from custody_client import Client

KEY = "cds_0123456789abcdefghij"

Answer = httpx.Response | Exception


def answer(status: int = 200, json: Any = None, **headers: str) -> httpx.Response:
    """A response with a JSON body."""
    return httpx.Response(status, json=json, headers={name.replace("_", "-"): value for name, value in headers.items()})


def problem(status: int, code: str, *, fields: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
    """An error of the API."""
    body = {"title": "T", "status": status, "detail": "D.", "code": code, "requestId": "req_1", **(fields or {})}
    return answer(status, body, **headers)


def page(items: list[Any], cursor: str | None) -> httpx.Response:
    """A page of a list."""
    return answer(json={"data": items, "pagination": {"limit": 2, "nextCursor": cursor}})


class Scripted:
    """Answers the requests of a client in turn, the last one again and again, and keeps the requests."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = answers
        self.seen: list[httpx.Request] = []

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        found = self.answers[min(len(self.seen), len(self.answers)) - 1]
        if isinstance(found, Exception):
            raise found
        # A response is read once: each request gets one of its own.
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    def client(self, **options: Any) -> Client:
        return Client("https://custody.example.com/", KEY, transport=httpx.MockTransport(self._answer), **options)


Handle = Callable[[BaseHTTPRequestHandler], None]


@contextlib.contextmanager
def serving(handle: Handle) -> Iterator[str]:
    """A server whose GET requests are handled by a function; gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with contextlib.suppress(ConnectionError):
                handle(self)

        def end_headers(self) -> None:
            self.send_header("connection", "close")
            super().end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def vault(id: str = "vault_a", **more: Any) -> dict[str, Any]:
    """A vault of the API."""
    at = "2024-01-01T00:00:00.000Z"
    return {"id": id, "entityId": "entity_a", "label": id, "networks": ["ethereum"], "createdAt": at, **more}


def event(number: int, label: str = "label") -> dict[str, Any]:
    """An event of the log."""
    at = "2026-01-01T00:00:00.000Z"
    common = {"id": f"evt_{number}", "entityId": "entity_a", "vaultIds": ["vault_a"], "kind": "vault.updated", "schemaVersion": 1}
    payload = {**common, "date": at, "data": {"vaultId": "vault_a", "vault": vault(label=label)}}
    return {**common, "payload": payload, "occurredAt": at, "dispatchedAt": None, "createdAt": at}


def message(cursor: str, data: Any = None) -> bytes:
    """A message of the event stream: a comment with a cursor, or an event."""
    if data is None:
        return f": at {cursor}\n\n".encode()
    return f"id: {cursor}\nevent: webhook-event\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
