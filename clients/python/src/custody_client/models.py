"""Made from the contract by `bun run golden`; not to be edited."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from ._model import UNSET, Event, Model, Unset

ErrorCode: TypeAlias = Literal[
    "invalid_parameter",
    "unknown_parameter",
    "invalid_cursor",
    "missing_credentials",
    "invalid_api_key",
    "expired_api_key",
    "revoked_api_key",
    "ip_not_allowed",
    "insufficient_scope",
    "not_acceptable",
    "uri_too_long",
    "rate_limited",
    "too_many_failed_auth",
    "internal_error",
    "service_unavailable",
    "not_found",
    "too_many_rows",
    "too_many_exports",
    "not_sealed",
    "malformed_json",
    "invalid_body",
    "owner_required",
    "webhook_limit_reached",
    "idempotency_in_progress",
    "payload_too_large",
    "unsupported_media_type",
    "url_not_deliverable",
    "idempotency_key_reused",
    "rotation_limit_reached",
    "cursor_expired",
    "cursor_gone",
    "too_many_streams",
    "webhook_disabled",
    "redelivery_limit_reached",
    "recovery_running",
    "recovery_ended",
    "method_not_allowed",
]
"""Every code that the API fails with. Codes may be added."""


@dataclass(frozen=True, kw_only=True)
class Vault(Model):
    id: str
    """Opaque, prefixed vault_"""
    entity_id: str
    """Operating unit (entity) that it belongs to"""
    label: str
    """Human-readable name"""
    networks: list[str]
    """Networks that the vault operates on"""
    created_at: dt.datetime
    """When it was created on the platform"""


@dataclass(frozen=True, kw_only=True)
class Balance(Model):
    asset: str
    """Asset identifier: {network}/{tokenType}[:{address}]"""
    network: str
    """Friendly network name"""
    symbol: str
    """Ticker"""
    amount: Decimal
    """Exact decimal; parse it with a decimal library, never as floating point"""
    as_of: dt.datetime
    """Time of the record that the amount comes from"""


@dataclass(frozen=True, kw_only=True)
class BalanceRecord(Model):
    asset: str
    """Asset identifier: {network}/{tokenType}[:{address}]"""
    amount: Decimal
    """Exact decimal; parse it with a decimal library, never as floating point"""
    as_of: dt.datetime
    """Time from which the balance had this amount"""
    recorded_at: dt.datetime
    """When the service recorded it"""


TransactionStatus: TypeAlias = Literal[
    "pending",
    "confirmed",
    "failed",
    "replaced",
    "dropped",
]
"""pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values
may be added.
"""


Direction: TypeAlias = Literal[
    "inbound",
    "outbound",
]
"""Into or out of the vault"""


@dataclass(frozen=True, kw_only=True)
class TransactionFee(Model):
    asset: str
    """Asset identifier: {network}/{tokenType}[:{address}]"""
    amount: Decimal
    """Exact decimal; parse it with a decimal library, never as floating point"""


@dataclass(frozen=True, kw_only=True)
class Transaction(Model):
    id: str
    """Opaque, prefixed tx_; the same for a network, hash, index, vault and direction"""
    hash: str
    """On-chain transaction hash"""
    network: str
    """Network it settled on"""
    status: TransactionStatus | str
    """pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle.
    Values may be added.
    """
    direction: Direction | str
    """Into or out of the vault"""
    asset: str
    """Asset identifier: {network}/{tokenType}[:{address}]"""
    amount: Decimal
    """Exact decimal; parse it with a decimal library, never as floating point"""
    from_: str
    """Source address"""
    to: str
    """Destination address"""
    timestamp: dt.datetime
    """When it settled; before that, when it was first seen"""
    fee: TransactionFee | None
    """What the vault paid for it; amount does not contain it"""
    block_number: str | None
    """Number of its block, in digits"""
    block_hash: str | None
    """Hash of its block"""
    memo: str | None
    """Memo or destination tag"""
    external_id: str | None
    """The custody platform's own id"""
    updated_at: dt.datetime
    """When the service last changed it"""


@dataclass(frozen=True, kw_only=True)
class TransactionState(Model):
    status: TransactionStatus | str
    """pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle.
    Values may be added.
    """
    asset: str
    """Asset identifier: {network}/{tokenType}[:{address}]"""
    amount: Decimal
    """Exact decimal; parse it with a decimal library, never as floating point"""
    from_: str
    """Source address"""
    to: str
    """Destination address"""
    timestamp: dt.datetime
    """When it settled; before that, when it was first seen"""
    fee: TransactionFee | None
    """What the vault paid for it; amount does not contain it"""
    block_number: str | None
    """Number of its block, in digits"""
    block_hash: str | None
    """Hash of its block"""
    memo: str | None
    """Memo or destination tag"""
    external_id: str | None
    """The custody platform's own id"""
    occurred_at: dt.datetime
    """When the change happened on the custody platform"""
    recorded_at: dt.datetime
    """When the service recorded it"""
    event_ids: list[str]
    """Its events, which the event log keeps for 31 days"""


@dataclass(frozen=True, kw_only=True)
class TransactionDetail(Transaction):
    history: list[TransactionState]
    """Its states, oldest first: the newest 1,000"""
    history_truncated: bool
    """Whether it had more states"""


