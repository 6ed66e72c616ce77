"""A client of openapi-generator for Python, made into the package `custody`."""

import json
import os

import custody
from custody.exceptions import NotFoundException

key = os.environ["API_KEY"]
api = custody.ApiClient(custody.Configuration(host=os.environ["BASE_URL"], access_token=key))
later = custody.ApiClient(custody.Configuration(host=os.environ["LATER_URL"], access_token=key))

reads = custody.VaultsApi(api)
vaults = reads.list_vaults().data
transactions, cursor = [], ""
while cursor is not None:
    page = reads.list_transactions(
        vaults[0].id, limit=100, cursor=cursor or None, status=custody.TransactionStatus.CONFIRMED
    )
    transactions += page.data
    cursor = page.pagination.next_cursor
webhook = custody.WebhooksApi(api).create_webhook(
    custody.CreateWebhook(
        url=os.environ["WEBHOOK_URL"],
        entityIds=["entity_a"],
        eventKinds=[custody.EventKind.VAULT_DOT_UPDATED],
        notificationEmail="ops@example.com",
    )
)
deliveries = custody.DeliveriesApi(api).list_webhook_deliveries(os.environ["WEBHOOK_ID"]).data


def problem(client):
    try:
        custody.VaultsApi(client).get_vault("vault_absent")
    except NotFoundException as error:
        return error.data
    raise AssertionError("an absent vault was found")


absent = problem(api)
unknown = custody.VaultsApi(later).list_transactions(vaults[0].id, limit=1).data[0]

print(
    json.dumps(
        {
            "vaults": [vault.label for vault in vaults],
            "transactions": len({transaction.hash for transaction in transactions}),
            "webhook": [webhook.status, webhook.secret[:6], webhook.disabled_reason],
            "deliveries": [[one.status, one.attempts[0].http_status, one.next_attempt_at] for one in deliveries],
            "error": [absent.status, absent.code],
            "later": [unknown.status, unknown.amount, problem(later).code],
        }
    )
)
