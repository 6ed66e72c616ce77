/**
 * Every setting of the program in one table: name, default, meaning and reader. The program, `custody doctor`, the README
 * and the compose test read this table, so they always agree.
 *
 * If a setting is missing or invalid, startup fails with one message per setting: its name, what was read and what is
 * expected. Secrets are never echoed.
 */
import { Either } from "effect"
import * as Format from "./Format.ts"
import { color, explorers } from "./portalLook.ts"
import {
  hostPort,
  masterKey,
  oneOf,
  optional,
  plainUrl,
  port,
  resolver,
  type Setting,
  safeOrigin,
  schedule,
  secret,
  setting,
  text,
  url
} from "./readers.ts"

/** The table, in display order. */
export const table = {
  host: setting("HOST", "127.0.0.1", "address that the public API listens on", text),
  port: setting("PORT", "8080", "port of the public API", port),
  tlsCertFile: optional(
    "TLS_CERT_FILE",
    "none: plain HTTP, behind a proxy that terminates TLS",
    "PEM certificate chain; the public API then serves HTTPS itself",
    text
  ),
  tlsKeyFile: optional("TLS_KEY_FILE", "none", "PEM private key that belongs to `TLS_CERT_FILE`", text),
  platformHost: setting("PLATFORM_HOST", "127.0.0.1", "address that the platform listener listens on", text),
  platformPort: setting(
    "PLATFORM_PORT",
    "8081",
    "port of the platform listener: record feed, health, metrics; never on the public port",
    port
  ),
  platformToken: secret(
    "PLATFORM_TOKEN",
    "generated into `DATA_DIR` with embedded Postgres, required by the API otherwise",
    "bearer token of the record feed, at least 16 characters",
    (value) => (value.trim().length >= 16 ? Either.right(value.trim()) : Either.left("at least 16 characters"))
  ),
  dataDir: setting("DATA_DIR", ".data", "data directory of the embedded servers", text),
  databaseUrl: secret(
    "DATABASE_URL",
    "embedded Postgres in `DATA_DIR`",
    "connection URL of an existing Postgres 15 or newer",
    url("postgres", "postgresql")
  ),
  databaseReadUrl: secret(
    "DATABASE_READ_URL",
    "none: everything is read from `DATABASE_URL`",
    "one streaming replica of `DATABASE_URL`, from which the API reads lists of custody data, the catalog and exports",
    url("postgres", "postgresql")
  ),
  embeddedPostgresPort: setting("EMBEDDED_POSTGRES_PORT", "55432", "loopback port of the embedded Postgres; 0 for any free port", port),
  embeddedTemporalPort: setting(
    "EMBEDDED_TEMPORAL_PORT",
    "7233",
    "loopback port of the embedded Temporal server; 0 for any free port",
    port
  ),
  embeddedTemporalUiPort: setting(
    "EMBEDDED_TEMPORAL_UI_PORT",
    "8233",
    "loopback port of the embedded Temporal UI; 0 for any free port",
    port
  ),
  temporalAddress: optional(
    "TEMPORAL_ADDRESS",
    "embedded dev server",
    "host:port of an existing Temporal cluster or Temporal Cloud",
    hostPort
  ),
  temporalNamespace: setting("TEMPORAL_NAMESPACE", "default", "Temporal namespace", text),
  temporalTaskQueue: setting(
    "TEMPORAL_TASK_QUEUE",
    "webhook-deliveries",
    "task queue of workflows and first attempts, of one database only; the names of the others begin with it: `-attempts` for retries, probes and queues, `-pings` for pings, `-mail` for notices, `-background` for recoveries, statements and retention",
    text
  ),
  temporalApiKey: secret("TEMPORAL_API_KEY", "none", "API key of Temporal Cloud; implies TLS", text),
  temporalTls: setting(
    "TEMPORAL_TLS",
    "off",
    "`on` connects with TLS; implied by the settings below and by `TEMPORAL_API_KEY`",
    oneOf("on", "off")
  ),
  temporalTlsCaFile: optional(
    "TEMPORAL_TLS_CA_FILE",
    "the system's roots",
    "PEM file of root certificates that verify the Temporal server's certificate",
    text
  ),
  temporalTlsCertFile: optional("TEMPORAL_TLS_CERT_FILE", "none", "PEM client certificate for mutual TLS", text),
  temporalTlsKeyFile: optional("TEMPORAL_TLS_KEY_FILE", "none", "PEM private key that belongs to `TEMPORAL_TLS_CERT_FILE`", text),
  temporalTlsServerName: optional(
    "TEMPORAL_TLS_SERVER_NAME",
    "host of `TEMPORAL_ADDRESS`",
    "name that the Temporal server's certificate must match",
    text
  ),
  temporalUiUrl: setting("TEMPORAL_UI_URL", "http://127.0.0.1:8233", "URL of the Temporal UI, for links", plainUrl("http", "https")),
  temporalShowHosts: setting(
    "TEMPORAL_SHOW_HOSTS",
    "on",
    "`off` hides endpoint hosts in Temporal; summaries then name the webhook",
    oneOf("on", "off")
  ),
  temporalPayloadCodec: setting(
    "TEMPORAL_PAYLOAD_CODEC",
    "off",
    "`aes256gcm` encrypts workflow inputs and results before they reach Temporal, with a key derived from `MASTER_KEY`; with `off`, encrypted payloads are still read",
    oneOf("off", "aes256gcm")
  ),
  masterKey: secret(
    "MASTER_KEY",
    "generated into `DATA_DIR` with embedded Postgres, required otherwise",
    "32 bytes in base64: encrypts webhook secrets, idempotent responses, authenticators, cursors and Temporal payloads, and signs the portal's cookies",
    masterKey
  ),
  masterKeyPrevious: secret(
    "MASTER_KEY_PREVIOUS",
    "none",
    "the previous `MASTER_KEY`, used for decryption; keep it for 31 days after a rotation",
    masterKey
  ),
  portalBaseUrl: optional(
    "PORTAL_BASE_URL",
    "the loopback address of the request",
    "public origin of the API and the web portal, such as https://custody.example.com; if unset, the portal is served on loopback addresses only. The same for every process: it is the issuer of signatures",
    safeOrigin
  ),
  portalOidcIssuer: optional(
    "PORTAL_OIDC_ISSUER",
    "none: passwords and passkeys only",
    "issuer URL of the identity provider for signing in to the web portal; the redirect URI is `PORTAL_BASE_URL` + `/portal/api/auth/callback/oidc`",
    plainUrl("https", "http")
  ),
  portalOidcClientId: optional("PORTAL_OIDC_CLIENT_ID", "none", "client id at `PORTAL_OIDC_ISSUER`", text),
  portalOidcClientSecret: secret("PORTAL_OIDC_CLIENT_SECRET", "none", "client secret at `PORTAL_OIDC_ISSUER`", text),
  portalName: setting("PORTAL_NAME", "Custody", "name of the portal in its pages and titles", text),
  portalLogoFile: optional("PORTAL_LOGO_FILE", "the default logo", "SVG or PNG file of the portal's logo, at most 100 KB", text),
  portalColor: optional(
    "PORTAL_COLOR",
    "blue",
    "accent color of the portal, such as `#2452c7`; darkened or lightened where text would be hard to read",
    color
  ),
  portalExplorers: setting(
    "PORTAL_EXPLORERS",
    "",
    "block explorers in addition to the known ones, as `network=https://…/{hash}|https://…/{address}`, comma-separated, or `off`",
    explorers,
    "the usual explorer of each known network"
  ),
  trustedProxies: setting("TRUSTED_PROXIES", "", "CIDRs of proxies whose `X-Forwarded-For` is trusted", Format.cidrs, "none"),
  corsOrigins: setting(
    "CORS_ORIGINS",
    "",
    "origins of web pages that may call the API with a key, comma-separated, such as https://treasury.example.com",
    (value) => Format.list(value, safeOrigin),
    "none"
  ),
  rateLimit: setting(
    "RATE_LIMIT",
    "50/1s burst 100",
    "rate limit per API key; `off`, for benchmarks, also disables the limits on failed authentications, portal sign-ins and pings",
    Format.rate
  ),
  webhookRetrySchedule: setting(
    "WEBHOOK_RETRY_SCHEDULE",
    "0s,5s,5m,30m,2h,5h,10h,14h,20h,24h",
    "wait before each attempt, comma-separated",
    schedule("0 seconds")
  ),
  webhookMaxInFlight: setting(
    "WEBHOOK_MAX_IN_FLIGHT",
    "8",
    "maximum number of attempts in flight at one webhook, over all workers",
    Format.integer(1, 1_000)
  ),
  webhookHold: setting(
    "WEBHOOK_HOLD",
    "auto",
    "`auto`: deliveries to an endpoint that is down are held while it is probed, without using up their schedules; `off`: an endpoint is never considered down",
    oneOf("auto", "off")
  ),
  webhookHoldAfter: setting(
    "WEBHOOK_HOLD_AFTER",
    "60s",
    "how long ten or more consecutive attempts must have failed before an endpoint is considered down",
    Format.duration
  ),
  webhookProbeSchedule: setting(
    "WEBHOOK_PROBE_SCHEDULE",
    "30s,1m,2m,4m,5m",
    "wait before each probe of an endpoint that is down, comma-separated; the last one repeats",
    schedule("1 second")
  ),
  webhookRotationGrace: setting(
    "WEBHOOK_ROTATION_GRACE",
    "24h",
    "how long the previous secret stays valid after a rotation",
    Format.duration
  ),
  webhookDisableAfter: setting(
    "WEBHOOK_DISABLE_AFTER",
    "120h",
    "time without a 2xx response after which a failing webhook is disabled",
    Format.duration
  ),
  webhookAllowCidrs: setting("WEBHOOK_ALLOW_CIDRS", "", "private address ranges to which deliveries are allowed", Format.cidrs, "none"),
  webhookAllowPorts: setting(
    "WEBHOOK_ALLOW_PORTS",
    "",
    "ports allowed in webhook URLs in addition to 443 and 8443",
    (value) => Format.list(value, Format.integer(1, 65_535)),
    "none"
  ),
  webhookExtraCa: optional(
    "WEBHOOK_EXTRA_CA",
    "none",
    "PEM file of root certificates trusted for deliveries, in addition to Mozilla's",
    text
  ),
  webhookClientCertFile: optional(
    "WEBHOOK_CLIENT_CERT_FILE",
    "none",
    "PEM client certificate chain for endpoints that require mTLS; reloaded within 5 s of a change",
    text
  ),
  webhookClientKeyFile: optional("WEBHOOK_CLIENT_KEY_FILE", "none", "PEM private key that belongs to `WEBHOOK_CLIENT_CERT_FILE`", text),
  webhookProxyUrl: secret(
    "WEBHOOK_PROXY_URL",
    "none",
    "CONNECT proxy for all deliveries and pings, http:// or https://, optionally with user and password",
    url("http", "https")
  ),
  webhookDnsServers: setting(
    "WEBHOOK_DNS_SERVERS",
    "",
    "DNS resolvers for deliveries, comma-separated",
    (value) => Format.list(value, resolver),
    "the system's"
  ),
  webhookSourceAddresses: setting(
    "WEBHOOK_SOURCE_ADDRESSES",
    "",
    "CIDRs from which deliveries reach endpoints, such as those of the NAT gateway or of `WEBHOOK_PROXY_URL`; published for firewalls",
    Format.cidrs,
    "none"
  ),
  smtpUrl: secret(
    "SMTP_URL",
    "none: notices are logged and kept in the `notices` table",
    "SMTP server for operational e-mail, invitations to the portal and new passwords, smtp:// or smtps://",
    url("smtp", "smtps")
  ),
  noticeFrom: setting("NOTICE_FROM", "webhooks@localhost", "sender address of operational e-mail", text),
  statementDelay: setting("STATEMENT_DELAY", "6h", "time from the end of a UTC day until its statements are sealed", Format.duration),
  statementHistory: setting("STATEMENT_HISTORY", "7d", "how far before a vault's first record its statements begin", Format.duration),
  exportMaxRows: setting(
    "EXPORT_MAX_ROWS",
    "1000000",
    "maximum number of rows of an export; larger exports are rejected before the first byte",
    Format.integer(1, 100_000_000)
  ),
  otlpEndpoint: optional("OTEL_EXPORTER_OTLP_ENDPOINT", "off", "OTLP endpoint (HTTP) for traces, metrics and logs", url("http", "https")),
  logFormat: optional("LOG_FORMAT", "pretty on a terminal, json otherwise", "`pretty` or `json`", oneOf("pretty", "json")),
  logLevel: setting("LOG_LEVEL", "info", "`debug`, `info`, `warning` or `error`", oneOf("debug", "info", "warning", "error"))
} as const

type Value<S> = S extends Setting<infer A> ? A : never

/** The values that the program runs with, by the keys of {@link table}. */
export type Values = { readonly [K in keyof typeof table]: Value<(typeof table)[K]> }