ExportFormat: TypeAlias = Literal[
    "csv",
    "ndjson",
]


ExportAmounts: TypeAlias = Literal[
    "spreadsheet",
    "plain",
]


@dataclass(frozen=True, kw_only=True)
class DepositAddress(Model):
    address: str
    """On-chain deposit address"""
    network: str
    """Friendly network name"""
    asset_type: str
    """Kind of asset received"""


@dataclass(frozen=True, kw_only=True)
class VaultTransaction(Transaction):
    vault_id: str
    """Vault that it belongs to"""


@dataclass(frozen=True, kw_only=True)
class PortfolioBalance(Model):
    asset: str
    """Asset identifier: {network}/{tokenType}[:{address}]"""
    network: str
    """Friendly network name"""
    symbol: str
    """Ticker"""
    amount: Decimal
    """Exact decimal; parse it with a decimal library, never as floating point"""
    as_of: dt.datetime | None = None
    """Time of the record that the amount comes from; absent with ``sum_by``"""
    vault_id: str | None = None
    """Vault that it belongs to; absent with ``sum_by``"""
    vault_count: int | None = None
    """With ``sum_by``: vaults with a balance of the asset, zero included"""


@dataclass(frozen=True, kw_only=True)
class StatementLine(Model):
    asset: str
    """Asset identifier"""
    symbol: str
    """Ticker"""
    opening: Decimal
    """Balance when the day began"""
    inbound: Decimal
    """Sum of the confirmed inbound transactions of the day"""
    outbound: Decimal
    """Sum of the confirmed outbound transactions of the day"""
    fees: Decimal
    """Sum of the fees of the confirmed and failed transactions of the day"""
    other: Decimal
    """Everything else: adjustments, unexplained differences; negative values have a minus sign"""
    closing: Decimal
    """Balance when the day ended"""
    transaction_count: int
    """Confirmed transactions of the day"""


@dataclass(frozen=True, kw_only=True)
class Statement(Model):
    vault_id: str
    """The vault"""
    date: dt.date
    """The UTC day"""
    revision: int
    """Number of the revision: 1, and one more each time late records change the day"""
    sealed_at: dt.datetime
    """When it was sealed"""
    previous_hash: str | None
    """Hash of the statement that was sealed before this one for the vault, whatever its day; None for the first"""
    hash: str
    """SHA-256 (hex) of the statement as RFC 8785 JSON without ``hash`` and ``jws``"""
    assets: list[StatementLine]
    """One line per asset"""
    jws: str
    """Compact JWS (EdDSA) over iss, vaultId, date, revision and hash; verify it with /v1/jwks.json"""


@dataclass(frozen=True, kw_only=True)
class StatementSummary(Model):
    vault_id: str
    """The vault"""
    from_: dt.date
    """First day: not before the vault's first statement"""
    to: dt.date
    """Last day"""
    first_hash: str
    """Hash of the first day's newest revision"""
    last_hash: str
    """Hash of the last day's newest revision"""
    assets: list[StatementLine]
    """One line per asset: the first day's opening, the sums of the days, and the last day's closing"""


@dataclass(frozen=True, kw_only=True)
class Asset(Model):
    id: str
    """Asset identifier"""
    symbol: str
    """Ticker; not a unique identifier"""
    name: str
    """Full name"""
    decimals: int
    """Decimal places of the smallest unit"""
    network: str
    """Friendly network name"""


@dataclass(frozen=True, kw_only=True)
class Network(Model):
    name: str
    """Friendly name"""
    kind: Literal["mainnet", "testnet"] | str
    """Whether its assets have value"""


@dataclass(frozen=True, kw_only=True)
class Entity(Model):
    id: str
    """Opaque, prefixed entity_"""
    name: str
    """Human-readable name"""


WebhookStatus: TypeAlias = Literal[
    "ACTIVE",
    "PAUSED",
    "DISABLED",
]
"""ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries are
created
"""


DisabledReason: TypeAlias = Literal[
    "MANUAL",
    "FAILING",
    "GONE",
]
"""Why it is disabled; None if it is not disabled"""


EventKind: TypeAlias = Literal[
    "transaction.pending",
    "transaction.confirmed",
    "transaction.failed",
    "transaction.replaced",
    "transaction.dropped",
    "transaction.reorged",
    "transaction.updated",
    "deposit_address.created",
    "balance.updated",
    "vault.created",
    "vault.updated",
    "statement.sealed",
    "statement.revised",
    "webhook.disabled",
    "webhook.secret_rotated",
    "api_key.expiring",
]
"""Event kind. Values may be added."""


@dataclass(frozen=True, kw_only=True)
class ShownWebhookHeader(Model):
    name: str
    """Name; upper and lower case are the same"""
    value: str | None = field(repr=False)
    """Always None: values are not returned"""


ClientAuthentication: TypeAlias = Literal[
    "basic",
    "post",
]
"""How the client authenticates: basic, by the Authorization header; post, by parameters in the body"""


