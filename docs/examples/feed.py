"""Sends a custody platform's outbox to the service until it is stopped. `feed.py reconcile` compares what both have instead."""

import os
import sys
import time
from http.client import HTTPException
from urllib.request import HTTPErrorProcessor, Request, build_opener
from uuid import UUID

import psycopg  # pip install "psycopg[binary]"


class AnyStatus(HTTPErrorProcessor):
    """Returns every response as it is: no redirect is followed, which would take the token elsewhere."""

    def http_response(self, request, response):
        return response

    https_response = http_response


http = build_opener(AnyStatus)


def send(batch: UUID, history: bool, records: str) -> str:
    """Posts a batch until it is answered. It has the same records and key each time, so it is applied once."""
    url = f"{os.environ['PLATFORM']}/platform/v1/records"
    headers = {
        "Authorization": f"Bearer {os.environ['PLATFORM_TOKEN']}",
        "Content-Type": "application/x-ndjson",
        "Idempotency-Key": str(batch),
    }
    if history:
        headers["X-Record-Events"] = "none"
    # Any other answer with 200 is the page of a gateway.
    accepted = '{"received":%d,' % len(records.split("\n"))
    while True:
        try:
            with http.open(Request(url, records.encode(), headers), timeout=60) as response:
                status, answer = response.status, response.read().decode(errors="replace")
                after = response.headers.get("Retry-After", "")
        except (OSError, HTTPException) as error:
            # No answer: the batch may or may not have been applied.
            status, answer, after = 0, repr(error), ""
        if status == 200 and answer.startswith(accepted):
            return answer
        if 300 <= status < 500 and status not in (409, 429):
            raise SystemExit(f"batch {batch} was refused: {status} {answer}")
        print(f"batch {batch} is sent again: {status} {answer[:200]}", file=sys.stderr)
        time.sleep(min(int(after), 60) if after.isdecimal() else 1)


def follow(db: psycopg.Connection) -> None:
    while True:
        found = db.execute("SELECT batch, history, records FROM custody_next_batch()").fetchone()
        if found is None:
            time.sleep(1)
            continue
        print(found[0], send(*found), flush=True)
        db.execute("UPDATE custody_outbox SET sent_at = now() WHERE batch = %s", [found[0]])


def reconcile(db: psycopg.Connection) -> bool:
    equal = True
    for (vault,) in db.execute("SELECT DISTINCT record->>'id' FROM custody_outbox WHERE record->>'type' = 'vault'").fetchall():
        url = f"{os.environ['CUSTODY_URL']}/v1/vaults/{vault}/transactions/export?format=ndjson"
        with http.open(Request(url, headers={"Authorization": f"Bearer {os.environ['CUSTODY_API_KEY']}"}), timeout=60) as export:
            if export.status != 200:
                raise SystemExit(f"{url} answered {export.status}")
            compared = db.execute("SELECT * FROM custody_reconcile(%s, %s)", [vault, export.read().decode()]).fetchone()
        print(vault, *compared)
        equal = equal and compared[2] == compared[3]
    return equal


with psycopg.connect(os.environ["DATABASE"], autocommit=True) as connection:
    if sys.argv[1:] == ["reconcile"]:
        sys.exit(0 if reconcile(connection) else 1)
    follow(connection)
