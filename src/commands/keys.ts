/** `custody keys`: API keys from the command line, against the same database as the service. Results are JSON on standard output. */
import { Args, Command, Options } from "@effect/cli"
import { Console, Duration, Effect, Either, Option, Redacted } from "effect"
import { commandDatabase } from "../Base.ts"
import { type ApiKey, ApiKeys, DEFAULT_EXPIRY, expiry } from "../credentials/ApiKeys.ts"
import { Usage } from "./exit.ts"

const json = (value: unknown) => Console.log(JSON.stringify(value, null, 2))
const list = (text: string) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
const commaSeparated = (name: string, description: string) =>
  Options.text(name).pipe(Options.withDescription(description), Options.map(list), Options.optional)

const scopes = commaSeparated("scopes", "vault:read, webhook:read, webhook:manage; comma-separated")
const vaults = commaSeparated("vaults", "vault allowlist, comma-separated; the user needs the Developer role on each vault")
const allVaults = Options.boolean("all-vaults").pipe(
  Options.withDescription("allow every vault on which the user has the Developer role, now and in the future")
)
const ips = commaSeparated("ips", "CIDRs from which the key may be used, comma-separated; unrestricted if omitted")
const expires = Options.text("expires").pipe(
  Options.withDescription("90d, an ISO date-time, or never; new keys expire after 365d by default"),
  Options.optional
)
const label = Options.text("label").pipe(Options.withDescription("label of the key"), Options.optional)
const id = Args.text({ name: "id" }).pipe(Args.withDescription("id of the key, key_…"))

const expiresAt = (given: Option.Option<string>) =>
  Option.match(given, {
    onNone: () => Effect.succeed(undefined),
    onSome: (text) =>
      Either.match(expiry(text, Date.now()), {
        onLeft: (expected) => Effect.fail(new Usage({ message: `--expires: read “${text}”, expected ${expected}.` })),
        onRight: (value) =>
          value !== null && Date.parse(value) <= Date.now()
            ? Effect.fail(
                new Usage({
                  message: `--expires: read “${text}”, which is in the past. To end a key at once, use \`custody keys revoke\`.`
                })
              )
            : Effect.succeed(value)
      })
  })

/** The ranges of `--ips`; naming none would lift the restriction, which has a flag of its own. */
const ranges = (given: Option.Option<ReadonlyArray<string>>) =>
  Option.isSome(given) && given.value.length === 0
    ? Effect.fail(new Usage({ message: "--ips is empty. Omit it, or remove the restriction with --no-ips." }))
    : Effect.succeed(Option.getOrUndefined(given))

/** The vaults of the flags: null for all, undefined for neither. */
const vaultIds = (named: Option.Option<ReadonlyArray<string>>, all: boolean) =>
  all && Option.isSome(named)
    ? Effect.fail(new Usage({ message: "Give either --vaults or --all-vaults, not both." }))
    : Effect.succeed(all ? null : Option.getOrUndefined(named))

const withKeys = <A, E, R>(use: (keys: ApiKeys) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(ApiKeys, use).pipe(Effect.provide(ApiKeys.layer), Effect.provide(commandDatabase), Effect.scoped)

/** A key as `create` prints it: nothing has happened to it yet. */
const fresh = ({ lastUsedAt: _used, revokedAt: _at, revokedReason: _why, ...key }: ApiKey) => key

const create = Command.make(
  "create",
  {
    user: Options.text("user").pipe(Options.withDescription("id of the user who owns the key")),
    scopes,
    vaults,
    allVaults,
    ips,
    expires,
    label
  },
  (given) =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const chosen = yield* vaultIds(given.vaults, given.allVaults)
        if (chosen === undefined) return yield* new Usage({ message: "Give a vault allowlist: --vaults id,id or --all-vaults." })
        if (Option.isNone(given.scopes)) return yield* new Usage({ message: "Give at least one scope: --scopes vault:read,webhook:read." })
        const until = yield* expiresAt(given.expires)
        const { key, secret } = yield* keys.create(given.user, {
          scopes: given.scopes.value,
          vaultIds: chosen,
          ipAllowlist: (yield* ranges(given.ips)) ?? [],
          expiresAt: until === undefined ? new Date(Date.now() + Duration.toMillis(DEFAULT_EXPIRY)).toISOString() : until,
          label: Option.getOrElse(given.label, () => "")
        })
        const { id, ...rest } = fresh(key)
        yield* json({ id, secret: Redacted.value(secret), ...rest })
      })
    )
).pipe(Command.withDescription("Create a key and print its secret, which is shown only once."))

const listed = Command.make(
  "list",
  {
    user: Options.text("user").pipe(Options.withDescription("only this user's keys"), Options.optional)
  },
  ({ user }) => withKeys((keys) => Effect.flatMap(keys.list(Option.getOrUndefined(user)), json))
).pipe(Command.withDescription("List keys, newest first, without secrets."))

const update = Command.make(
  "update",
  {
    id,
    scopes,
    vaults,
    allVaults,
    ips,
    expires,
    label,
    noIps: Options.boolean("no-ips").pipe(Options.withDescription("remove the IP allowlist"))
  },
  (given) =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const chosen = yield* vaultIds(given.vaults, given.allVaults)
        const until = yield* expiresAt(given.expires)
        if (given.noIps && Option.isSome(given.ips)) return yield* new Usage({ message: "Give either --ips or --no-ips, not both." })
        const allowed = given.noIps ? [] : yield* ranges(given.ips)
        yield* Effect.flatMap(
          keys.update(
            given.id,
            {
              ...(Option.isSome(given.scopes) ? { scopes: given.scopes.value } : {}),
              ...(chosen === undefined ? {} : { vaultIds: chosen }),
              ...(allowed === undefined ? {} : { ipAllowlist: allowed }),
              ...(until === undefined ? {} : { expiresAt: until }),
              ...(Option.isSome(given.label) ? { label: given.label.value } : {})
            },
            { mayWiden: true }
          ),
          json
        )
      })
    )
).pipe(Command.withDescription("Edit a key; omitted options stay unchanged."))

const revoke = Command.make("revoke", { id }, ({ id }) => withKeys((keys) => Effect.flatMap(keys.revoke(id), json))).pipe(
  Command.withDescription("Revoke a key immediately.")
)

export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys: create, list, edit and revoke them."),
  Command.withSubcommands([create, listed, update, revoke])
)
