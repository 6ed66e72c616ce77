/** The program's settings as a service: read once at startup, all errors reported together, secrets hidden. */
import { Config, type ConfigError, Context, Data, Duration, Effect, Either, Layer, Option } from "effect"
import * as Format from "./Format.ts"
import type { Setting } from "./readers.ts"
import { table, type Values } from "./table.ts"

/** The program's settings, read once at startup. Only the composition root reads the environment. */
export class Settings extends Context.Tag("custody/Settings")<Settings, Values>() {
  /** Reads the environment. Fails with {@link InvalidSettings}, which has all errors. */
  static readonly layer = Layer.effect(
    this,
    Effect.suspend(() => read)
  )
}

/** One or more settings are missing or invalid; `message` says which, what was read and what is expected. */
export class InvalidSettings extends Data.TaggedError("InvalidSettings")<{ readonly faults: ReadonlyArray<string> }> {
  override get message() {
    return this.faults.join("\n")
  }
}

const isSetting = (value: unknown): value is Setting<unknown> => typeof value === "object" && value !== null && "read" in value

/** The text of a setting in the environment; empty text counts as unset. */
const givenTo = (one: Setting<unknown>) =>
  Effect.map(Config.option(Config.string(one.name)), (given) => Option.filter(given, (_) => _.trim() !== ""))

/** A text with URLs, without their users and passwords. */
const withoutCredentials = (text: string): string => text.replace(/:\/\/.*@/s, "://***@")

const readOne = (one: Setting<unknown>) =>
  Effect.gen(function* () {
    const raw = Option.getOrElse(yield* givenTo(one), () => one.fallback)
    if (raw === null) return Either.right(undefined)
    return Either.mapLeft(one.read(raw), (expected) => {
      const found = one.secret ? `a value of ${raw.length} characters` : `“${withoutCredentials(raw)}”`
      // It may quote an item of a list.
      return `${one.name}: read ${found}, expected ${expected.replace(/“.*”/s, withoutCredentials)}.`
    })
  })

/** A setting as found: its effective text, or what is wrong with it. */
export interface Inspected {
  readonly name: string
  /** The text that was read, or the default as in the table; hidden if it is a secret, undefined if it is invalid. */
  readonly value: string | undefined
  readonly fault: string | undefined
  /** Whether the environment sets it. */
  readonly given: boolean
}

/** Every setting, valid or not, and the values if all of them are valid. Never fails because of a setting. */
export const inspect = Effect.gen(function* () {
  const entries: Array<readonly [string, unknown]> = []
  const inspected: Array<Inspected> = []
  for (const [key, one] of Object.entries(table)) {
    if (!isSetting(one)) continue
    const value = yield* readOne(one)
    const given = Option.isSome(yield* givenTo(one))
    if (Either.isLeft(value)) inspected.push({ name: one.name, value: undefined, fault: value.left, given })
    else {
      entries.push([key, value.right])
      inspected.push({ name: one.name, value: given ? shown(one, value.right) : fallbackOf(one), fault: undefined, given })
    }
  }
  const faults = inspected.flatMap(({ fault }) => fault ?? [])
  if (faults.length > 0) return { inspected, faults, values: undefined }
  // The table's readers give each key its type; Object.entries loses it.
  const values = Object.fromEntries(entries) as Values
  const pairs = pairFaults(values)
  return { inspected, faults: pairs, values: pairs.length > 0 ? undefined : values }
})

const read: Effect.Effect<Values, InvalidSettings | ConfigError.ConfigError> = Effect.flatMap(inspect, ({ faults, values }) =>
  values === undefined ? Effect.fail(new InvalidSettings({ faults })) : Effect.succeed(values)
)

/** Errors in combinations of settings. */
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
  both(["WEBHOOK_CLIENT_CERT_FILE", values.webhookClientCertFile], ["WEBHOOK_CLIENT_KEY_FILE", values.webhookClientKeyFile])
  return faults
}

/** Whether API keys would be sent in clear text: the address is not on loopback, and no known component terminates TLS. */
export const isClearText = ({ host, tlsCertFile, trustedProxies }: Values): boolean =>
  !/^(127\.|::1$|localhost$)/.test(host) && tlsCertFile === undefined && trustedProxies.length === 0

/** The default of a setting, for display. */
export const fallbackOf = ({ fallback, shown }: Setting<unknown>): string => shown ?? (fallback === "" ? "none" : (fallback ?? "none"))

const shown = (one: Setting<unknown>, value: unknown): string => (one.secret ? "set (hidden)" : withoutCredentials(render(value)))

const render = (value: unknown): string => {
  if (value === null) return "off"
  if (Duration.isDuration(value)) return Format.showDuration(value)
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(render).join(",")
  if (typeof value === "object" && "text" in value) return String(value.text)
  if (typeof value === "object" && "tokens" in value && "period" in value && "burst" in value && Duration.isDuration(value.period))
    return `${value.tokens}/${Format.showDuration(value.period)} burst ${value.burst}`
  return String(value)
}
