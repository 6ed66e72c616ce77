"""The client: every operation of the API, and the event feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Literal

from ._follow import Feed, FollowedEvent
from .models import EventKind
from .operations import Operations


class Client(Operations):
    """A client of the service at ``base_url`` with an API key.

    ``timeout`` is that of one attempt, in seconds. ``retries`` is the number of retries of calls that can be repeated safely.
    ``transport`` replaces the connections: for a proxy, a client certificate or tests. Threads can share a client.

    A call raises :class:`CustodyError` if the API returns an error, and :class:`NoAnswerError` without a usable response.
    """

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def follow_events(
        self,
        *,
        after: str | None = None,
        from_: Literal["now"] | None = None,
        kind: Sequence[EventKind | str] | None = None,
        vault_id: Sequence[str] | None = None,
        entity_id: Sequence[str] | None = None,
        on_cursor: Callable[[str], None] | None = None,
        on_connected: Callable[[], None] | None = None,
        on_lost: Callable[[Exception], None] | None = None,
    ) -> Iterator[FollowedEvent]:
        """Every event that the key can see from a cursor on, oldest first, each once, across lost connections.

        It begins after the cursor ``after``, with ``from_="now"`` at the end of the log, and otherwise with the oldest event.
        ``on_cursor`` is called with each cursor to resume from: after every event, and every 15 seconds without one.
        ``on_connected`` is called when a connection is open and its cursor known, and ``on_lost`` with the reason when it is
        lost. A lost connection is restored, however long that takes.

        Raises :class:`CustodyError` if the API rejects the request (an invalid or revoked key, a cursor that is invalid or older
        than the log), and :class:`NoAnswerError` if the first connection fails.
        """
        if after is not None and from_ is not None:
            raise ValueError("after and from_ cannot be combined")
        return iter(
            Feed(
                http=self._http,
                origin=self._origin,
                timeout=self._timeout,
                after=after,
                from_=from_,
                filters={"kind": kind, "vaultId": vault_id, "entityId": entity_id},
                on_cursor=on_cursor,
                on_connected=on_connected,
                on_lost=on_lost,
            )
        )
