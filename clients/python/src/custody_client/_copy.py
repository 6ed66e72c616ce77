"""A complete copy of a vault that the event feed keeps current.

The copy takes a cursor of the feed, then reads the lists, then applies the events after the cursor in the order of recording, which
corrects rows that a list showed too early or too late. A new ``as_of`` of an unchanged amount has no event: it becomes visible when
the balance is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ._pages import each_page
from .models import (
    Balance,
    BalanceUpdatedEvent,
    DepositAddress,
    DepositAddressCreatedEvent,
    EventFeedPage,
    Transaction,
    TransactionConfirmedEvent,
    TransactionDroppedEvent,
    TransactionFailedEvent,
    TransactionPendingEvent,
    TransactionReorgedEvent,
    TransactionReplacedEvent,
    TransactionUpdatedEvent,
    Vault,
    VaultCreatedEvent,
    VaultUpdatedEvent,
    WebhookEvent,
)
from .operations import Operations

_TRANSACTION_EVENTS = (
    TransactionPendingEvent,
    TransactionConfirmedEvent,
    TransactionFailedEvent,
    TransactionReplacedEvent,
    TransactionDroppedEvent,
    TransactionReorgedEvent,
    TransactionUpdatedEvent,
)


@dataclass(kw_only=True)
class VaultCopy:
    """A vault as of a cursor of the event feed. :meth:`apply` and :func:`catch_up` update it."""

    vault: Vault
    resume_cursor: str
    """The cursor: pass it as ``after`` to the feed to continue."""
    balances: dict[str, Balance] = field(default_factory=dict)
    """By asset."""
    transactions: dict[str, Transaction] = field(default_factory=dict)
    """By id."""
    addresses: list[DepositAddress] = field(default_factory=list)

    def apply(self, event: WebhookEvent) -> None:
        """Applies an event of the feed. Events of other vaults, and events that change no row, have no effect."""
        if self.vault.id not in (event.vault_ids or ()):
            return
        received = event.payload
        if isinstance(received, (VaultCreatedEvent, VaultUpdatedEvent)):
            self.vault = received.data.vault
        elif isinstance(received, BalanceUpdatedEvent):
            self.balances[received.data.balance.asset] = received.data.balance
        elif isinstance(received, DepositAddressCreatedEvent):
            if received.data.deposit_address not in self.addresses:
                self.addresses.append(received.data.deposit_address)
        elif isinstance(received, _TRANSACTION_EVENTS):
            self.transactions[received.data.transaction.id] = received.data.transaction


def copy_vault(client: Operations, vault_id: str) -> VaultCopy:
    """A complete copy of a vault, even during writes: its rows as of the copy's cursor in the feed.

    Requires the scopes ``vault:read`` and ``webhook:read``. Continue with :func:`catch_up`, or with
    ``client.follow_events(after=copy.resume_cursor, vault_id=[vault_id])`` and :meth:`VaultCopy.apply`.
    """
    start = client.read_event_feed(from_="now", limit=1)
    copy = VaultCopy(vault=client.get_vault(vault_id), resume_cursor=start.resume_cursor)
    for balance in client.list_balances(vault_id):
        copy.balances[balance.asset] = balance
    copy.addresses.extend(client.list_addresses(vault_id, limit=500))
    for transaction in client.list_transactions(vault_id, limit=500):
        copy.transactions[transaction.id] = transaction
    catch_up(client, copy)
    return copy


def catch_up(client: Operations, copy: VaultCopy) -> None:
    """Applies everything recorded so far, and moves the copy's cursor there.

    Raises ``not_found`` while the key does not see the vault.
    """

    def read(cursor: str | None) -> EventFeedPage:
        return client.read_event_feed(after=cursor, vault_id=[copy.vault.id], limit=500)

    for page in each_page(read, lambda page: page.pagination.next_cursor, copy.resume_cursor):
        # A page skips events of a vault that the key does not see.
        client.get_vault(copy.vault.id)
        for event in page.data:
            copy.apply(event)
        copy.resume_cursor = page.resume_cursor
