"""Statements of a vault as a service that errs or lies would answer: the published vectors."""

from __future__ import annotations

import datetime as dt
import json
import sys
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from custody_client import Client, NoAnswerError, NotVerifiable, VerificationError, verify_statements
from custody_client._verify_statements import statement_hash

from .scripted import KEY, answer, page, problem

VECTORS = json.loads((Path(__file__).parents[3] / "src/client/statement-vectors.json").read_text())
VAULT: str = VECTORS["vaultId"]


def statement(item: Any) -> Any:
    return VECTORS["statements"][item] if isinstance(item, int) else item


def service(answers: Mapping[str, Any], later: Mapping[str, Any] | None = None) -> Client:
    """A client of a service that answers with these statements, and with others from the second list on."""
    current = answers
    lists = 0

    def respond(request: httpx.Request) -> httpx.Response:
        nonlocal current, lists
        if request.url.path == "/v1/jwks.json":
            return answer(json={"keys": VECTORS["keys"]})
        if request.url.path.endswith("/statements"):
            lists += 1
            current = answers if later is None or lists == 1 else later
            return page([statement(item) for item in current["list"]], None)
        asked = [request.url.path.split("/")[-1], int(request.url.params["revision"])]
        for item in current["revisions"]:
            if isinstance(item, dict) and "for" in item:
                if item["for"] == asked:
                    return answer(json=statement(item["answer"]))
            elif [statement(item)["date"], statement(item)["revision"]] == asked:
                return answer(json=statement(item))
        return problem(404, "not_found")

    return Client("https://custody.example.com", KEY, transport=httpx.MockTransport(respond))


class VerifyStatements(unittest.TestCase):
    def setUp(self) -> None:
        self.slept = self.enterContext(mock.patch("custody_client._verify_statements.sleep"))

    def enterContext(self, manager: Any) -> Any:  # Python 3.10 has none.
        self.addCleanup(manager.__exit__, None, None, None)
        return manager.__enter__()

    def test_the_statements_of_the_vectors_are_complete(self) -> None:
        keys = {"keys": VECTORS["keys"]}
        options: list[dict[str, Any]] = [{}, {"hash": VECTORS["hash"]}, {"until": VECTORS["until"], "keys": keys}]
        for one in (*options, {"until": dt.date(2026, 1, 2)}):
            found = verify_statements(service(VECTORS), VAULT, **one)
            self.assertEqual((found.statements, found.hash), (len(VECTORS["statements"]), VECTORS["statements"][-1]["hash"]))
            self.assertEqual([day.hash for day in found.days], [statement(item)["hash"] for item in reversed(VECTORS["list"])])
        none = verify_statements(service({"list": [], "revisions": []}), VAULT)
        self.assertEqual((none.statements, none.hash, none.days), (0, None, []))

    def test_each_tampering_of_the_vectors_is_refused_and_named(self) -> None:
        self.assertGreater(len(VECTORS["invalid"]), 50)
        for one in VECTORS["invalid"]:
            options = {name: one[name] for name in ("until", "hash") if name in one}
            if "keys" in one:
                options["keys"] = {"keys": one["keys"]}
            with self.subTest(one["name"]), self.assertRaises(VerificationError) as caught:
                verify_statements(service(one), VAULT, **options)
            self.assertIn(one["names"], caught.exception.difference)

    def test_text_that_is_not_unicode_has_a_hash_of_its_own(self) -> None:
        hashes = [statement_hash({"label": text, text: ""}) for text in ("\ud800", "\udc00", "?")]
        self.assertEqual(len(set(hashes)), 3)

    def test_an_argument_that_is_not_valid_cannot_be_checked(self) -> None:
        invalid: list[dict[str, Any]] = [{"until": "2026-02-30"}, {"until": "yesterday"}, {"hash": "abc"}]
        for options in (*invalid, {"keys": {"keys": []}}, {"keys": {}}):
            with self.subTest(options), self.assertRaises(NotVerifiable):
                verify_statements(service(VECTORS), VAULT, **options)
        with self.assertRaises(NoAnswerError):
            verify_statements(service({"list": [1.5], "revisions": []}), VAULT)

    def test_statements_that_are_sealed_while_they_are_read_do_not_make_them_incomplete(self) -> None:
        early = {"list": [5, 4, 1, 0], "revisions": VECTORS["revisions"]}
        self.assertEqual(verify_statements(service(early, VECTORS), VAULT).statements, len(VECTORS["statements"]))
        self.assertEqual([call.args for call in self.slept.call_args_list], [(1.0,)])

    def test_without_the_library_the_error_names_the_extra(self) -> None:
        missing: dict[str, Any] = {"cryptography.exceptions": None}
        with mock.patch.dict(sys.modules, missing), self.assertRaisesRegex(ImportError, r"pip install 'custody-client\[verify\]'"):
            verify_statements(service(VECTORS), VAULT)
