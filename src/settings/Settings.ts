/**
 * Every setting of the program, in one table: its name, its default, what it means and how its text
 * is read. The program, `custody doctor`, the README's table and the compose test all read this table,
 * so none of them can promise a setting that the others do not know.
 *
 * A setting that is missing or does not fit stops the start with one message per setting that names it,
 * what was read and what is expected. Secrets are never echoed.
 */
import { Config, type ConfigError, Context, Data, Duration, Effect, Either, Layer, Option, Redacted } from "effect"
import * as Format from "./Format.ts"

interface Setting<A> {
  readonly name: string
  /** The text read when the variable is absent; null when absent means "not set". */
  readonly fallback: string | null
  /** What the table shows as default where the fallback's text would not explain itself. */
  readonly shown?: string
  readonly meaning: string
  readonly secret: boolean
  readonly read: (text: string) => Format.Read<A>
}

const setting = <A>(
  name: string,
  fallback: string,
  meaning: string,
  read: (text: string) => Format.Read<A>,
  shown?: string
): Setting<A> => ({ name, fallback, meaning, read, secret: false, ...(shown === undefined ? {} : { shown }) })

const optional = <A>(name: string, shown: string, meaning: string, read: (text: string) => Format.Read<A>): Setting<A | undefined> => ({
  name,
  fallback: null,
  shown,
  meaning,
  read,
  secret: false
})

const secret = <A>(
  name: string,
  shown: string,
  meaning: string,
  read: (text: string) => Format.Read<A>
): Setting<Redacted.Redacted<A> | undefined> => ({
  name,
  fallback: null,
  shown,
  meaning,
  secret: true,
  read: (text) => Either.map(read(text), (value) => Redacted.make(value))
})

const text = (value: string): Format.Read<string> => (value.trim() === "" ? Either.left("some text") : Either.right(value.trim()))

const port = Format.integer(0, 65_535)

const url =
  (...schemes: ReadonlyArray<string>) =>
  (value: string): Format.Read<string> =>
    URL.canParse(value) && schemes.includes(new URL(value).protocol.replace(":", ""))
      ? Either.right(value)
      : Either.left(`a URL that starts with ${schemes.map((_) => `${_}://`).join(" or ")}`)

const masterKey = (value: string): Format.Read<Buffer> => {
  const bytes = Buffer.from(value, "base64")
  return bytes.length === 32 && /^[A-Za-z0-9+/_=-]+$/.test(value)
    ? Either.right(bytes)
    : Either.left("32 bytes in base64, as `openssl rand -base64 32` prints them")
}

const oneOf =
  <const A extends string>(...allowed: ReadonlyArray<A>) =>
  (value: string): Format.Read<A> => {
    const found = allowed.find((_) => _ === value.trim())
    return found === undefined ? Either.left(`one of ${allowed.join(", ")}`) : Either.right(found)
  }

const hostPort = (value: string): Format.Read<string> =>
  /^[^\s:/]+:\d{1,5}$|^\[[0-9a-f:]+\]:\d{1,5}$/i.test(value.trim()) ? Either.right(value.trim()) : Either.left("host:port")

const resolver = (value: string): Format.Read<string> => {
  const [, host = value] = /^\[?([^\]]+?)\]?(?::\d{1,5})?$/.exec(value) ?? []
  return Format.address(host) === undefined && Format.address(value) === undefined
    ? Either.left("the address of a resolver, such as 10.0.0.2 or 10.0.0.2:5353")
    : Either.right(value)
}

const schedule = (value: string): Format.Read<ReadonlyArray<Duration.Duration>> =>
  Either.filterOrLeft(
    Format.list(value, Format.duration),
    (waits) => waits.length >= 1 && waits.length <= 50,
    () => "1 to 50 comma-separated waits, such as 0s,1s,2s"
  )

/** An origin that a browser keeps cookies safe at: https, or http on loopback. */
const portalOrigin = (value: string): Format.Read<string> => {
  const parsed = URL.canParse(value.trim()) ? new URL(value.trim()) : undefined
  const fits =
    parsed !== undefined &&
    parsed.href === `${parsed.origin}/` &&
    (parsed.protocol === "https:" || (parsed.protocol === "http:" && isLoopback(parsed.hostname)))
  return fits ? Either.right(parsed.origin) : Either.left("an https URL without a path, such as https://custody.example.com")
}

/** Whether a host name of a URL is this machine's own. */
export const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

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
    "generated into `DATA_DIR`",
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
    "task queue of first attempts; retries use the same name with `-retries`",
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
    "32 bytes in base64: encrypts webhook secrets at rest and seals cursors",
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
    "requests per key; `off` for benchmarks (then the limits on failed authentications and on pings are off too)",
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
  webhookExtraCa: optional("WEBHOOK_EXTRA_CA", "none", "PEM file of roots trusted for deliveries in addition to the system's", text),
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
  otlpEndpoint: optional("OTEL_EXPORTER_OTLP_ENDPOINT", "off", "where traces and metrics go (OTLP over HTTP)", url("http", "https")),
  logFormat: optional("LOG_FORMAT", "pretty on a terminal, json otherwise", "`pretty` or `json`", oneOf("pretty", "json")),
  logLevel: setting("LOG_LEVEL", "info", "`debug`, `info`, `warning` or `error`", oneOf("debug", "info", "warning", "error"))
} as const

