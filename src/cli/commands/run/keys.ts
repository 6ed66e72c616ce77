/** Implementation of `custody keys`. */
import { Console, Duration, Effect, Either, Option, Redacted } from "effect"
import { type ApiKey, ApiKeys, DEFAULT_EXPIRY, expiry } from "../../../access/keys/ApiKeys.ts"
import { commandDatabase } from "../../../app/Base.ts"
import { Usage } from "../exit.ts"
import { printOnce } from "./print.ts"

/** The given options of a key. */
interface Given {
  readonly scopes: Option.Option<ReadonlyArray<string>>
  readonly vaults: Option.Option<ReadonlyArray<string>>
  readonly allVaults: boolean
  readonly ips: Option.Option<ReadonlyArray<string>>
  readonly expires: Option.Option<string>
  readonly label: Option.Option<string>
}

const json = (value: unknown) => Console.log(JSON.stringify(value, null, 2))

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
                  message: `--expires: read “${text}”, which is in the past. To revoke a key now, use \`custody keys revoke\`.`
                })
              )
            : Effect.succeed(value)
      })
  })

/** The ranges of `--ips`; an empty list would remove the restriction, which has its own flag. */
const ranges = (given: Option.Option<ReadonlyArray<string>>) =>
  Option.isSome(given) && given.value.length === 0
    ? Effect.fail(new Usage({ message: "--ips is empty. Omit it, or remove the restriction with --no-ips." }))
    : Effect.succeed(Option.getOrUndefined(given))

/** The vaults from the flags: null for all, undefined if neither flag is given. */
const vaultIds = (named: Option.Option<ReadonlyArray<string>>, all: boolean) =>
  all && Option.isSome(named)
    ? Effect.fail(new Usage({ message: "Give either --vaults or --all-vaults, not both." }))
    : Effect.succeed(all ? null : Option.getOrUndefined(named))

const withKeys = <A, E, R>(use: (keys: ApiKeys) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(ApiKeys, use).pipe(Effect.provide(ApiKeys.layer), Effect.provide(commandDatabase), Effect.scoped)

/** A key as `create` prints it: unused and unrevoked. */
const fresh = ({ hint: _hint, lastUsedAddress: _address, lastUsedAt: _used, revokedAt: _at, revokedReason: _why, ...key }: ApiKey) => key

/** Creates a key of the user and prints it with its secret. */
export const create = (userId: string, given: Given) =>
  withKeys((keys) =>
    Effect.gen(function* () {
      const chosen = yield* vaultIds(given.vaults, given.allVaults)
      if (chosen === undefined) return yield* new Usage({ message: "Give a vault allowlist: --vaults id,id or --all-vaults." })
      if (Option.isNone(given.scopes)) return yield* new Usage({ message: "Give at least one scope: --scopes vault:read,webhook:read." })
      const until = yield* expiresAt(given.expires)
      const { key, secret } = yield* keys.create(userId, {
        scopes: given.scopes.value,
        vaultIds: chosen,
        ipAllowlist: (yield* ranges(given.ips)) ?? [],
        expiresAt: until === undefined ? new Date(Date.now() + Duration.toMillis(DEFAULT_EXPIRY)).toISOString() : until,
        label: Option.getOrElse(given.label, () => "")
      })
      const { id, ...rest } = fresh(key)
      yield* printOnce({ id, secret: Redacted.value(secret), ...rest }, `Revoke the key, whose secret is lost: custody keys revoke ${id}`)
    })
  )

/** Prints the keys of a user, or of all. */
export const list = (userId: string | undefined) => withKeys((keys) => Effect.flatMap(keys.list(userId), json))

/** Edits a key and prints it; omitted options stay unchanged. */
export const update = (id: string, given: Given & { readonly noIps: boolean }) =>
  withKeys((keys) =>
    Effect.gen(function* () {
      const chosen = yield* vaultIds(given.vaults, given.allVaults)
      const until = yield* expiresAt(given.expires)
      if (given.noIps && Option.isSome(given.ips)) return yield* new Usage({ message: "Give either --ips or --no-ips, not both." })
      const allowed = given.noIps ? [] : yield* ranges(given.ips)
      yield* Effect.flatMap(
        keys.update(
          id,
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

/** Revokes a key and prints it. */
export const revoke = (id: string) => withKeys((keys) => Effect.flatMap(keys.revoke(id), json))