@dataclass(frozen=True, kw_only=True)
class ShownWebhookOAuth(Model):
    """OAuth client credentials, without their secret"""

    token_url: str
    """The token endpoint"""
    client_id: str
    """The service's client id at the token server"""
    client_secret: str | None = field(repr=False)
    """Always None: the secret is not returned"""
    scope: str | None
    """Requested scope; None for none"""
    audience: str | None
    """Requested audience; None for none"""
    client_authentication: ClientAuthentication | str
    """How the client authenticates: basic, by the Authorization header; post, by parameters in the body"""


@dataclass(frozen=True, kw_only=True)
class Webhook(Model):
    id: str
    """Opaque, prefixed whs_"""
    url: str
    """Where events are sent"""
    description: str
    """Free text for people"""
    status: WebhookStatus | str
    """ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries
    are created
    """
    disabled_reason: DisabledReason | str | None
    """Why it is disabled; None if it is not disabled"""
    disabled_at: dt.datetime | None
    """When it was disabled"""
    entity_ids: list[str]
    """Operating units whose events it receives"""
    event_kinds: list[EventKind | str]
    """Kinds of event that it receives"""
    vault_ids: list[str] | None
    """Vaults whose events it receives; None for all vaults of its entities. Events without a vault pass every filter."""
    notification_email: str
    """Where operational notices go"""
    headers: list[ShownWebhookHeader]
    """Headers that every request carries, without their values"""
    oauth: ShownWebhookOAuth | None
    """OAuth client credentials that get the access token of every request; None without any"""
    previous_secret_expires_at: dt.datetime | None
    """When the previous secret expires; None if only one secret is active"""
    created_at: dt.datetime
    updated_at: dt.datetime


@dataclass(frozen=True, kw_only=True)
class WebhookWithSecret(Webhook):
    """The response of a webhook's creation: the webhook with its signing secret, which is returned only here"""

    secret: str = field(repr=False)
    """Signing secret; returned only once"""


@dataclass(frozen=True, kw_only=True)
class WebhookHeader(Model):
    name: str
    """Name; upper and lower case are the same"""
    value: str = field(repr=False)
    """Value; it is never returned"""


@dataclass(frozen=True, kw_only=True)
class WebhookOAuth(Model):
    """OAuth client credentials that get the access token of every request"""

    token_url: str
    """The token endpoint; the rules of ``url`` hold"""
    client_id: str
    """The service's client id at the token server"""
    client_secret: str = field(repr=False)
    """The client's secret; it is never returned"""
    scope: str | None = None
    """Requested scope, if any"""
    audience: str | None = None
    """Requested audience, if any: a parameter that some token servers require"""
    client_authentication: ClientAuthentication | str | None = None
    """How the client authenticates: basic, by the Authorization header; post, by parameters in the body"""


@dataclass(frozen=True, kw_only=True)
class WebhookEvent(Model):
    id: str
    """Opaque, prefixed evt_"""
    entity_id: str
    """Operating unit (entity) that it belongs to"""
    vault_ids: list[str] | None
    """Vaults involved; None if the event is not vault-scoped"""
    kind: str
    """Event kind"""
    schema_version: int
    """Version of the kind's schema"""
    payload: Event
    """The exact envelope that matching webhooks receive"""
    occurred_at: dt.datetime
    """When it occurred; the envelope's date"""
    dispatched_at: dt.datetime | None
    """When deliveries were created; None while dispatch is pending"""
    created_at: dt.datetime
    """When it was recorded"""


@dataclass(frozen=True, kw_only=True)
class WebhookPreview(Model):
    count: int
    """Events of the last 31 days that it would have received, counted up to ``counted_up_to``"""
    counted_up_to: int
    """Maximum of ``count``"""
    by_kind: dict[str, int]
    """The counted events by kind, with an entry for every requested kind"""
    newest: list[WebhookEvent]
    """The newest of these events, at most 5"""


@dataclass(frozen=True, kw_only=True)
class WebhookHealth(Model):
    state: Literal["HEALTHY", "DEGRADED", "FAILING", "HOLDING"] | str
    """HEALTHY: no attempt failed since the last 2xx response or since it was enabled; DEGRADED: attempts fail; FAILING: at least
    10 attempts failed in a row, for an hour or more; HOLDING: the endpoint is down, so deliveries wait as HELD and it is probed
    """
    consecutive_failures: int
    """Failed attempts since the last 2xx"""
    failing_since: dt.datetime | None
    """When the first of them failed"""
    last_success_at: dt.datetime | None
    """The last 2xx"""
    last_failure_at: dt.datetime | None
    """The last failed attempt"""
    last_result: str | None
    """Result of the last attempt"""
    pending_deliveries: int
    """Waiting deliveries, including held ones, counted up to 100000"""
    held_deliveries: int
    """Deliveries that are HELD, counted up to 100000"""
    next_probe_at: dt.datetime | None
    """When the endpoint is probed next; None unless the state is HOLDING, and while the webhook is paused"""
    delivered24h: int
    """Deliveries delivered in the last 24 hours"""
    failed24h: int
    """Deliveries that exhausted their retry schedule in the last 24 hours"""


@dataclass(frozen=True, kw_only=True)
class WebhookWithHealth(Webhook):
    health: WebhookHealth


