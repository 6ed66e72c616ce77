"""Made from the contract by `bun run golden`; not to be edited."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from types import NoneType
from typing import Literal

from ._caller import Caller, once
from ._model import UNSET, Unset, given
from ._pages import Download, Pages
from .models import (
    Asset,
    AuditAction,
    AuditEntry,
    Balance,
    BalanceRecord,
    Credential,
    Delivery,
    DeliveryStatus,
    DepositAddress,
    Direction,
    Entity,
    EventCheckpoint,
    EventDeliveries,
    EventFeedPage,
    EventKind,
    ExportAmounts,
    ExportFormat,
    Network,
    PatchedWebhookHeader,
    PatchedWebhookOAuth,
    PingResult,
    PortfolioBalance,
    Recovery,
    RecoveryInclusion,
    RotatedSecret,
    SigningKeySet,
    Statement,
    StatementSummary,
    Transaction,
    TransactionDetail,
    TransactionStatus,
    Vault,
    VaultTransaction,
    Webhook,
    WebhookEvent,
    WebhookEventDetail,
    WebhookHeader,
    WebhookOAuth,
    WebhookPreview,
    WebhookSourceAddresses,
    WebhookStatus,
    WebhookWithHealth,
    WebhookWithSecret,
)


class Operations(Caller):
    """Every operation of the API.

    Every operation can fail with these codes: ``invalid_parameter``, ``unknown_parameter``, ``missing_credentials``,
    ``invalid_api_key``, ``expired_api_key``, ``revoked_api_key``, ``ip_not_allowed``, ``not_acceptable``, ``uri_too_long``,
    ``rate_limited``, ``too_many_failed_auth``, ``internal_error``, ``service_unavailable``.
    """

    def list_vaults(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        request_id: str | None = None,
    ) -> Pages[Vault]:
        """List vaults. Vaults that the API key can access, newest first.

        ``GET /v1/vaults``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``.
        """
        return self._pages(
            Vault,
            "/v1/vaults",
            query={
                "limit": limit,
                "cursor": cursor,
            },
            request_id=request_id,
        )

    def get_vault(
        self,
        vault_id: str,
        *,
        request_id: str | None = None,
    ) -> Vault:
        """Get a vault. One vault.

        ``GET /v1/vaults/{vaultId}``

        Error codes beside those of every operation: ``not_found``.
        """
        return self._call(
            Vault,
            "GET",
            "/v1/vaults/{}",
            (vault_id,),
            request_id=request_id,
        )

    def list_balances(
        self,
        vault_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        network: str | None = None,
        at: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Pages[Balance]:
        """List balances. Settled balances across the networks the vault operates on, by network, the native asset first, then by
        symbol. With ``at``, balances from the last records at or before that time; assets without one are absent.

        ``GET /v1/vaults/{vaultId}/balances``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            network: Only this network
            at: Balances at this time, which must not be in the future; default: present balances

        Error codes beside those of every operation: ``invalid_cursor``, ``not_found``.
        """
        return self._pages(
            Balance,
            "/v1/vaults/{}/balances",
            (vault_id,),
            query={
                "limit": limit,
                "cursor": cursor,
                "network": network,
                "at": at,
            },
            request_id=request_id,
        )

    def list_balance_history(
        self,
        vault_id: str,
        *,
        asset: str,
        limit: int | None = None,
        cursor: str | None = None,
        occurred_after: dt.datetime | None = None,
        occurred_before: dt.datetime | None = None,
        occurred_until: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Pages[BalanceRecord]:
        """List the history of a balance. Every record of one asset's balance, newest first. Of several records with the same
        time, the first in the list was recorded last and counts.

        ``GET /v1/vaults/{vaultId}/balance-history``

        Args:
            asset: The asset; an EVM contract in either letter case
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            occurred_after: Only records at or after this
            occurred_before: Only records at or before this
            occurred_until: Only records before this; not together with ``occurred_before``

        Error codes beside those of every operation: ``invalid_cursor``, ``not_found``.
        """
        return self._pages(
            BalanceRecord,
            "/v1/vaults/{}/balance-history",
            (vault_id,),
            query={
                "limit": limit,
                "cursor": cursor,
                "asset": asset,
                "occurredAfter": occurred_after,
                "occurredBefore": occurred_before,
                "occurredUntil": occurred_until,
            },
            request_id=request_id,
        )

    def list_transactions(
        self,
        vault_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: TransactionStatus | None = None,
        direction: Direction | None = None,
        asset: str | None = None,
        network: str | None = None,
        hash: str | None = None,
        occurred_after: dt.datetime | None = None,
        occurred_before: dt.datetime | None = None,
        occurred_until: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Pages[Transaction]:
        """List transactions. Transfers into and out of the vault, most recent first. Filters are combined with AND.

        ``GET /v1/vaults/{vaultId}/transactions``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            status: Only this status
            direction: Only this direction
            asset: Only this asset; an EVM contract in either letter case
            network: Only this network
            hash: Only this transaction hash
            occurred_after: Only with a timestamp at or after this
            occurred_before: Only with a timestamp at or before this
            occurred_until: Only with a timestamp before this; not together with ``occurred_before``

        Error codes beside those of every operation: ``invalid_cursor``, ``not_found``.
        """
        return self._pages(
            Transaction,
            "/v1/vaults/{}/transactions",
            (vault_id,),
            query={
                "limit": limit,
                "cursor": cursor,
                "status": status,
                "direction": direction,
                "asset": asset,
                "network": network,
                "hash": hash,
                "occurredAfter": occurred_after,
                "occurredBefore": occurred_before,
                "occurredUntil": occurred_until,
            },
            request_id=request_id,
        )

    def get_transaction(
        self,
        vault_id: str,
        transaction_id: str,
        *,
        request_id: str | None = None,
    ) -> TransactionDetail:
        """Get a transaction. One transaction of the vault, and every state that it has had.

        ``GET /v1/vaults/{vaultId}/transactions/{transactionId}``

        Error codes beside those of every operation: ``not_found``.
        """
        return self._call(
            TransactionDetail,
            "GET",
            "/v1/vaults/{}/transactions/{}",
            (vault_id, transaction_id),
            request_id=request_id,
        )

    def export_transactions(
        self,
        vault_id: str,
        *,
        format: ExportFormat,
        amounts: ExportAmounts | None = None,
        status: TransactionStatus | None = None,
        direction: Direction | None = None,
        asset: str | None = None,
        network: str | None = None,
        hash: str | None = None,
        occurred_after: dt.datetime | None = None,
        occurred_before: dt.datetime | None = None,
        occurred_until: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Download:
        """Export transactions. All matching transactions, most recent first, as a stream of one consistent snapshot. In CSV, an
        apostrophe precedes cells that a spreadsheet would read as a formula, and amounts unless ``amounts=plain``. The file is
        named after the vault and the period. A key can have two exports at a time, an organization three. An export that takes
        longer than half an hour is cut off. If the connection breaks before the end of the file, the file is incomplete.

        ``GET /v1/vaults/{vaultId}/transactions/export``

        Args:
            format: ``csv`` (RFC 4180), or ``ndjson``: one Transaction per line
            amounts: Amounts in CSV: after an apostrophe, so that spreadsheets keep every digit, or ``plain``, for programs.
                Amounts in NDJSON are plain.
            status: Only this status
            direction: Only this direction
            asset: Only this asset; an EVM contract in either letter case
            network: Only this network
            hash: Only this transaction hash
            occurred_after: Only with a timestamp at or after this
            occurred_before: Only with a timestamp at or before this
            occurred_until: Only with a timestamp before this; not together with ``occurred_before``

        Error codes beside those of every operation: ``not_found``, ``too_many_rows``, ``too_many_exports``.
        """
        return self._download(
            "/v1/vaults/{}/transactions/export",
            (vault_id,),
            query={
                "format": format,
                "amounts": amounts,
                "status": status,
                "direction": direction,
                "asset": asset,
                "network": network,
                "hash": hash,
                "occurredAfter": occurred_after,
                "occurredBefore": occurred_before,
                "occurredUntil": occurred_until,
            },
            request_id=request_id,
        )

    def list_addresses(
        self,
        vault_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        network: str | None = None,
        request_id: str | None = None,
    ) -> Pages[DepositAddress]:
        """List deposit addresses. Deposit addresses of the vault, newest first.

        ``GET /v1/vaults/{vaultId}/addresses``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            network: Only this network

        Error codes beside those of every operation: ``invalid_cursor``, ``not_found``.
        """
        return self._pages(
            DepositAddress,
            "/v1/vaults/{}/addresses",
            (vault_id,),
            query={
                "limit": limit,
                "cursor": cursor,
                "network": network,
            },
            request_id=request_id,
        )

    def list_all_transactions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        vault_id: Sequence[str] | None = None,
        entity_id: Sequence[str] | None = None,
        address: str | None = None,
        status: TransactionStatus | None = None,
        direction: Direction | None = None,
        asset: str | None = None,
        network: str | None = None,
        hash: str | None = None,
        occurred_after: dt.datetime | None = None,
        occurred_before: dt.datetime | None = None,
        occurred_until: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Pages[VaultTransaction]:
        """List transactions of all vaults. Transactions of all vaults that the API key can see, most recent first, each with its
        ``vault_id``. Filters are combined with AND; a vault or entity that the key cannot see matches nothing. A page looks at no
        more than 20,000 transactions, so it may be short or empty although ``next_cursor`` is not None.

        ``GET /v1/transactions``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            vault_id: Only this vault; may be given several times
            entity_id: Only vaults of this entity; may be given several times
            address: Only from or to this address; an EVM address in either letter case
            status: Only this status
            direction: Only this direction
            asset: Only this asset; an EVM contract in either letter case
            network: Only this network
            hash: Only this transaction hash
            occurred_after: Only with a timestamp at or after this
            occurred_before: Only with a timestamp at or before this
            occurred_until: Only with a timestamp before this; not together with ``occurred_before``

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``.
        """
        return self._pages(
            VaultTransaction,
            "/v1/transactions",
            query={
                "limit": limit,
                "cursor": cursor,
                "vaultId": vault_id,
                "entityId": entity_id,
                "address": address,
                "status": status,
                "direction": direction,
                "asset": asset,
                "network": network,
                "hash": hash,
                "occurredAfter": occurred_after,
                "occurredBefore": occurred_before,
                "occurredUntil": occurred_until,
            },
            request_id=request_id,
        )

    def export_all_transactions(
        self,
        *,
        format: ExportFormat,
        amounts: ExportAmounts | None = None,
        vault_id: Sequence[str] | None = None,
        entity_id: Sequence[str] | None = None,
        address: str | None = None,
        status: TransactionStatus | None = None,
        direction: Direction | None = None,
        asset: str | None = None,
        network: str | None = None,
        hash: str | None = None,
        occurred_after: dt.datetime | None = None,
        occurred_before: dt.datetime | None = None,
        occurred_until: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Download:
        """Export transactions of all vaults. All transactions that the list returns with these filters, as one file, with the
        limits of the export of one vault.

        ``GET /v1/transactions/export``

        Args:
            format: ``csv`` (RFC 4180), or ``ndjson``: one Transaction per line
            amounts: Amounts in CSV: after an apostrophe, so that spreadsheets keep every digit, or ``plain``, for programs.
                Amounts in NDJSON are plain.
            vault_id: Only this vault; may be given several times
            entity_id: Only vaults of this entity; may be given several times
            address: Only from or to this address; an EVM address in either letter case
            status: Only this status
            direction: Only this direction
            asset: Only this asset; an EVM contract in either letter case
            network: Only this network
            hash: Only this transaction hash
            occurred_after: Only with a timestamp at or after this
            occurred_before: Only with a timestamp at or before this
            occurred_until: Only with a timestamp before this; not together with ``occurred_before``

        Error codes beside those of every operation: ``insufficient_scope``, ``too_many_rows``, ``too_many_exports``.
        """
        return self._download(
            "/v1/transactions/export",
            query={
                "format": format,
                "amounts": amounts,
                "vaultId": vault_id,
                "entityId": entity_id,
                "address": address,
                "status": status,
                "direction": direction,
                "asset": asset,
                "network": network,
                "hash": hash,
                "occurredAfter": occurred_after,
                "occurredBefore": occurred_before,
                "occurredUntil": occurred_until,
            },
            request_id=request_id,
        )

    def list_all_balances(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        entity_id: Sequence[str] | None = None,
        asset: str | None = None,
        network: str | None = None,
        at: dt.datetime | None = None,
        sum_by: Literal["asset"] | None = None,
        request_id: str | None = None,
    ) -> Pages[PortfolioBalance]:
        """List balances of all vaults. Balances of all vaults that the API key can see, by network, the native asset first, then
        by symbol and vault, each with its ``vault_id``. With ``at``, balances from the last records at or before that time. With
        ``sumBy=asset``, one line per asset: the sum over these vaults, with ``vault_count`` instead of ``vault_id``. A page looks
        at a bounded number of balances, so it may be short or empty although ``next_cursor`` is not None.

        ``GET /v1/balances``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            entity_id: Only vaults of this entity; may be given several times
            asset: Only this asset; an EVM contract in either letter case
            network: Only this network
            at: Balances at this time, which must not be in the future; default: present balances
            sum_by: ``asset``: one line per asset with the exact sum of its balances

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``.
        """
        return self._pages(
            PortfolioBalance,
            "/v1/balances",
            query={
                "limit": limit,
                "cursor": cursor,
                "entityId": entity_id,
                "asset": asset,
                "network": network,
                "at": at,
                "sumBy": sum_by,
            },
            request_id=request_id,
        )

    def list_statements(
        self,
        vault_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_: dt.date | None = None,
        to: dt.date | None = None,
        moved_only: bool | None = None,
        request_id: str | None = None,
    ) -> Pages[Statement]:
        """List statements. The newest revision of each sealed day, newest day first. With ``Accept: text/csv``, all lines of a
        period of at most 366 days, oldest day first: a file with the limits of an export, for which ``from`` and ``to`` are
        required.

        ``GET /v1/vaults/{vaultId}/statements``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            from_: First day, as YYYY-MM-DD
            to: Last day, as YYYY-MM-DD
            moved_only: CSV and summaries leave out lines without movement

        Error codes beside those of every operation: ``invalid_cursor``, ``not_found``, ``too_many_exports``.
        """
        return self._pages(
            Statement,
            "/v1/vaults/{}/statements",
            (vault_id,),
            query={
                "limit": limit,
                "cursor": cursor,
                "from": from_,
                "to": to,
                "movedOnly": moved_only,
            },
            request_id=request_id,
        )

    def get_statement(
        self,
        vault_id: str,
        date: dt.date,
        *,
        revision: int | None = None,
        request_id: str | None = None,
    ) -> Statement:
        """Get a statement. The statement of a sealed UTC day: balances at its bounds, movements in between, the previous
        statement's hash and a signature. With ``Accept: text/csv``, its lines as CSV.

        ``GET /v1/vaults/{vaultId}/statements/{date}``

        Args:
            revision: An earlier revision; default: the newest

        Error codes beside those of every operation: ``not_found``.
        """
        return self._call(
            Statement,
            "GET",
            "/v1/vaults/{}/statements/{}",
            (vault_id, date),
            query={
                "revision": revision,
            },
            request_id=request_id,
        )

    def get_statement_summary(
        self,
        vault_id: str,
        *,
        from_: dt.date,
        to: dt.date,
        moved_only: bool | None = None,
        request_id: str | None = None,
    ) -> StatementSummary:
        """Sum up statements. One line per asset over a period: the first day's opening, the sums of all days, and the last day's
        closing, with the hashes of the first and the last day's statements. A period that begins before the vault's first
        statement begins with it. A day that is not sealed yet is 409 ``not_sealed``; so is a period that ends before the first
        statement, with ``first_date``, its day. With ``Accept: text/csv``, the lines as CSV.

        ``GET /v1/vaults/{vaultId}/statement-summary``

        Args:
            from_: First day, as YYYY-MM-DD
            to: Last day, as YYYY-MM-DD
            moved_only: CSV and summaries leave out lines without movement

        Error codes beside those of every operation: ``not_found``, ``not_sealed``.
        """
        return self._call(
            StatementSummary,
            "GET",
            "/v1/vaults/{}/statement-summary",
            (vault_id,),
            query={
                "from": from_,
                "to": to,
                "movedOnly": moved_only,
            },
            request_id=request_id,
        )

    def list_assets(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        network: str | None = None,
        symbol: str | None = None,
        request_id: str | None = None,
    ) -> Pages[Asset]:
        """List assets. Supported assets on the networks available to the organization, and assets that a visible vault holds or
        moved, by id.

        ``GET /v1/assets``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            network: Only on this network
            symbol: Only with exactly this symbol

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``.
        """
        return self._pages(
            Asset,
            "/v1/assets",
            query={
                "limit": limit,
                "cursor": cursor,
                "network": network,
                "symbol": symbol,
            },
            request_id=request_id,
        )

    def list_networks(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        request_id: str | None = None,
    ) -> Pages[Network]:
        """List networks. Networks available to the organization, by name.

        ``GET /v1/networks``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``.
        """
        return self._pages(
            Network,
            "/v1/networks",
            query={
                "limit": limit,
                "cursor": cursor,
            },
            request_id=request_id,
        )

    def list_entities(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        request_id: str | None = None,
    ) -> Pages[Entity]:
        """List entities. Entities that the API key reaches, by id: all of the organization for an owner, otherwise those of the
        vaults on which the user has the Developer role. A key with a vault allowlist reaches the entities of its visible vaults.

        ``GET /v1/entities``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``.
        """
        return self._pages(
            Entity,
            "/v1/entities",
            query={
                "limit": limit,
                "cursor": cursor,
            },
            request_id=request_id,
        )

    def create_webhook(
        self,
        *,
        url: str,
        event_kinds: Sequence[EventKind],
        notification_email: str,
        entity_ids: Sequence[str] | None = None,
        vault_ids: Sequence[str] | None | Unset = UNSET,
        description: str | None = None,
        headers: Sequence[WebhookHeader] | None = None,
        oauth: WebhookOAuth | None = None,
        status: WebhookStatus | None = None,
        idempotency_key: str | None = None,
        request_id: str | None = None,
    ) -> WebhookWithSecret:
        """Create a webhook. Returns the signing secret once. Accepts ``Idempotency-Key``. An entity can be covered by at most 20
        active or paused webhooks, and by 100 with the disabled ones.

        ``POST /v1/webhooks``

        Args:
            url: https, a public host name, port 443 or 8443
            event_kinds: Kinds of event that it receives
            notification_email: Where operational notices go
            entity_ids: Operating units whose events it receives, from ``GET /v1/entities``; may be left out by a key that reaches
                exactly one
            vault_ids: Vaults whose events it receives; None for all vaults of its entities, including those created later.
                Requires the Developer role on each vault that it covers now
            description: Free text for people
            headers: Headers that every request carries, for a gateway in front of the endpoint; 4096 characters in all
            oauth: OAuth client credentials that get the access token of every request
            status: ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED:
                no deliveries are created

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``webhook_limit_reached``, ``idempotency_in_progress``, ``payload_too_large``,
        ``unsupported_media_type``, ``url_not_deliverable``, ``idempotency_key_reused``.
        """
        return self._call(
            WebhookWithSecret,
            "POST",
            "/v1/webhooks",
            body={
                "url": url,
                "entityIds": given(entity_ids),
                "eventKinds": event_kinds,
                "notificationEmail": notification_email,
                "vaultIds": vault_ids,
                "description": given(description),
                "headers": given(headers),
                "oauth": given(oauth),
                "status": given(status),
            },
            idempotency_key=once(idempotency_key),
            request_id=request_id,
        )

    def list_webhooks(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        entity_id: str | None = None,
        status: WebhookStatus | None = None,
        request_id: str | None = None,
    ) -> Pages[Webhook]:
        """List webhooks. Webhooks across the accessible entities, newest first.

        ``GET /v1/webhooks``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            entity_id: Only webhooks that cover this entity
            status: Only this status

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``.
        """
        return self._pages(
            Webhook,
            "/v1/webhooks",
            query={
                "limit": limit,
                "cursor": cursor,
                "entityId": entity_id,
                "status": status,
            },
            request_id=request_id,
        )

    def preview_webhook(
        self,
        *,
        event_kinds: Sequence[EventKind],
        entity_ids: Sequence[str] | None = None,
        vault_ids: Sequence[str] | None | Unset = UNSET,
        request_id: str | None = None,
    ) -> WebhookPreview:
        """Preview a webhook. Shows what a webhook with these entities, kinds and vaults would have received in the last 31 days.
        Changes nothing. Requires the same access as creating the webhook.

        ``POST /v1/webhooks/preview``

        Args:
            event_kinds: Kinds of event that it receives
            entity_ids: Operating units whose events it would receive, from ``GET /v1/entities``; may be left out by a key that
                reaches exactly one
            vault_ids: Vaults whose events it receives; None for all vaults of its entities, including those created later.
                Requires the Developer role on each vault that it covers now

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``payload_too_large``, ``unsupported_media_type``.
        """
        return self._call(
            WebhookPreview,
            "POST",
            "/v1/webhooks/preview",
            body={
                "entityIds": given(entity_ids),
                "eventKinds": event_kinds,
                "vaultIds": vault_ids,
            },
            request_id=request_id,
        )

    def get_webhook(
        self,
        webhook_id: str,
        *,
        request_id: str | None = None,
    ) -> WebhookWithHealth:
        """Get a webhook. One webhook with its health counters.

        ``GET /v1/webhooks/{webhookId}``

        Error codes beside those of every operation: ``not_found``.
        """
        return self._call(
            WebhookWithHealth,
            "GET",
            "/v1/webhooks/{}",
            (webhook_id,),
            request_id=request_id,
        )

    def update_webhook(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        event_kinds: Sequence[EventKind] | None = None,
        vault_ids: Sequence[str] | None | Unset = UNSET,
        status: WebhookStatus | None = None,
        description: str | None | Unset = UNSET,
        headers: Sequence[PatchedWebhookHeader] | None | Unset = UNSET,
        oauth: PatchedWebhookOAuth | None | Unset = UNSET,
        request_id: str | None = None,
    ) -> Webhook:
        """Update a webhook. A merge patch (RFC 7396) of the URL, event kinds, vault filter, status or description; other fields
        are rejected. Changing the URL, kinds or filter, enabling and resuming require the Developer role on every vault that the
        webhook then covers. Disabling cancels waiting deliveries; enabling resets the failure streak. Pausing holds deliveries;
        they are sent oldest first when the webhook is ACTIVE again.

        ``PATCH /v1/webhooks/{webhookId}``

        Args:
            url: https, a public host name, port 443 or 8443
            event_kinds: Kinds of event that it receives
            vault_ids: Vaults whose events it receives; None for all vaults of its entities, including those created later.
                Requires the Developer role on each vault that it covers now
            status: ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED:
                no deliveries are created
            description: Free text for people
            headers: All headers from now on. A value of None keeps the stored one, but not if the origin of ``url`` changes

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``webhook_limit_reached``, ``payload_too_large``, ``unsupported_media_type``,
        ``url_not_deliverable``.
        """
        return self._call(
            Webhook,
            "PATCH",
            "/v1/webhooks/{}",
            (webhook_id,),
            body={
                "url": given(url),
                "eventKinds": given(event_kinds),
                "vaultIds": vault_ids,
                "status": given(status),
                "description": description,
                "headers": headers,
                "oauth": oauth,
            },
            request_id=request_id,
        )

    def delete_webhook(
        self,
        webhook_id: str,
        *,
        request_id: str | None = None,
    ) -> None:
        """Delete a webhook. Its deliveries stay readable through their events; waiting deliveries are canceled.

        ``DELETE /v1/webhooks/{webhookId}``

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``payload_too_large``, ``unsupported_media_type``.
        """
        self._call(
            NoneType,
            "DELETE",
            "/v1/webhooks/{}",
            (webhook_id,),
            request_id=request_id,
        )

    def rotate_secret(
        self,
        webhook_id: str,
        *,
        expire_previous: Literal["now"] | None = None,
        idempotency_key: str | None = None,
        request_id: str | None = None,
    ) -> RotatedSecret:
        """Rotate the signing secret. Returns the new secret once. The previous secret stays valid for 24 hours; at most three
        secrets are active. With ``"expirePrevious": "now"``, all earlier secrets expire at once, for example after a leak: the
        next attempt is signed with the new secret only. Accepts ``Idempotency-Key``.

        ``POST /v1/webhooks/{webhookId}/rotate-secret``

        Args:
            expire_previous: now: all earlier secrets expire at once; without it, the previous one stays valid for 24 hours

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``rotation_limit_reached``, ``idempotency_in_progress``, ``payload_too_large``,
        ``unsupported_media_type``, ``idempotency_key_reused``.
        """
        return self._call(
            RotatedSecret,
            "POST",
            "/v1/webhooks/{}/rotate-secret",
            (webhook_id,),
            body={
                "expirePrevious": given(expire_previous),
            },
            idempotency_key=once(idempotency_key),
            request_id=request_id,
        )

    def get_webhook_source_addresses(
        self,
        *,
        request_id: str | None = None,
    ) -> WebhookSourceAddresses:
        """Get the addresses that deliveries come from. The address ranges that a firewall in front of an endpoint must admit.
        Requires no API key.

        ``GET /v1/webhook-source-addresses``
        """
        return self._call(
            WebhookSourceAddresses,
            "GET",
            "/v1/webhook-source-addresses",
            request_id=request_id,
        )

    def list_events(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        kind: EventKind | None = None,
        vault_id: str | None = None,
        entity_id: str | None = None,
        occurred_after: dt.datetime | None = None,
        occurred_before: dt.datetime | None = None,
        occurred_until: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Pages[WebhookEvent]:
        """List webhook events. The event log of the last 31 days, most recent first, whether or not a webhook matched.

        ``GET /v1/webhook-events``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            kind: Only this kind
            vault_id: Only vault-scoped events that touch this vault
            entity_id: Only events of this entity
            occurred_after: Only at or after this
            occurred_before: Only at or before this
            occurred_until: Only before this; not together with ``occurred_before``

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``.
        """
        return self._pages(
            WebhookEvent,
            "/v1/webhook-events",
            query={
                "limit": limit,
                "cursor": cursor,
                "kind": kind,
                "vaultId": vault_id,
                "entityId": entity_id,
                "occurredAfter": occurred_after,
                "occurredBefore": occurred_before,
                "occurredUntil": occurred_until,
            },
            request_id=request_id,
        )

    def get_event(
        self,
        event_id: str,
        *,
        request_id: str | None = None,
    ) -> WebhookEventDetail:
        """Get a webhook event. One event, with the number of webhooks that matched and its deliveries by status.

        ``GET /v1/webhook-events/{eventId}``

        Error codes beside those of every operation: ``not_found``.
        """
        return self._call(
            WebhookEventDetail,
            "GET",
            "/v1/webhook-events/{}",
            (event_id,),
            request_id=request_id,
        )

    def read_event_feed(
        self,
        *,
        after: str | None = None,
        from_: Literal["now"] | None = None,
        limit: int | None = None,
        kind: Sequence[EventKind] | None = None,
        vault_id: Sequence[str] | None = None,
        entity_id: Sequence[str] | None = None,
        wait: int | None = None,
        request_id: str | None = None,
    ) -> EventFeedPage:
        """Read the event feed. The event log in the order of recording. Every event that this key can see and that is recorded
        after a cursor was issued appears exactly once after it, and nothing is ever recorded before it. A page skips what the key
        cannot see at that moment. A key can have 20 requests that wait for events.

        ``GET /v1/event-feed``

        Args:
            after: A ``resume_cursor``: only events recorded after it; default: the whole log
            from_: ``now``: only events recorded from now on; not together with ``after``
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            kind: Only events of this kind; may be given several times
            vault_id: Only vault-scoped events of this vault; may be given several times
            entity_id: Only events of this entity; may be given several times
            wait: Seconds to wait for an event before the response is sent; default 0

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``, ``cursor_expired``,
        ``cursor_gone``, ``too_many_streams``.
        """
        return self._call(
            EventFeedPage,
            "GET",
            "/v1/event-feed",
            query={
                "after": after,
                "from": from_,
                "limit": limit,
                "kind": kind,
                "vaultId": vault_id,
                "entityId": entity_id,
                "wait": wait,
            },
            request_id=request_id,
        )

    def list_webhook_deliveries(
        self,
        webhook_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Sequence[DeliveryStatus] | None = None,
        kind: EventKind | None = None,
        sequence: int | None = None,
        event_id: str | None = None,
        created_after: dt.datetime | None = None,
        created_before: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Pages[Delivery]:
        """List a webhook's deliveries. Delivery history with every attempt, newest first.

        ``GET /v1/webhooks/{webhookId}/deliveries``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            status: Only these statuses; may be given several times
            kind: Only deliveries of events of this kind
            sequence: Only the delivery with this number
            event_id: Only deliveries of this event
            created_after: Only created at or after this
            created_before: Only created at or before this

        Error codes beside those of every operation: ``invalid_cursor``, ``not_found``.
        """
        return self._pages(
            Delivery,
            "/v1/webhooks/{}/deliveries",
            (webhook_id,),
            query={
                "limit": limit,
                "cursor": cursor,
                "status": status,
                "kind": kind,
                "sequence": sequence,
                "eventId": event_id,
                "createdAfter": created_after,
                "createdBefore": created_before,
            },
            request_id=request_id,
        )

    def list_event_deliveries(
        self,
        event_id: str,
        *,
        request_id: str | None = None,
    ) -> EventDeliveries:
        """List an event's deliveries. All deliveries, without pagination. An empty list for a dispatched event means that no
        webhook matched it (compare ``matched_count``).

        ``GET /v1/webhook-events/{eventId}/deliveries``

        Error codes beside those of every operation: ``not_found``.
        """
        return self._call(
            EventDeliveries,
            "GET",
            "/v1/webhook-events/{}/deliveries",
            (event_id,),
            request_id=request_id,
        )

    def redeliver(
        self,
        delivery_id: str,
        *,
        idempotency_key: str | None = None,
        request_id: str | None = None,
    ) -> Delivery:
        """Redeliver. Creates a new delivery of the same event, to the webhook's current URL and signed with its current secrets.
        An event with 200 deliveries is not redelivered. Accepts ``Idempotency-Key``.

        ``POST /v1/webhook-deliveries/{deliveryId}/redeliver``

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``webhook_disabled``, ``redelivery_limit_reached``, ``idempotency_in_progress``,
        ``payload_too_large``, ``unsupported_media_type``, ``idempotency_key_reused``.
        """
        return self._call(
            Delivery,
            "POST",
            "/v1/webhook-deliveries/{}/redeliver",
            (delivery_id,),
            idempotency_key=once(idempotency_key),
            request_id=request_id,
        )

    def ping_webhook(
        self,
        webhook_id: str,
        *,
        event_kind: EventKind | None = None,
        request_id: str | None = None,
    ) -> PingResult:
        """Ping a webhook. Sends a signed test POST and returns the result; 200 even if the endpoint failed. With ``event_kind``,
        it is a complete sample event of that kind, marked by the header ``X-Service-Test`` and by ``data.test``: its ids name
        nothing, and amounts are 0. At most 6 per minute, and 20 of an organization in progress at a time; beyond that 429.

        ``POST /v1/webhooks/{webhookId}/ping``

        Args:
            event_kind: Kind of the sample event to send; without it, the event is a ``webhook.ping``

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``payload_too_large``, ``unsupported_media_type``.
        """
        return self._call(
            PingResult,
            "POST",
            "/v1/webhooks/{}/ping",
            (webhook_id,),
            body={
                "eventKind": given(event_kind),
            },
            request_id=request_id,
        )

    def create_recovery(
        self,
        webhook_id: str,
        *,
        since: dt.datetime,
        until: dt.datetime | None = None,
        event_kinds: Sequence[EventKind] | None = None,
        vault_ids: Sequence[str] | None = None,
        include: Sequence[RecoveryInclusion] | None = None,
        rate_per_second: int | None = None,
        idempotency_key: str | None = None,
        request_id: str | None = None,
    ) -> Recovery:
        """Recover missed events. Sends every event recorded between ``since`` and ``until`` that was never DELIVERED to the
        webhook, by the webhook's current settings, except events with 200 deliveries, 20 of them to the webhook. New events are
        sent first. Requires the Developer role on every vault that the webhook covers. A webhook can have one unfinished
        recovery. Accepts ``Idempotency-Key``.

        ``POST /v1/webhooks/{webhookId}/recoveries``

        Args:
            since: Events recorded at or after this time, at most 31 days before ``until``
            until: Events recorded up to this time; default: now
            event_kinds: Kinds that the webhook receives; default: all
            vault_ids: Vaults that the webhook covers; default: all
            include: Which events to send again; default: all three
            rate_per_second: Maximum number of deliveries created per second; default: as fast as the endpoint accepts them

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``recovery_running``, ``webhook_disabled``, ``idempotency_in_progress``,
        ``payload_too_large``, ``unsupported_media_type``, ``idempotency_key_reused``.
        """
        return self._call(
            Recovery,
            "POST",
            "/v1/webhooks/{}/recoveries",
            (webhook_id,),
            body={
                "since": since,
                "until": given(until),
                "eventKinds": given(event_kinds),
                "vaultIds": given(vault_ids),
                "include": given(include),
                "ratePerSecond": given(rate_per_second),
            },
            idempotency_key=once(idempotency_key),
            request_id=request_id,
        )

    def list_recoveries(
        self,
        webhook_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        request_id: str | None = None,
    ) -> Pages[Recovery]:
        """List a webhook's recoveries. Recoveries of the webhook, newest first. Ended recoveries are kept for 31 days.

        ``GET /v1/webhooks/{webhookId}/recoveries``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters

        Error codes beside those of every operation: ``invalid_cursor``, ``not_found``.
        """
        return self._pages(
            Recovery,
            "/v1/webhooks/{}/recoveries",
            (webhook_id,),
            query={
                "limit": limit,
                "cursor": cursor,
            },
            request_id=request_id,
        )

    def get_recovery(
        self,
        recovery_id: str,
        *,
        request_id: str | None = None,
    ) -> Recovery:
        """Get a recovery. One recovery with its progress.

        ``GET /v1/webhook-recoveries/{recoveryId}``

        Error codes beside those of every operation: ``not_found``.
        """
        return self._call(
            Recovery,
            "GET",
            "/v1/webhook-recoveries/{}",
            (recovery_id,),
            request_id=request_id,
        )

    def pause_recovery(
        self,
        recovery_id: str,
        *,
        request_id: str | None = None,
    ) -> Recovery:
        """Pause a recovery. Until it is resumed, no further deliveries are created, and those that wait are not sent, whatever is
        asked of them.

        ``POST /v1/webhook-recoveries/{recoveryId}/pause``

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``recovery_ended``, ``payload_too_large``, ``unsupported_media_type``.
        """
        return self._call(
            Recovery,
            "POST",
            "/v1/webhook-recoveries/{}/pause",
            (recovery_id,),
            request_id=request_id,
        )

    def resume_recovery(
        self,
        recovery_id: str,
        *,
        request_id: str | None = None,
    ) -> Recovery:
        """Resume a recovery. Continues where it was paused. Requires the Developer role on every vault that the webhook covers.

        ``POST /v1/webhook-recoveries/{recoveryId}/resume``

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``recovery_ended``, ``payload_too_large``, ``unsupported_media_type``.
        """
        return self._call(
            Recovery,
            "POST",
            "/v1/webhook-recoveries/{}/resume",
            (recovery_id,),
            request_id=request_id,
        )

    def cancel_recovery(
        self,
        recovery_id: str,
        *,
        request_id: str | None = None,
    ) -> Recovery:
        """Cancel a recovery. Ends the recovery and cancels its waiting deliveries.

        ``POST /v1/webhook-recoveries/{recoveryId}/cancel``

        Error codes beside those of every operation: ``malformed_json``, ``invalid_body``, ``insufficient_scope``,
        ``owner_required``, ``not_found``, ``recovery_ended``, ``payload_too_large``, ``unsupported_media_type``.
        """
        return self._call(
            Recovery,
            "POST",
            "/v1/webhook-recoveries/{}/cancel",
            (recovery_id,),
            request_id=request_id,
        )

    def get_credential(
        self,
        *,
        vault_id: str | None = None,
        request_id: str | None = None,
    ) -> Credential:
        """Get the credential. The API key of the request, its user, what they can see, and why a vault is not visible. Works with
        any valid key, without a scope.

        ``GET /v1/credential``

        Args:
            vault_id: Vault to check: whether the key can see it, and if not, why

        Error codes beside those of every operation: ``not_found``.
        """
        return self._call(
            Credential,
            "GET",
            "/v1/credential",
            query={
                "vaultId": vault_id,
            },
            request_id=request_id,
        )

    def get_signing_keys(
        self,
        *,
        request_id: str | None = None,
    ) -> SigningKeySet:
        """Get the public signing keys. The JSON Web Key Set that verifies signatures of this service, current key first; replaced
        keys remain. Requires no API key.

        ``GET /v1/jwks.json``
        """
        return self._call(
            SigningKeySet,
            "GET",
            "/v1/jwks.json",
            request_id=request_id,
        )

    def list_event_checkpoints(
        self,
        *,
        entity_id: str,
        limit: int | None = None,
        cursor: str | None = None,
        request_id: str | None = None,
    ) -> Pages[EventCheckpoint]:
        """List an entity's checkpoints. One checkpoint per midnight (UTC), newest first, kept permanently. Requires a key without
        a vault allowlist whose user can see every vault that the entity has or lately had.

        ``GET /v1/event-checkpoints``

        Args:
            entity_id: The entity
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``, ``not_found``.
        """
        return self._pages(
            EventCheckpoint,
            "/v1/event-checkpoints",
            query={
                "limit": limit,
                "cursor": cursor,
                "entityId": entity_id,
            },
            request_id=request_id,
        )

    def get_latest_event_checkpoint(
        self,
        *,
        entity_id: str,
        request_id: str | None = None,
    ) -> EventCheckpoint:
        """Get an entity's current checkpoint. The state of the chain now.

        ``GET /v1/event-checkpoints/latest``

        Args:
            entity_id: The entity

        Error codes beside those of every operation: ``insufficient_scope``, ``not_found``.
        """
        return self._call(
            EventCheckpoint,
            "GET",
            "/v1/event-checkpoints/latest",
            query={
                "entityId": entity_id,
            },
            request_id=request_id,
        )

    def list_audit_log(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        actor: str | None = None,
        action: AuditAction | None = None,
        target: str | None = None,
        occurred_after: dt.datetime | None = None,
        occurred_before: dt.datetime | None = None,
        request_id: str | None = None,
    ) -> Pages[AuditEntry]:
        """List the audit log. Who did what to webhooks, deliveries, API keys and portal accounts of the organization in the last
        400 days, most recent first. Requires an owner-level key without a vault allowlist.

        ``GET /v1/audit-log``

        Args:
            limit: Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a None ``next_cursor``
                means the end
            cursor: ``next_cursor`` of the previous page, with the same filters
            actor: Only by this API key, session or user
            action: Only this action
            target: Only what was done to this webhook, recovery, delivery, API key, user or organization; with a user's id, also
                to the account
            occurred_after: Only at or after this
            occurred_before: Only at or before this

        Error codes beside those of every operation: ``invalid_cursor``, ``insufficient_scope``, ``owner_required``.
        """
        return self._pages(
            AuditEntry,
            "/v1/audit-log",
            query={
                "limit": limit,
                "cursor": cursor,
                "actor": actor,
                "action": action,
                "target": target,
                "occurredAfter": occurred_after,
                "occurredBefore": occurred_before,
            },
            request_id=request_id,
        )
