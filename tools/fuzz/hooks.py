"""
What an OpenAPI document cannot say, for requests that fit it otherwise: which entities and vaults there are, which
cursors a list gave, which URLs have a host. A value that does not fit the document is left as it is.
"""

import os
import uuid

import schemathesis
from schemathesis import GenerationMode


def strings(value, most):
    return (
        isinstance(value, list)
        and 1 <= len(value) <= most
        and all(isinstance(one, str) for one in value)
        and len(set(value)) == len(value)
    )


@schemathesis.hook
def before_call(context, case, kwargs):
    query, body, headers = case.query, case.body, case.headers
    # A made-up cursor is refused, as it should be; a request that should be accepted has none.
    positive = case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE
    if positive and query and "cursor" in query:
        del query["cursor"]
    if isinstance(body, dict):
        if strings(body.get("entityIds"), 100):
            body["entityIds"] = [os.environ["FUZZ_ENTITY"]]
        if strings(body.get("vaultIds"), 1000):
            body["vaultIds"] = [os.environ["FUZZ_VAULT"]]
        url = body.get("url")
        if isinstance(url, str) and url.lower().startswith("https://") and len(url) <= 2048:
            body["url"] = "https://hooks.example.com/" + uuid.uuid4().hex
    if headers is not None:
        for name in list(headers):
            value = headers[name]
            if name.lower() == "idempotency-key" and isinstance(value, str) and value.isascii() and value.isprintable():
                if 1 <= len(value) <= 255 and " " not in value:
                    headers[name] = value[:200] + uuid.uuid4().hex