@dataclass(frozen=True, kw_only=True)
class PatchedWebhookHeader(Model):
    name: str
    """Name; upper and lower case are the same"""
    value: str | None = field(repr=False)
    """Value; None keeps the stored one"""


@dataclass(frozen=True, kw_only=True)
class PatchedWebhookOAuth(Model):
    """Changes of the OAuth client credentials. The stored secret is not kept if the origin of ``url`` or ``token_url`` changes"""

    token_url: str | None = None
    """The token endpoint; the rules of ``url`` hold"""
    client_id: str | None = None
    """The service's client id at the token server"""
    client_secret: str | None | Unset = field(default=UNSET, repr=False)
    """The client's secret; None or none keeps the stored one"""
    scope: str | None | Unset = UNSET
    """Requested scope, if any"""
    audience: str | None | Unset = UNSET
    """Requested audience, if any: a parameter that some token servers require"""
    client_authentication: ClientAuthentication | str | None = None
    """How the client authenticates: basic, by the Authorization header; post, by parameters in the body"""


@dataclass(frozen=True, kw_only=True)
class RotatedSecret(Model):
    id: str
    """Opaque, prefixed whs_"""
    secret: str = field(repr=False)
    """Signing secret; returned only once"""
    previous_secret_expires_at: dt.datetime | None
    """When the previous secret expires; until then requests are signed with both. Null if all earlier secrets have expired"""


@dataclass(frozen=True, kw_only=True)
class WebhookSourceAddresses(Model):
    addresses: list[str]
    """Ranges from which deliveries and pings are sent; empty if the operator of the service names none"""


@dataclass(frozen=True, kw_only=True)
class WebhookEventDetailDeliveryCounts(Model):
    """Number of its deliveries visible to this API key, by status, including redeliveries"""

    PENDING: int
    RETRYING: int
    HELD: int
    DELIVERED: int
    FAILED: int
    CANCELED: int


@dataclass(frozen=True, kw_only=True)
class WebhookEventDetail(WebhookEvent):
    matched_count: int
    """Number of active and paused webhooks that matched at dispatch; 0 before dispatch"""
    delivery_counts: WebhookEventDetailDeliveryCounts
    """Number of its deliveries visible to this API key, by status, including redeliveries"""


@dataclass(frozen=True, kw_only=True)
class FeedPagination(Model):
    limit: int
    """Page size"""
    next_cursor: str | None
    """Equal to ``resume_cursor`` if there are more events, otherwise None"""


@dataclass(frozen=True, kw_only=True)
class EventFeedPage(Model):
    data: list[WebhookEvent]
    pagination: FeedPagination
    resume_cursor: str
    """Position after the last event examined: pass it as ``after``"""


DeliveryStatus: TypeAlias = Literal[
    "PENDING",
    "RETRYING",
    "HELD",
    "DELIVERED",
    "FAILED",
    "CANCELED",
]
"""PENDING: no attempt yet; RETRYING: an attempt failed and another is scheduled; HELD: it waits in the queue of its webhook, see
heldBecause; DELIVERED: the endpoint returned 2xx; FAILED: the retry schedule is exhausted; CANCELED: canceled while waiting
"""


AttemptResult: TypeAlias = Literal[
    "2xx",
    "3xx",
    "4xx",
    "5xx",
    "timeout",
    "dns_error",
    "connection_refused",
    "connection_reset",
    "tls_error",
    "blocked_address",
    "network_error",
    "interrupted",
    "proxy_error",
    "auth_error",
]
"""2xx is a success; every other result is retried. interrupted: the worker was killed before it recorded the outcome.
proxy_error: the service's egress proxy failed. auth_error: there is no access token, see ``detail``. Values may be added.
"""


@dataclass(frozen=True, kw_only=True)
class Attempt(Model):
    at: dt.datetime
    """When the attempt began"""
    result: AttemptResult | str
    """2xx is a success; every other result is retried. interrupted: the worker was killed before it recorded the outcome.
    proxy_error: the service's egress proxy failed. auth_error: there is no access token, see ``detail``. Values may be added.
    """
    http_status: int
    """HTTP status of the response; 0 without a response"""
    latency_ms: int
    """Milliseconds until the response headers arrived or the attempt failed"""
    body_snippet: str | None
    """Beginning of the response body, at most 1024 bytes"""
    detail: str | None
    """Why the response could not be read as HTTP, in the parser's words, what is wrong with the certificate, or why there is no
    access token; None for every other outcome
    """


