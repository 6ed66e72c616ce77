"""Follows the event feed: its stream of server-sent events, across lost connections and restarts of the service.

Each connection resumes from the last cursor of the previous one, so no event is missed or repeated.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from time import sleep

import httpx

from ._caller import LARGEST, error_of, is_busy_proxy, parameters, unreachable
from ._errors import CustodyError, NoAnswerError
from ._model import decode, parse
from .models import WebhookEvent

SILENCE = 45.0
"""A stream is never silent for longer than 15 s; after this silence, in seconds, it counts as lost."""
SOON, LATE = 0.25, 5.0
"""Shortest and longest wait before reconnecting, in seconds."""
LONGEST_ASKED = 300.0
"""Longest wait before reconnecting that the service, or whatever answers for it, can ask for, in seconds."""


@dataclass(frozen=True, kw_only=True)
class FollowedEvent:
    """An event with the cursor after it."""

    event: WebhookEvent
    resume_cursor: str
    """Store it together with the effect of the event, and pass it as ``after`` to resume."""


@dataclass(frozen=True, kw_only=True)
class Feed:
    """Where to follow from, what, and who is told."""

    http: httpx.Client
    origin: str
    timeout: float
    after: str | None
    from_: str | None
    filters: Mapping[str, object]
    on_cursor: Callable[[str], None] | None
    on_connected: Callable[[], None] | None
    on_lost: Callable[[Exception], None] | None

    def __iter__(self) -> Iterator[FollowedEvent]:
        cursor, began, wait = self.after, False, SOON
        while True:
            connected = False
            reason: CustodyError | NoAnswerError = NoAnswerError("network", f"{self.origin} ended the connection.")
            with contextlib.closing(self._messages(cursor)) as messages:
                while True:
                    try:
                        message = next(messages, None)
                    except (CustodyError, NoAnswerError) as error:
                        if not _is_temporary(error) or (not began and isinstance(error, NoAnswerError)):
                            raise
                        reason = error
                        break
                    if message is None:
                        break
                    # A stream's first message is its cursor: from then on, the position is known.
                    if not connected and self.on_connected is not None:
                        self.on_connected()
                    connected, began, wait = True, True, SOON
                    cursor, event = message
                    if event is not None:
                        yield FollowedEvent(event=event, resume_cursor=cursor)
                    if self.on_cursor is not None:
                        self.on_cursor(cursor)
            if self.on_lost is not None:
                self.on_lost(reason)
            asked = min(reason.retry_after or 0.0, LONGEST_ASKED) if isinstance(reason, CustodyError) else 0.0
            sleep(max(asked, wait * random.uniform(0.5, 1)))
            wait = min(LATE, wait * 2)

    def _messages(self, cursor: str | None) -> Generator[tuple[str, WebhookEvent | None], None, None]:
        """The cursors of a connection, each with its event if it has one, until the connection ends."""
        request = self.http.build_request(
            "GET",
            f"{self.origin}/v1/event-feed/stream",
            params=parameters({**self.filters, "from": self.from_ if cursor is None else None}),
            headers={
                "accept": "text/event-stream, application/problem+json",
                **({} if cursor is None else {"last-event-id": cursor}),
            },
            timeout=httpx.Timeout(self.timeout, read=SILENCE),
        )
        try:
            with contextlib.closing(self.http.send(request, stream=True)) as response:
                if not response.is_success or not response.headers.get("content-type", "").startswith("text/event-stream"):
                    response.read()
                    raise error_of(response)
                # Only line feeds separate lines: the text of an event may contain other line separators of Unicode.
                rest = b""
                for part in response.iter_bytes():
                    *blocks, rest = (rest + part).split(b"\n\n")
                    if len(rest) > LARGEST:
                        raise NoAnswerError("unexpected_answer", f"The event feed sent a message of more than {LARGEST} bytes.")
                    for block in blocks:
                        message = _message(block)
                        if message is not None:
                            yield message
        except httpx.RequestError as error:
            raise unreachable(self.origin, error) from error


def _message(block: bytes) -> tuple[str, WebhookEvent | None] | None:
    cursor: str | None = None
    data: list[str] = []
    try:
        for line in block.decode().split("\n"):
            if line.startswith(": at "):
                cursor = line[5:]
            elif line.startswith("id: "):
                cursor = line[4:]
            elif line.startswith("data: "):
                data.append(line[6:])
        event = decode(WebhookEvent, parse("\n".join(data))) if data else None
    except ValueError as error:
        raise NoAnswerError("unexpected_answer", f"The event feed sent a message that is not an event: {error}") from error
    return None if cursor is None else (cursor, event)


def _is_temporary(error: CustodyError | NoAnswerError) -> bool:
    if isinstance(error, CustodyError):
        return error.status == 429 or error.status >= 500
    return error.reason != "unexpected_answer" or is_busy_proxy(error)
