/**
 * Every setting of the program, in one table: its name, its default, what it means and how its text
 * is read. The program, `custody doctor`, the README's table and the compose test all read this table,
 * so none of them can promise a setting that the others do not know.
 *
 * A setting that is missing or does not fit stops the start with one message per setting that names it,
 * what was read and what is expected. Secrets are never echoed.
 */
import { Either } from "effect"
import * as Format from "./Format.ts"
import {
  hostPort,
  masterKey,
  oneOf,
  optional,
  port,
  portalOrigin,
  resolver,
  type Setting,
  schedule,
  secret,
  setting,
  text,
  url
} from "./readers.ts"

/** The table. Its order is the order in which settings are shown. */
export const table = {
  host: setting("HOST", "127.0.0.1", "address of the public API", text),
  port: setting("PORT", "8080", "port of the public API", port),
  tlsCertFile: optional(
    "TLS_CERT_FILE",
    "none: plain HTTP, for a proxy that ends TLS",
    "PEM certificate chain; the public API then serves HTTPS itself",
    text
  ),
  tlsKeyFile: optional("TLS_KEY_FILE", "none", "PEM private key that belongs to `TLS_CERT_FILE`", text),
  platformHost: setting("PLATFORM_HOST", "127.0.0.1", "address of the platform listener", text),
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
  dataDir: setting("DATA_DIR", ".data", "everything that the embedded defaults keep", text),
  databaseUrl: secret("DATABASE_URL", "embedded Postgres in `DATA_DIR`", "an existing Postgres 15 or newer", url("postgres", "postgresql")),
  embeddedPostgresPort: setting("EMBEDDED_POSTGRES_PORT", "55432", "loopback port of the embedded Postgres; 0 takes a free one", port),
  embeddedTemporalPort: setting(
    "EMBEDDED_TEMPORAL_PORT",
    "7233",
    "loopback port of the embedded Temporal server; 0 takes a free one",
    port
  ),
  embeddedTemporalUiPort: setting(
    "EMBEDDED_TEMPORAL_UI_PORT",
    "8233",
    "loopback port of the embedded Temporal UI; 0 takes a free one",
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
    "task queue of first attempts; slow endpoints, retries and mail have the same name with `-slow`, `-retries` and `-notices`",
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
    "PEM roots that the Temporal server's certificate is checked against",
    text
  ),
  temporalTlsCertFile: optional("TEMPORAL_TLS_CERT_FILE", "none", "PEM client certificate for mutual TLS", text),
  temporalTlsKeyFile: optional("TEMPORAL_TLS_KEY_FILE", "none", "PEM private key that belongs to `TEMPORAL_TLS_CERT_FILE`", text),
  temporalTlsServerName: optional(
    "TEMPORAL_TLS_SERVER_NAME",
    "host of `TEMPORAL_ADDRESS`",
    "name that the Temporal server's certificate must carry",
    text
  ),
  temporalUiUrl: setting(
    "TEMPORAL_UI_URL",
    "http://127.0.0.1:8233",
    "address of the Temporal UI, printed and linked",
    url("http", "https")
  ),
  masterKey: secret(
    "MASTER_KEY",
    "generated into `DATA_DIR` with embedded Postgres, required otherwise",
    "32 bytes in base64: encrypts webhook secrets, kept answers and authenticators at rest, seals cursors, signs the portal's cookies",
    masterKey
  ),
  masterKeyPrevious: secret(
    "MASTER_KEY_PREVIOUS",
    "none",
    "the key before `MASTER_KEY`, still read while `custody secrets reencrypt` moves to the new one",
    masterKey
  ),
  portalBaseUrl: optional(
    "PORTAL_BASE_URL",
    "the loopback address that is asked",
    "where people reach the service in a browser, such as https://custody.example.com; without it the web portal answers on loopback only",
    portalOrigin
  ),
  portalOidcIssuer: optional(
    "PORTAL_OIDC_ISSUER",
    "none: passwords and passkeys only",
    "issuer of the identity provider that people may sign in to the web portal with; its redirect URI is `PORTAL_BASE_URL` + `/portal/api/auth/callback/oidc`",
    url("https", "http")
  ),
  portalOidcClientId: optional("PORTAL_OIDC_CLIENT_ID", "none", "client id at `PORTAL_OIDC_ISSUER`", text),
  portalOidcClientSecret: secret("PORTAL_OIDC_CLIENT_SECRET", "none", "client secret at `PORTAL_OIDC_ISSUER`", text),
  trustedProxies: setting("TRUSTED_PROXIES", "", "CIDRs of proxies whose `X-Forwarded-For` is believed", Format.cidrs, "none"),
  rateLimit: setting(
    "RATE_LIMIT",
    "50/1s burst 100",
    "requests per key; `off` for benchmarks (then the limits on failed authentications, on sign-ins to the portal and on pings are off too)",
    Format.rate
  ),
  webhookRetrySchedule: setting(
    "WEBHOOK_RETRY_SCHEDULE",
    "0s,5s,5m,30m,2h,5h,10h,14h,20h,24h",
    "wait before each attempt, comma-separated",
    schedule
  ),
  webhookRotationGrace: setting("WEBHOOK_ROTATION_GRACE", "24h", "how long a rotated secret still signs along", Format.duration),
  webhookDisableAfter: setting(
    "WEBHOOK_DISABLE_AFTER",
    "120h",
    "time without a 2xx after which a failing webhook is disabled",
    Format.duration
  ),
  webhookAllowCidrs: setting("WEBHOOK_ALLOW_CIDRS", "", "private ranges that deliveries may reach", Format.cidrs, "none"),
  webhookAllowPorts: setting(
    "WEBHOOK_ALLOW_PORTS",
    "",
    "ports of webhook URLs beside 443 and 8443",
    (value) => Format.list(value, Format.integer(1, 65_535)),
    "none"
  ),
  webhookExtraCa: optional(
    "WEBHOOK_EXTRA_CA",
    "none",
    "PEM file of roots trusted for deliveries in addition to the built-in ones (Mozilla's)",
    text
  ),
  webhookDnsServers: setting(
    "WEBHOOK_DNS_SERVERS",
    "",
    "resolvers for deliveries, comma-separated",
    (value) => Format.list(value, resolver),
    "the system's"
  ),
  smtpUrl: secret(
    "SMTP_URL",
    "none: notices are logged and kept in the `notices` table",
    "where operational e-mail goes, smtp:// or smtps://",
    url("smtp", "smtps")
  ),
  noticeFrom: setting("NOTICE_FROM", "webhooks@localhost", "sender of operational e-mail", text),
  otlpEndpoint: optional("OTEL_EXPORTER_OTLP_ENDPOINT", "off", "where traces, metrics and logs go (OTLP over HTTP)", url("http", "https")),
  logFormat: optional("LOG_FORMAT", "pretty on a terminal, json otherwise", "`pretty` or `json`", oneOf("pretty", "json")),
  logLevel: setting("LOG_LEVEL", "info", "`debug`, `info`, `warning` or `error`", oneOf("debug", "info", "warning", "error"))
} as const

type Value<S> = S extends Setting<infer A> ? A : never

/** The values that the program runs with, by the keys of {@link table}. */
export type Values = { readonly [K in keyof typeof table]: Value<(typeof table)[K]> }