@dataclass(frozen=True, kw_only=True)
class Delivery(Model):
    id: str
    """Opaque, prefixed del_"""
    event_id: str
    webhook_id: str
    sequence: int
    """Number of the delivery within its webhook: 1, 2, 3 and so on without gaps, in the order of dispatch"""
    kind: str
    """Kind of the event"""
    status: DeliveryStatus | str
    """PENDING: no attempt yet; RETRYING: an attempt failed and another is scheduled; HELD: it waits in the queue of its webhook,
    see heldBecause; DELIVERED: the endpoint returned 2xx; FAILED: the retry schedule is exhausted; CANCELED: canceled while
    waiting
    """
    attempts: list[Attempt]
    """Attempts so far, oldest first"""
    next_attempt_at: dt.datetime | None
    """When the next attempt is due; None if there is none"""
    held_because: Literal["PAUSED", "DOWN", "TURN"] | str | None
    """Why a HELD delivery waits; None otherwise. PAUSED: its webhook or its recovery is paused; DOWN: its endpoint is down and is
    probed; TURN: it is sent in its turn
    """
    failure_reason: Literal["EXHAUSTED", "WEBHOOK_DISABLED", "WEBHOOK_DELETED", "MANUAL", "EXPIRED"] | str | None
    """Why it ended without a 2xx response; None otherwise. EXPIRED: it was held for 31 days, or its event left the log"""
    replayed_from_delivery_id: str | None
    """The delivery that this one redelivers; None otherwise"""
    recovery_id: str | None
    """The recovery that created it; None otherwise"""
    delivered_at: dt.datetime | None
    """When the endpoint returned 2xx; None before that"""
    created_at: dt.datetime


@dataclass(frozen=True, kw_only=True)
class EventDeliveries(Model):
    data: list[Delivery]


@dataclass(frozen=True, kw_only=True)
class PingResult(Model):
    webhook_id: str
    """Opaque, prefixed whs_"""
    event_id: str
    """Id of the test event; it is not in the log"""
    at: dt.datetime
    success: bool
    """Whether the endpoint returned 2xx in time"""
    result: str
    """Result, as of an attempt"""
    http_status: int
    """HTTP status of the response; 0 without a response"""
    latency_ms: int
    """Milliseconds until the response headers arrived or the ping failed"""
    body_snippet: str | None
    """Beginning of the response body"""
    detail: str | None
    """As of an attempt: why there was no access token, for example"""


RecoveryStatus: TypeAlias = Literal[
    "RUNNING",
    "PAUSED",
    "COMPLETED",
    "CANCELED",
]
"""RUNNING: deliveries are created or still waiting; PAUSED: no further deliveries are created; COMPLETED: all of its deliveries
have ended; CANCELED: it was canceled
"""


RecoveryInclusion: TypeAlias = Literal[
    "FAILED",
    "CANCELED",
    "MISSED",
]
"""FAILED or CANCELED: the event's last delivery ended with that status; MISSED: the event had no delivery"""


@dataclass(frozen=True, kw_only=True)
class RecoveryProgress(Model):
    """Counts only events that the key can see. If the key cannot see everything that the webhook covers, scanned equals created.
    """

    scanned: int
    """Events examined so far that the webhook would receive"""
    created: int
    """Deliveries that it created"""
    delivered: int
    """Of those: DELIVERED"""
    failed: int
    """Of those: FAILED"""
    canceled: int
    """Of those: CANCELED"""
    pending: int
    """Of those: still waiting"""


@dataclass(frozen=True, kw_only=True)
class Recovery(Model):
    id: str
    """Opaque, prefixed rec_"""
    webhook_id: str
    status: RecoveryStatus | str
    """RUNNING: deliveries are created or still waiting; PAUSED: no further deliveries are created; COMPLETED: all of its
    deliveries have ended; CANCELED: it was canceled
    """
    since: dt.datetime
    """Events recorded at or after this time"""
    until: dt.datetime
    """Events recorded up to this time"""
    event_kinds: list[str] | None
    """Only these kinds; None for all that the webhook receives"""
    vault_ids: list[str] | None
    """Only these vaults; None for all that the webhook covers"""
    include: list[RecoveryInclusion | str]
    """Which events it sends again"""
    rate_per_second: int | None
    """Maximum number of deliveries created per second; None: as fast as the endpoint accepts them"""
    progress: RecoveryProgress
    """Counts only events that the key can see. If the key cannot see everything that the webhook covers, scanned equals created.
    """
    created_at: dt.datetime
    updated_at: dt.datetime
    completed_at: dt.datetime | None
    """When it became COMPLETED or CANCELED; None before that"""


@dataclass(frozen=True, kw_only=True)
class CredentialKey(Model):
    id: str
    """Id of the key"""
    label: str
    """Free text for people"""
    scopes: list[str]
    """Scopes of the key"""
    vault_ids: list[str] | None
    """Vault allowlist; None allows every vault on which the user has the Developer role"""
    ip_allowlist: list[str]
    """Address ranges from which the key may be used; empty: any"""
    created_at: dt.datetime
    expires_at: dt.datetime | None
    """When it expires; None: never"""


@dataclass(frozen=True, kw_only=True)
class CredentialUser(Model):
    id: str
    """The user that the key is bound to"""
    organization_role: Literal["owner", "member"] | str
    """The user's role in the organization now"""


@dataclass(frozen=True, kw_only=True)
class CredentialVaults(Model):
    role: int
    """Vaults where the user has the Developer role"""
    allowlist: int
    """Those of them that the key's vault allowlist contains"""
    visible: int
    """Those that reads return; 0 without ``vault:read``"""


@dataclass(frozen=True, kw_only=True)
class CredentialVault(Model):
    """The vault named by ``vault_id``; absent without that parameter"""

    visible: bool
    because: Literal["unknown", "scope", "allowlist", "visible"] | str
    """unknown: there is no such vault, or the user has no Developer role on it; scope: the key lacks ``vault:read``; allowlist:
    the key's vault allowlist does not include it; visible: reads return it
    """


