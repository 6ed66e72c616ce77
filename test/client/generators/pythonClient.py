"""A client of openapi-python-client, made into the package `custody`."""

import json
import os

from custody import AuthenticatedClient
from custody.api.deliveries import list_webhook_deliveries
from custody.api.vaults import get_vault, list_transactions, list_vaults
from custody.api.webhooks import create_webhook
from custody.models import CreateWebhook, EventKind, Problem, TransactionStatus
from custody.types import UNSET

client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"])
later = AuthenticatedClient(base_url=os.environ["LATER_URL"], token=os.environ["API_KEY"])

vaults = list_vaults.sync(client=client).data
transactions, cursor = [], UNSET
while cursor is not None:
    page = list_transactions.sync(vaults[0].id, client=client, limit=100, cursor=cursor, status=TransactionStatus.CONFIRMED)
    transactions += page.data
    cursor = page.pagination.next_cursor
webhook = create_webhook.sync(
    client=client,
    body=CreateWebhook(
        url=os.environ["WEBHOOK_URL"],
        entity_ids=["entity_a"],
        event_kinds=[EventKind.VAULT_UPDATED],
        notification_email="ops@example.com",
    ),
)
deliveries = list_webhook_deliveries.sync(os.environ["WEBHOOK_ID"], client=client).data
absent = get_vault.sync("vault_absent", client=client)
assert isinstance(absent, Problem)
unknown = list_transactions.sync(vaults[0].id, client=later, limit=1).data[0]
gone = get_vault.sync("vault_absent", client=later)

print(
    json.dumps(
        {
            "vaults": [vault.label for vault in vaults],
            "transactions": len({transaction.hash_ for transaction in transactions}),
            "webhook": [webhook.status, webhook.secret[:6], webhook.disabled_reason],
            "deliveries": [[one.status, one.attempts[0].http_status, one.next_attempt_at] for one in deliveries],
            "error": [absent.status, absent.code],
            "later": [unknown.status, unknown.amount, gone.code],
        }
    )
)
