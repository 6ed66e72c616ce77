"""Lists, page by page, and files, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, TypeVar

import httpx

from ._errors import NoAnswerError
from .models import Pagination

T = TypeVar("T")
P = TypeVar("P")


@dataclass(frozen=True, kw_only=True)
class Page(Generic[T]):
    """One page of a list."""

    data: list[T]
    pagination: Pagination


def each_page(read: Callable[[str | None], P], next_of: Callable[[P], str | None], cursor: str | None = None) -> Iterator[P]:
    """The pages from a cursor on, each requested when the previous one was used."""
    seen = {cursor}
    while True:
        page = read(cursor)
        cursor = next_of(page)
        if cursor is not None and cursor in seen:
            raise NoAnswerError("unexpected_answer", "The list does not end: a page has the cursor of an earlier page.")
        yield page
        if cursor is None:
            return
        seen.add(cursor)


class Pages(Generic[T]):
    """A list. Iterating over it yields every item and requests each page when it is needed, so it can fail like a call."""

    def __init__(self, request: Callable[[str | None], Page[T]]) -> None:
        self._request = request

    def page(self) -> Page[T]:
        """The page at the call's ``cursor``; without one, the first page."""
        return self._request(None)

    def pages(self) -> Iterator[Page[T]]:
        """Every page. Raises :class:`NoAnswerError` if a cursor repeats, because such a list would never end."""
        return each_page(self._request, lambda page: page.pagination.next_cursor)

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data


class Download:
    """A file while it is received: iterate over its bytes within a ``with`` block, which closes the connection at its end.

    The iteration raises :class:`NoAnswerError` if the file is incomplete.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._response.iter_bytes()
        except httpx.RequestError as error:
            raise NoAnswerError("network", f"The file is incomplete: {error}") from error

    def close(self) -> None:
        """Closes the connection."""
        self._response.close()

    def __enter__(self) -> Download:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