type Value<S> = S extends Setting<infer A> ? A : never

/** The values that the program runs with, by the keys of {@link table}. */
export type Values = { readonly [K in keyof typeof table]: Value<(typeof table)[K]> }

/** The program's settings, read once at the start. Only the composition root reads the environment. */
export class Settings extends Context.Tag("custody/Settings")<Settings, Values>() {
  /** Reads the environment. Fails with {@link InvalidSettings}, all faults at once. */
  static readonly layer = Layer.effect(
    this,
    Effect.suspend(() => read)
  )
}

/** One or more settings are missing or do not fit; `message` says which, what was read and what is expected. */
export class InvalidSettings extends Data.TaggedError("InvalidSettings")<{ readonly faults: ReadonlyArray<string> }> {
  override get message() {
    return this.faults.join("\n")
  }
}

const isSetting = (value: unknown): value is Setting<unknown> => typeof value === "object" && value !== null && "read" in value

const readOne = (one: Setting<unknown>) =>
  Effect.gen(function* () {
    const given = yield* Config.option(Config.string(one.name))
    const raw = Option.getOrElse(
      Option.filter(given, (_) => _.trim() !== ""),
      () => one.fallback
    )
    if (raw === null) return Either.right(undefined)
    return Either.mapLeft(
      one.read(raw),
      (expected) => `${one.name}: read ${one.secret ? `a value of ${raw.length} characters` : `“${raw}”`}, expected ${expected}.`
    )
  })

const read: Effect.Effect<Values, InvalidSettings | ConfigError.ConfigError> = Effect.gen(function* () {
  const entries: Array<readonly [string, unknown]> = []
  const faults: Array<string> = []
  for (const [key, one] of Object.entries(table)) {
    if (!isSetting(one)) continue
    const value = yield* readOne(one)
    if (Either.isLeft(value)) faults.push(value.left)
    else entries.push([key, value.right])
  }
  if (faults.length > 0) return yield* Effect.fail(new InvalidSettings({ faults }))
  // The table's readers give each key its type; Object.entries forgets it.
  const values = Object.fromEntries(entries) as Values
  const pairs = pairFaults(values)
  return pairs.length > 0 ? yield* Effect.fail(new InvalidSettings({ faults: pairs })) : values
})

/** Faults of settings that only make sense together. */
const pairFaults = (values: Values): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const both = (a: [string, unknown], b: [string, unknown]) => {
    if ((a[1] === undefined) !== (b[1] === undefined)) {
      const [set, missing] = a[1] === undefined ? [b[0], a[0]] : [a[0], b[0]]
      faults.push(`${missing}: not set, expected a value because ${set} is set.`)
    }
  }
  both(["TLS_CERT_FILE", values.tlsCertFile], ["TLS_KEY_FILE", values.tlsKeyFile])
  both(["PORTAL_OIDC_ISSUER", values.portalOidcIssuer], ["PORTAL_OIDC_CLIENT_ID", values.portalOidcClientId])
  both(["PORTAL_OIDC_ISSUER", values.portalOidcIssuer], ["PORTAL_OIDC_CLIENT_SECRET", values.portalOidcClientSecret])
  if (values.portalOidcIssuer !== undefined && values.portalBaseUrl === undefined) {
    faults.push("PORTAL_BASE_URL: not set, expected a value because PORTAL_OIDC_ISSUER is set.")
  }
  both(["TEMPORAL_TLS_CERT_FILE", values.temporalTlsCertFile], ["TEMPORAL_TLS_KEY_FILE", values.temporalTlsKeyFile])
  return faults
}

/** How the program shows its settings: name, effective text, default, meaning; secrets hidden. */
export const show = (values: Values) =>
  Object.entries(table).map(([key, one]) => {
    const value = values[key as keyof Values]
    return {
      name: one.name,
      value: value === undefined ? "not set" : one.secret ? "set (hidden)" : render(value),
      fallback: one.shown ?? (one.fallback === "" ? "none" : (one.fallback ?? "none")),
      meaning: one.meaning
    }
  })

const render = (value: unknown): string => {
  if (value === null) return "off"
  if (Duration.isDuration(value)) return Format.showDuration(value)
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(render).join(",")
  if (typeof value === "object" && "text" in value) return String(value.text)
  if (typeof value === "object" && "burst" in value) {
    const { burst, period, tokens } = value as Format.Rate
    return `${tokens}/${Format.showDuration(period)} burst ${burst}`
  }
  return String(value)
}
