"""One HTTP call: request, retries, and its result or error."""

from __future__ import annotations

import contextlib
import json
import random
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from time import monotonic, sleep
from types import NoneType
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from ._errors import CustodyError, NoAnswerError
from ._model import UNSET, DecodeError, decode, encode, parse
from ._pages import Download, Page, Pages
from .models import FieldIssue, Pagination

T = TypeVar("T")

LONGEST_WAIT = 30.0
"""A call is not retried if the API asks for a longer wait, in seconds."""
LARGEST = 64 * 1024 * 1024
"""Largest response that is read into memory, in bytes: far larger than any of the API, however well it is compressed."""
_JSON = "application/json, application/problem+json"
_FILES = ("text/csv", "application/x-ndjson")


class Caller:
    """Sends requests with a client's settings."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url = httpx.URL(base_url)
        if url.scheme not in ("https", "http") or url.host == "" or url.query != b"" or url.fragment != "":
            raise ValueError("base_url must be a URL such as https://custody.example.com")
        if re.fullmatch(r"[!-~]+", api_key) is None:
            raise ValueError("api_key is empty or has a character that no key has, such as the newline of a file")
        self._origin = str(url).rstrip("/")
        self._timeout = timeout
        self._retries = retries
        # A redirect is an unexpected response: following it could send the key elsewhere.
        self._http = httpx.Client(
            headers={"authorization": f"Bearer {api_key}"}, timeout=timeout, follow_redirects=False, transport=transport
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._origin!r})"

    def _call(
        self,
        result: type[T],
        method: str,
        path: str,
        ids: Sequence[object] = (),
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        request_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> T:
        response = self._send(self._request(method, path, ids, query, body, request_id, idempotency_key))
        if result is not NoneType:
            return self._decoded(result, response)
        if response.status_code != 204:
            raise _unexpected(response, f"status {response.status_code}")
        return decode(result, None)

    def _pages(
        self, item: type[T], path: str, ids: Sequence[object] = (), *, query: Mapping[str, object], request_id: str | None = None
    ) -> Pages[T]:
        def page(cursor: str | None) -> Page[T]:
            at = query if cursor is None else {**query, "cursor": cursor}
            response = self._send(self._request("GET", path, ids, at, None, request_id, None))
            found = self._decoded(dict[str, Any], response)
            try:
                pagination = decode(Pagination, found.get("pagination"))
                data = decode(list[item], found.get("data"))  # type: ignore[valid-type]
            except DecodeError as error:
                raise _unexpected(response, str(error)) from error
            return Page(data=data, pagination=pagination)

        return Pages(page)

    def _download(
        self, path: str, ids: Sequence[object] = (), *, query: Mapping[str, object], request_id: str | None = None
    ) -> Download:
        request = self._request("GET", path, ids, query, None, request_id, None)
        request.headers["accept"] = f"{_JSON}, */*"
        response = self._send(request, whole=False)
        if response.headers.get("content-type", "").split(";")[0].strip().lower() not in _FILES:
            response.close()
            raise _unexpected(response, "it is not a file of the API")
        return Download(response)

    def _request(
        self,
        method: str,
        path: str,
        ids: Sequence[object],
        query: Mapping[str, object] | None,
        body: Mapping[str, object] | None,
        request_id: str | None,
        idempotency_key: str | None,
    ) -> httpx.Request:
        given = {"x-request-id": request_id, "idempotency-key": idempotency_key}
        headers = {name: _header(name, value) for name, value in given.items() if value is not None}
        if body is not None:
            headers["content-type"] = "application/json"
        wait = (query or {}).get("wait")
        return self._http.build_request(
            method,
            self._origin + path.format(*(_segment(one) for one in ids)),
            params=parameters(query or {}),
            headers={"accept": _JSON, **headers},
            content=None if body is None else json.dumps({name: encode(one) for name, one in body.items() if one is not UNSET}),
            # The API holds a long poll back for as long as it is asked to.
            timeout=self._timeout + (wait if isinstance(wait, (int, float)) else 0),
        )

    def _send(self, request: httpx.Request, *, whole: bool = True) -> httpx.Response:
        # Each ping sends a request, and a patch or delete may have been carried out: repeating them is up to the caller.
        repeatable = request.method == "GET" or "idempotency-key" in request.headers
        attempt = 0
        while True:
            try:
                return self._once(request, whole)
            except (CustodyError, NoAnswerError) as error:
                limited = isinstance(error, CustodyError) and error.status == 429
                wait = _wait_before(attempt, error)
                if attempt >= self._retries or not _is_temporary(error) or not (repeatable or limited) or wait > LONGEST_WAIT:
                    raise
            sleep(wait)
            attempt += 1

    def _once(self, request: httpx.Request, whole: bool) -> httpx.Response:
        limit = request.extensions["timeout"]["read"]
        end = monotonic() + limit
        try:
            response = self._http.send(request, stream=True)
            # A download takes as long as its reader needs: the timeout applies until it begins.
            if response.is_success and not whole:
                return response
            parts, size = [], 0
            with contextlib.closing(response):
                for part in response.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > LARGEST:
                        raise _unexpected(response, f"it has more than {LARGEST} bytes")
                    if monotonic() > end:
                        raise NoAnswerError("timeout", f"{self._origin} did not respond completely within {limit:g} s.")
        except httpx.RequestError as error:
            raise unreachable(self._origin, error) from error
        # The parts are decoded already.
        headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
        answer = httpx.Response(response.status_code, headers=headers, content=b"".join(parts), request=request)
        if not answer.is_success:
            raise error_of(answer)
        return answer

    def _decoded(self, result: type[T], response: httpx.Response) -> T:
        try:
            return decode(result, parse(response.content))
        except ValueError as error:
            raise _unexpected(response, str(error)) from error


def once(key: str | None) -> str:
    """The key of an idempotent call: the caller's, or a new one."""
    return str(uuid.uuid4()) if key is None else key