@dataclass(frozen=True, kw_only=True)
class Credential(Model):
    key: CredentialKey
    user: CredentialUser
    organization_id: str
    """The organization"""
    owner_level: bool
    """Whether the key may manage webhooks, given ``webhook:manage``"""
    client_address: str | None
    """The address that this request came from, as the service sees it"""
    vaults: CredentialVaults
    entities: list[Entity]
    """Entities that ``GET /v1/entities`` returns: the first 100"""
    entity_count: int
    """Entities that ``GET /v1/entities`` returns; 0 without ``vault:read`` and ``webhook:read``"""
    vault: CredentialVault | None = None
    """The vault named by ``vault_id``; absent without that parameter"""


@dataclass(frozen=True, kw_only=True)
class SigningKey(Model):
    kty: Literal["OKP"] | str
    crv: Literal["Ed25519"] | str
    alg: Literal["EdDSA"] | str
    use: Literal["sig"] | str
    kid: str
    """Id of the key, as in the header of its signatures: its RFC 7638 thumbprint"""
    x: str
    """The public key, 32 bytes in base64url"""


@dataclass(frozen=True, kw_only=True)
class SigningKeySet(Model):
    keys: list[SigningKey]


@dataclass(frozen=True, kw_only=True)
class EventCheckpoint(Model):
    entity_id: str
    count: int
    """Number of events of the entity up to this checkpoint"""
    hash: str
    """State of the entity's hash chain at this checkpoint, in hex. The chain starts with 32 zero bytes. For each event, in the
    order of recording, its next state is the SHA-256 of the previous state followed by the SHA-256 of the event's payload, byte
    for byte as delivered.
    """
    at: dt.datetime
    """Time of the checkpoint"""
    resume_cursor: str | None
    """Cursor of the event feed at this checkpoint; None if it is older than the log"""
    jws: str
    """Compact JWS (EdDSA) over { iss, entityId, count, hash, at }; keys: /v1/jwks.json"""


@dataclass(frozen=True, kw_only=True)
class AuditActor(Model):
    type: Literal["key", "session", "operator", "platform", "service"] | str
    """key: an API key; session: a person in the portal; operator: a command of the service; platform: the custody platform by its
    records; service: the service itself
    """
    id: str | None
    """The API key or the portal session; None for operator, platform and service"""
    user_id: str | None
    """The user of the API key or session; None without one"""


@dataclass(frozen=True, kw_only=True)
class AuditTarget(Model):
    type: str
    """webhook, recovery, delivery, api_key, user, account or organization"""
    id: str
    """Id of the target; for an account, the id of its user"""


@dataclass(frozen=True, kw_only=True)
class AuditEntryChange(Model):
    old: Any
    """Value before; None where there was none"""
    new: Any
    """Value after"""


@dataclass(frozen=True, kw_only=True)
class AuditEntry(Model):
    id: str
    """Opaque, prefixed aud_"""
    at: dt.datetime
    """When the action took place"""
    actor: AuditActor
    action: str
    """What was done: webhook.created, webhook.updated, webhook.deleted, webhook.secret_rotated, webhook.pinged, webhook.disabled,
    webhook.held, webhook.released, webhook.deliveries_retried, webhook.deliveries_canceled, recovery.created, recovery.paused,
    recovery.resumed, recovery.canceled, delivery.redelivered, delivery.retried, delivery.canceled, user.created, user.updated,
    api_key.created, api_key.updated, api_key.revoked, account.invited, account.invitation_accepted, account.signed_in,
    account.sign_in_failed, account.second_factor_added, account.second_factor_failed, account.backup_code_used, account.locked,
    account.password_changed, account.password_reset_requested, account.password_reset, account.backup_codes_renewed,
    account.passkey_added, account.passkey_removed, account.sessions_ended, master_key.reencrypted, organization.exported,
    organization.deleting, organization.deleted. Values may be added.
    """
    target: AuditTarget
    client_address: str | None
    """Address of the client; None without a request"""
    request_id: str | None
    """The request's id, as in X-Request-Id"""
    changes: dict[str, AuditEntryChange]
    """Changed fields with their old and new values. Secrets are never included, and a URL is reduced to its origin"""


AuditAction: TypeAlias = Literal[
    "webhook.created",
    "webhook.updated",
    "webhook.deleted",
    "webhook.secret_rotated",
    "webhook.pinged",
    "webhook.disabled",
    "webhook.held",
    "webhook.released",
    "webhook.deliveries_retried",
    "webhook.deliveries_canceled",
    "recovery.created",
    "recovery.paused",
    "recovery.resumed",
    "recovery.canceled",
    "delivery.redelivered",
    "delivery.retried",
    "delivery.canceled",
    "user.created",
    "user.updated",
    "api_key.created",
    "api_key.updated",
    "api_key.revoked",
    "account.invited",
    "account.invitation_accepted",
    "account.signed_in",
    "account.sign_in_failed",
    "account.second_factor_added",
    "account.second_factor_failed",
    "account.backup_code_used",
    "account.locked",
    "account.password_changed",
    "account.password_reset_requested",
    "account.password_reset",
    "account.backup_codes_renewed",
    "account.passkey_added",
    "account.passkey_removed",
    "account.sessions_ended",
    "master_key.reencrypted",
    "organization.exported",
    "organization.deleting",
    "organization.deleted",
]


