"""Errors of calls: the API's problems by code, and missing or unusable responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .models import ErrorCode, FieldIssue

NoAnswerReason = Literal["network", "timeout", "unexpected_answer"]


class CustodyError(Exception):
    """The API returned an error (RFC 9457). ``code`` says why."""

    def __init__(
        self,
        code: ErrorCode | str,
        status: int,
        title: str,
        detail: str,
        request_id: str,
        errors: Sequence[FieldIssue] = (),
        oldest_cursor: str | None = None,
        first_date: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        # With all arguments, so that it can be pickled for another process.
        super().__init__(code, status, title, detail, request_id, errors, oldest_cursor, first_date, retry_after)
        self.code = code
        self.status = status
        self.title = title
        self.detail = detail
        self.request_id = request_id
        """Id of the request in the service's log: give it to support."""
        self.errors = errors
        """The invalid fields, if any."""
        self.oldest_cursor = oldest_cursor
        """For ``cursor_expired``: the oldest cursor of the event feed to resume from."""
        self.first_date = first_date
        """For ``not_sealed``, if the period ends before the vault's first statement: that statement's day, as YYYY-MM-DD."""
        self.retry_after = retry_after
        """Seconds to wait before a retry, if the API sent ``Retry-After``."""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail} (request {self.request_id})"


class NoAnswerError(Exception):
    """No usable response.

    ``reason`` is ``network`` if there was no connection or it broke, ``timeout``, or ``unexpected_answer`` if the response is not
    the API's, such as a proxy's page or a redirect.
    """

    def __init__(self, reason: NoAnswerReason, message: str, status: int | None = None) -> None:
        super().__init__(reason, message, status)
        self.reason: NoAnswerReason = reason
        self.message = message
        self.status = status
        """Status of an unexpected response."""

    def __str__(self) -> str:
        return self.message