def parameters(query: Mapping[str, object]) -> httpx.QueryParams:
    """Query parameters: sequences are repeated, None is left out. An empty sequence would request everything: ValueError."""
    values = [(name, encode(value)) for name, value in query.items() if value is not None]
    for name, value in values:
        if value == []:
            raise ValueError(f"{name} is an empty list: leave it out to request everything")
    return httpx.QueryParams([(name, one) for name, value in values for one in (value if isinstance(value, list) else [value])])


def _segment(value: object) -> str:
    text = str(encode(value))
    # An empty id would request the list, and dots another path.
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is not an id")
    return quote(text, safe="")


def _header(name: str, value: str) -> str:
    if re.fullmatch(r"[!-~]+", value) is None:
        raise ValueError(f"{name} {value!r} is empty or has white space or characters outside ASCII")
    return value


def unreachable(origin: str, error: httpx.RequestError) -> NoAnswerError:
    """The error of a request without a response."""
    if isinstance(error, httpx.TimeoutException):
        return NoAnswerError("timeout", f"{origin} did not respond in time.")
    return NoAnswerError("network", f"{origin} cannot be reached: {error}")


def _unexpected(response: httpx.Response, why: str) -> NoAnswerError:
    message = f"{response.request.url} returned a response that is not the API's: {why}"
    return NoAnswerError("unexpected_answer", message, status=response.status_code)


def error_of(response: httpx.Response) -> CustodyError | NoAnswerError:
    """The error of a response, whose content was read."""
    if response.is_redirect:
        to = response.headers.get("location", "")
        why = f"a redirect to {to}, which is not followed, because the API key would be sent there"
        return _unexpected(response, f"{why}: base_url must be the address of the service itself")
    try:
        problem = parse(response.content)
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str) or not isinstance(problem.get("requestId"), str):
        return _unexpected(response, f"status {response.status_code}")
    try:
        errors = decode(list[FieldIssue], problem.get("errors", []))
    except DecodeError:
        errors = []
    oldest, first = problem.get("oldestCursor"), problem.get("firstDate")
    return CustodyError(
        code=problem["code"],
        status=response.status_code,
        title=str(problem.get("title", "")),
        detail=str(problem.get("detail", "")),
        request_id=problem["requestId"],
        errors=errors,
        oldest_cursor=oldest if isinstance(oldest, str) else None,
        first_date=first if isinstance(first, str) else None,
        retry_after=_retry_after(response.headers.get("retry-after")),
    )


def _retry_after(text: str | None) -> float | None:
    """Seconds from a number of them or from an HTTP date; None for anything else."""
    if text is None:
        return None
    if re.fullmatch(r"\d{1,9}", text, re.ASCII):
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # A date with the zone -0000 has none.
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds())


def is_busy_proxy(error: NoAnswerError) -> bool:
    """Whether a proxy, which knows nothing of this API, asks for another attempt."""
    return error.status is not None and (error.status == 429 or error.status >= 502)


def _is_temporary(error: CustodyError | NoAnswerError) -> bool:
    if isinstance(error, CustodyError):
        return error.status in (429, 503) or error.code == "idempotency_in_progress"
    return error.reason in ("network", "timeout") or is_busy_proxy(error)


def _wait_before(attempt: int, error: CustodyError | NoAnswerError) -> float:
    asked = error.retry_after if isinstance(error, CustodyError) else None
    return float(random.uniform(0, 0.25 * 2**attempt) if asked is None else asked)