@dataclass(frozen=True, kw_only=True)
class FieldIssue(Model):
    in_: Literal["path", "query", "header", "body"] | str
    """The part of the request"""
    field: str
    """Name of the parameter, or path in the body"""
    code: str
    """What kind of error it is"""
    detail: str
    """What is expected"""


@dataclass(frozen=True, kw_only=True)
class Pagination(Model):
    limit: int
    """Page size"""
    next_cursor: str | None
    """Cursor of the next page; None on the last page"""


@dataclass(frozen=True, kw_only=True)
class TransactionDataPreviousFee(Model):
    """What the vault paid for it; amount does not contain it"""

    asset: str
    """Asset identifier: {network}/{tokenType}[:{address}]"""
    amount: Decimal
    """Exact decimal; parse it with a decimal library, never as floating point"""


@dataclass(frozen=True, kw_only=True)
class TransactionDataPrevious(Model):
    """The fields that changed, with their values before; None for a new transaction. The two events of a change that leaves
    confirmed have the same
    """

    status: TransactionStatus | str | None = None
    """pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle.
    Values may be added.
    """
    asset: str | None = None
    """Asset identifier: {network}/{tokenType}[:{address}]"""
    amount: Decimal | None = None
    """Exact decimal; parse it with a decimal library, never as floating point"""
    from_: str | None = None
    """Source address"""
    to: str | None = None
    """Destination address"""
    timestamp: dt.datetime | None = None
    """When it settled; before that, when it was first seen"""
    fee: TransactionDataPreviousFee | None = None
    """What the vault paid for it; amount does not contain it"""
    block_number: str | None = None
    """Number of its block, in digits"""
    block_hash: str | None = None
    """Hash of its block"""
    memo: str | None = None
    """Memo or destination tag"""
    external_id: str | None = None
    """The custody platform's own id"""


@dataclass(frozen=True, kw_only=True)
class TransactionData(Model):
    vault_id: str
    """The vault in which it occurred"""
    transaction: Transaction
    previous: TransactionDataPrevious | None
    """The fields that changed, with their values before; None for a new transaction. The two events of a change that leaves
    confirmed have the same
    """


@dataclass(frozen=True, kw_only=True)
class TransactionPendingEvent(Event, kind="transaction.pending", version=1):
    """A transaction was seen before it was included in a block"""

    kind: Literal["transaction.pending"]
    vault_ids: list[str]
    data: TransactionData


@dataclass(frozen=True, kw_only=True)
class TransactionConfirmedEvent(Event, kind="transaction.confirmed", version=1):
    """A transaction settled"""

    kind: Literal["transaction.confirmed"]
    vault_ids: list[str]
    data: TransactionData


@dataclass(frozen=True, kw_only=True)
class TransactionFailedEvent(Event, kind="transaction.failed", version=1):
    """A transaction is in a block but reverted"""

    kind: Literal["transaction.failed"]
    vault_ids: list[str]
    data: TransactionData


@dataclass(frozen=True, kw_only=True)
class TransactionReplacedEvent(Event, kind="transaction.replaced", version=1):
    """A pending transaction was replaced by another"""

    kind: Literal["transaction.replaced"]
    vault_ids: list[str]
    data: TransactionData


@dataclass(frozen=True, kw_only=True)
class TransactionDroppedEvent(Event, kind="transaction.dropped", version=1):
    """A pending transaction will not settle"""

    kind: Literal["transaction.dropped"]
    vault_ids: list[str]
    data: TransactionData


@dataclass(frozen=True, kw_only=True)
class TransactionReorgedEvent(Event, kind="transaction.reorged", version=1):
    """A confirmed transaction is no longer confirmed, as after a re-organization of the chain; unless it is pending, the event of
    its new status follows
    """

    kind: Literal["transaction.reorged"]
    vault_ids: list[str]
    data: TransactionData


@dataclass(frozen=True, kw_only=True)
class TransactionUpdatedEvent(Event, kind="transaction.updated", version=1):
    """Another field of a transaction than its status changed"""

    kind: Literal["transaction.updated"]
    vault_ids: list[str]
    data: TransactionData


@dataclass(frozen=True, kw_only=True)
class DepositAddressData(Model):
    vault_id: str
    """The vault in which it occurred"""
    deposit_address: DepositAddress


@dataclass(frozen=True, kw_only=True)
class DepositAddressCreatedEvent(Event, kind="deposit_address.created", version=1):
    """A vault has a new deposit address"""

    kind: Literal["deposit_address.created"]
    vault_ids: list[str]
    data: DepositAddressData


@dataclass(frozen=True, kw_only=True)
class BalanceData(Model):
    vault_id: str
    """The vault in which it occurred"""
    balance: Balance


@dataclass(frozen=True, kw_only=True)
class BalanceUpdatedEvent(Event, kind="balance.updated", version=1):
    """A settled balance changed"""

    kind: Literal["balance.updated"]
    vault_ids: list[str]
    data: BalanceData


@dataclass(frozen=True, kw_only=True)
class VaultData(Model):
    vault_id: str
    """The vault in which it occurred"""
    vault: Vault


