"""Sends a custody platform's outbox to the service until it is stopped. `feed.py reconcile` compares what both have instead."""

import json
import os
import sys
import time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import UUID

import psycopg  # pip install "psycopg[binary]"


def send(batch: UUID, history: bool, records: str) -> dict[str, object]:
    """Posts a batch until it is answered. It has the same records and key each time, so it is applied once."""
    headers = {
        "Authorization": f"Bearer {os.environ['PLATFORM_TOKEN']}",
        "Content-Type": "application/x-ndjson",
        "Idempotency-Key": str(batch),
    }
    if history:
        headers["X-Record-Events"] = "none"
    while True:
        try:
            url = f"{os.environ['PLATFORM']}/platform/v1/records"
            with urlopen(Request(url, records.encode(), headers), timeout=60) as response:
                return json.load(response)
        except HTTPError as error:
            if error.code < 500 and error.code not in (409, 429):
                raise SystemExit(f"batch {batch} was refused: {error.read().decode()}") from None
            after = error.headers.get("Retry-After", "")
            wait, reason = (int(after) if after.isdecimal() else 1), str(error.code)
        except (OSError, HTTPException) as error:
            wait, reason = 1, repr(error)
        print(f"batch {batch} is sent again: {reason}", file=sys.stderr)
        time.sleep(wait)


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
        with urlopen(Request(url, headers={"Authorization": f"Bearer {os.environ['CUSTODY_API_KEY']}"})) as export:
            compared = db.execute("SELECT * FROM custody_reconcile(%s, %s)", [vault, export.read().decode()]).fetchone()
        print(vault, *compared)
        equal = equal and compared[2] == compared[3]
    return equal


with psycopg.connect(os.environ["DATABASE"], autocommit=True) as connection:
    if sys.argv[1:] == ["reconcile"]:
        sys.exit(0 if reconcile(connection) else 1)
    follow(connection)