@dataclass(frozen=True, kw_only=True)
class VaultCreatedEvent(Event, kind="vault.created", version=1):
    """A vault was created"""

    kind: Literal["vault.created"]
    vault_ids: list[str]
    data: VaultData


@dataclass(frozen=True, kw_only=True)
class VaultUpdatedEvent(Event, kind="vault.updated", version=1):
    """A vault's label or networks changed, or it moved to another entity: an event of both"""

    kind: Literal["vault.updated"]
    vault_ids: list[str]
    data: VaultData


@dataclass(frozen=True, kw_only=True)
class StatementDataStatement(Model):
    date: dt.date
    """The UTC day"""
    revision: int
    """Number of the revision: 1, and one more each time late records change the day"""
    hash: str
    """SHA-256 (hex) of the statement as RFC 8785 JSON without ``hash`` and ``jws``"""
    previous_hash: str | None
    """Hash of the statement that was sealed before this one for the vault, whatever its day; None for the first"""
    sealed_at: dt.datetime
    """When it was sealed"""


@dataclass(frozen=True, kw_only=True)
class StatementDataBecause(Model):
    """What late records caused a revision; None for the first"""

    transaction_ids: list[str]
    """Transactions of the day that were recorded or changed since"""
    assets: list[str]
    """Assets with another balance, recorded since for the day or an earlier one"""
    more: int
    """How many more there are: at most 20 are named"""


@dataclass(frozen=True, kw_only=True)
class StatementData(Model):
    vault_id: str
    """The vault in which it occurred"""
    statement: StatementDataStatement
    because: StatementDataBecause | None
    """What late records caused a revision; None for the first"""


@dataclass(frozen=True, kw_only=True)
class StatementSealedEvent(Event, kind="statement.sealed", version=1):
    """The statement of a day was sealed"""

    kind: Literal["statement.sealed"]
    vault_ids: list[str]
    data: StatementData


@dataclass(frozen=True, kw_only=True)
class StatementRevisedEvent(Event, kind="statement.revised", version=1):
    """Late records changed a sealed day: its statement has another revision"""

    kind: Literal["statement.revised"]
    vault_ids: list[str]
    data: StatementData


@dataclass(frozen=True, kw_only=True)
class WebhookDisabledDataWebhook(Model):
    id: str
    """The webhook that it concerns"""
    status: Literal["DISABLED"] | str
    """Its status"""
    disabled_reason: Literal["FAILING", "GONE"] | str
    """FAILING: no 2xx response for too long; GONE: the endpoint returned 410 twice"""
    disabled_at: dt.datetime
    """When it was disabled"""


@dataclass(frozen=True, kw_only=True)
class WebhookDisabledData(Model):
    webhook_id: str
    """The webhook that it concerns"""
    webhook: WebhookDisabledDataWebhook


@dataclass(frozen=True, kw_only=True)
class WebhookDisabledEvent(Event, kind="webhook.disabled", version=1):
    """A webhook was disabled automatically"""

    kind: Literal["webhook.disabled"]
    vault_ids: None
    data: WebhookDisabledData


@dataclass(frozen=True, kw_only=True)
class WebhookSecretRotatedDataWebhook(Model):
    id: str
    """The webhook that it concerns"""
    previous_secret_expires_at: dt.datetime
    """When the previous secret expires; until then requests are signed with both"""


@dataclass(frozen=True, kw_only=True)
class WebhookSecretRotatedData(Model):
    webhook_id: str
    """The webhook that it concerns"""
    webhook: WebhookSecretRotatedDataWebhook


@dataclass(frozen=True, kw_only=True)
class WebhookSecretRotatedEvent(Event, kind="webhook.secret_rotated", version=1):
    """A webhook has a new signing secret"""

    kind: Literal["webhook.secret_rotated"]
    vault_ids: None
    data: WebhookSecretRotatedData


@dataclass(frozen=True, kw_only=True)
class ApiKeyDataApiKey(Model):
    id: str
    """The API key that it concerns"""
    label: str
    """Free text for people"""
    user_id: str
    """The user that the key is bound to"""
    expires_at: dt.datetime
    """When it expires"""
    last_used_at: dt.datetime | None
    """When it was used last; None: never"""


@dataclass(frozen=True, kw_only=True)
class ApiKeyData(Model):
    api_key_id: str
    """The API key that it concerns"""
    api_key: ApiKeyDataApiKey
    days_before: int
    """Which warning this is: 30, 7 or 1 days before the expiry"""


@dataclass(frozen=True, kw_only=True)
class ApiKeyExpiringEvent(Event, kind="api_key.expiring", version=1):
    """An API key expires in 30 days, 7 days or 1 day"""

    kind: Literal["api_key.expiring"]
    vault_ids: None
    data: ApiKeyData


@dataclass(frozen=True, kw_only=True)
class WebhookPingData(Model):
    webhook_id: str


@dataclass(frozen=True, kw_only=True)
class WebhookPingEvent(Event, kind="webhook.ping", version=1):
    """A test, sent by a ping and not in the log"""

    kind: Literal["webhook.ping"]
    vault_ids: None
    data: WebhookPingData
