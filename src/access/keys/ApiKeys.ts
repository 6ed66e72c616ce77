/**
 * API keys: create, list, edit, revoke. A key is bound to the user who creates it; its vault allowlist contains only
 * vaults on which that user has the Developer role. The secret is returned by `create` and never again. Spec:
 * Authentication 2 to 10. Decision D-10.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Data, Duration, Effect, Either, Redacted, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql, transaction } from "../../runtime/database/sql.ts"
import * as Format from "../../runtime/settings/Format.ts"
import { isStorable } from "../../values/givenId.ts"
import * as Id from "../../values/Id.ts"
import * as Timestamp from "../../values/Timestamp.ts"
import { type Action, type Actor, changed, OPERATOR, record } from "../audit/AuditTrail.ts"
import { stepsPassed } from "../credentials/expirySteps.ts"
import * as Secret from "../credentials/keySecret.ts"
import { type Scope, scopes } from "../credentials/Principal.ts"
import { revokeKeys } from "./revokeKeys.ts"

/** Default validity of a key. Spec: Limits. */
export const DEFAULT_EXPIRY = Duration.days(365)

/** Most vaults and address ranges that a key can name. */
const MAX_VAULTS = 1_000,
  MAX_RANGES = 100

/** A listed key; it does not contain the secret. */
export const ApiKey = Schema.Struct({
  id: Schema.String,
  userId: Schema.String,
  label: Schema.String,
  /** First and last characters of its secret. */
  hint: Schema.String,
  scopes: Schema.Array(Schema.String),
  /** null allows every vault on which the user has the Developer role. */
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)),
  /** Canonical CIDRs; empty means no restriction. */
  ipAllowlist: Schema.Array(Schema.String),
  /** null means that it does not expire. */
  expiresAt: Schema.NullOr(Schema.String),
  createdAt: Schema.String,
  lastUsedAt: Schema.NullOr(Schema.String),
  /** Address of the client that used it last; null if unused or unknown. */
  lastUsedAddress: Schema.NullOr(Schema.String),
  revokedAt: Schema.NullOr(Schema.String),
  revokedReason: Schema.NullOr(Schema.String)
})
export type ApiKey = typeof ApiKey.Type

const decode = decodeRows(ApiKey),
  decodeIds = decodeRows(Schema.Struct({ id: Schema.String })),
  decodeStatuses = decodeRows(Schema.Struct({ status: Schema.String })),
  decodeOrganizations = decodeRows(Schema.Struct({ organizationId: Schema.String }))

/** The properties of a key that are chosen at creation and can be edited. Spec: Authentication 3, 9. */
export interface Choice {
  readonly scopes: ReadonlyArray<string>
  readonly vaultIds: ReadonlyArray<string> | null
  readonly ipAllowlist: ReadonlyArray<string>
  readonly expiresAt: string | null
  readonly label: string
}

/** An invalid property: which one, and why. */
export class InvalidKey extends Data.TaggedError("InvalidKey")<{ readonly field: string; readonly message: string }> {}

/** An edit that would give a key more access where that is not allowed. */
export class WidensKey extends Data.TaggedError("WidensKey")<{ readonly id: string }> {}

/** The user or key does not exist. */
export class UnknownKey extends Data.TaggedError("UnknownKey")<{ readonly message: string }> {}

/** `90d`, an ISO date-time, or `never`, as the time at which a key expires. */
export const expiry = (text: string, now: number): Format.Read<string | null> => {
  if (text.trim() === "never") return Either.right(null)
  const span = Format.duration(text)
  if (Either.isRight(span)) return Either.right(new Date(now + Duration.toMillis(span.right)).toISOString())
  const at = Timestamp.parse(text.trim()) ?? Timestamp.parse(`${text.trim()}T00:00:00Z`)
  return at === undefined ? Either.left("a duration such as 90d, an ISO date-time, or never") : Either.right(at)
}

/** Whether an edit gives a key more access: a scope, a vault, an address or a later expiry. */
const widens = (key: ApiKey, change: Partial<Choice>): boolean => {
  const { expiresAt, ipAllowlist, scopes, vaultIds } = { ...key, ...change }
  const beyond = (wanted: ReadonlyArray<string>, had: ReadonlyArray<string>) => wanted.some((one) => !had.includes(one))
  return (
    beyond(scopes, key.scopes) ||
    (key.vaultIds !== null && (vaultIds === null || beyond(vaultIds, key.vaultIds))) ||
    (key.ipAllowlist.length > 0 && (ipAllowlist.length === 0 || beyond(ipAllowlist, key.ipAllowlist))) ||
    (key.expiresAt !== null && (expiresAt === null || Date.parse(expiresAt) > Date.parse(key.expiresAt)))
  )
}

const isScope = (text: string): text is Scope => scopes.some((scope) => scope === text)

const columns = `k.id, k.user_id AS "userId", k.label, k.hint, k.scopes, k.vault_ids AS "vaultIds", k.ip_allowlist AS "ipAllowlist",
  k.expires_at AS "expiresAt", k.created_at AS "createdAt", k.last_used_at AS "lastUsedAt",
  k.last_used_address AS "lastUsedAddress", k.revoked_at AS "revokedAt",
  k.revoked_reason AS "revokedReason"`

export class ApiKeys extends Effect.Service<ApiKeys>()("custody/ApiKeys", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** The properties in their stored form, or what is wrong with them. */
    const checked = Effect.fnUntraced(function* (userId: string, choice: Partial<Choice>) {
      const refuse = (field: string, message: string) => new InvalidKey({ field, message })
      if (choice.scopes !== undefined) {
        const unknown = choice.scopes.find((scope) => !isScope(scope))
        if (unknown !== undefined) return yield* refuse("scopes", `“${unknown}” is not a scope; the scopes are ${scopes.join(", ")}.`)
        if (choice.scopes.length === 0) return yield* refuse("scopes", "A key needs at least one scope.")
      }
      if (choice.label !== undefined && (choice.label.length > 200 || /\p{Cc}/u.test(choice.label))) {
        return yield* refuse("label", "A label must have at most 200 characters and no control characters.")
      }
      if ((choice.ipAllowlist ?? []).length > MAX_RANGES) return yield* refuse("ipAllowlist", `A key has at most ${MAX_RANGES} ranges.`)
      const ranges = (choice.ipAllowlist ?? []).map((text) =>
        Either.mapLeft(Format.cidr(text), (expected) => `“${text}” is not ${expected}.`)
      )
      for (const range of ranges) if (Either.isLeft(range)) return yield* refuse("ipAllowlist", range.left)
      if (choice.vaultIds !== undefined && choice.vaultIds !== null) {
        if (choice.vaultIds.length === 0) return yield* refuse("vaultIds", "Name at least one vault, or allow all of them.")
        if (choice.vaultIds.length > MAX_VAULTS)
          return yield* refuse("vaultIds", `Name at most ${MAX_VAULTS} vaults, or allow all of them.`)
        const rows = yield* Effect.orDie(
          decodeIds(sql`
            SELECT r.vault_id AS id FROM vault_roles r WHERE r.user_id = ${userId} AND r.vault_id = ANY(${choice.vaultIds.filter(isStorable)})`)
        )
        const reached = new Set(rows.map(({ id }) => id))
        const foreign = choice.vaultIds.find((id) => !reached.has(id))
        if (foreign !== undefined) return yield* refuse("vaultIds", `The user has no Developer role on ${foreign}.`)
      }
      return {
        ...choice,
        ...(choice.scopes === undefined ? {} : { scopes: scopes.filter((scope) => choice.scopes?.includes(scope)) }),
        ...(choice.vaultIds === undefined ? {} : { vaultIds: choice.vaultIds === null ? null : [...new Set(choice.vaultIds)] }),
        ...(choice.ipAllowlist === undefined
          ? {}
          : {
              ipAllowlist: [...new Set(ranges.flatMap((range) => (Either.isRight(range) ? [range.right.text] : [])))]
            })
      }
    })

    /** A change of a key, for the audit log; `before` is absent for a new key. */
    const audit = (actor: Actor, action: Action, before: ApiKey | undefined, after: ApiKey) =>
      Effect.flatMap(decodeOrganizations(sql`SELECT organization_id AS "organizationId" FROM users WHERE id = ${after.userId}`), (rows) =>
        record(
          sql,
          rows.map(({ organizationId }) => ({
            organizationId,
            actor,
            action,
            target: { type: "api_key", id: after.id },
            changes: changed(["userId", "label", "scopes", "vaultIds", "ipAllowlist", "expiresAt"], before, after)
          }))
        )
      )

    const find = (id: string) => Effect.orDie(decode(sql`SELECT ${sql.literal(columns)} FROM api_keys k WHERE k.id = ${id}`))

    return {
      /** Fails if the properties are invalid, without changing anything. */
      check: (userId: string, choice: Partial<Choice>) => Effect.asVoid(checked(userId, choice)),

      /**
       * Creates a key for the user and returns its secret, only this once. Fails if the user is unknown or deactivated. `allowed` is
       * checked in the transaction.
       */
      create: Effect.fn("ApiKeys.create")(
        function* (userId: string, choice: Choice, actor: Actor = OPERATOR, allowed: Effect.Effect<void> = Effect.void) {
          // The user's row and its organization's are locked until the key is committed: a concurrent deactivation or
          // deletion then finds the key and revokes it.
          const users = yield* decodeStatuses(sql`
            SELECT CASE WHEN o.deleting_at IS NULL THEN u.status ELSE 'deactivated' END AS status
            FROM users u JOIN organizations o ON o.id = u.organization_id WHERE u.id = ${userId} FOR SHARE`)
          if (users[0] === undefined) return yield* new UnknownKey({ message: `There is no user ${userId}.` })
          if (users[0].status !== "active") return yield* new InvalidKey({ field: "user", message: `The user ${userId} is deactivated.` })
          yield* allowed
          const stored = yield* checked(userId, choice)
          const secret = Secret.make(),
            id = Id.make("key")
          yield* sql`
          INSERT INTO api_keys (id, user_id, label, hint, secret_hash, scopes, vault_ids, ip_allowlist, expires_at, created_at, expiry_announced)
          VALUES (${id}, ${userId}, ${stored.label ?? choice.label}, ${Secret.hint(Redacted.value(secret))}, ${Secret.hash(Redacted.value(secret))}, ${stored.scopes ?? choice.scopes}::text[],
            ${stored.vaultIds ?? null}::text[], ${stored.ipAllowlist ?? []}::text[], ${choice.expiresAt}::timestamptz, now(),
            ${stepsPassed(sql, sql`${choice.expiresAt}::timestamptz(3)`)})`
          const [key] = yield* find(id)
          if (key === undefined) return yield* Effect.die(new Error("a key that was just created is missing"))
          yield* audit(actor, "api_key.created", undefined, key)
          return { key, secret }
        },
        transaction(sql),
        dieOnSql
      ),

      /** Keys, newest first; optionally of one user. */
      list: (userId?: string): Effect.Effect<ReadonlyArray<ApiKey>> =>
        Effect.orDie(
          decode(sql`
            SELECT ${sql.literal(columns)} FROM api_keys k WHERE ${userId === undefined ? sql`true` : sql`k.user_id = ${userId}`}
            ORDER BY k.created_at DESC, k.id DESC`)
        ),

      /** Whether the key belongs to a user of the organization. */
      isOfOrganization: (organizationId: string, id: string): Effect.Effect<boolean> =>
        Effect.map(
          Effect.orDie(sql`
            SELECT 1 FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.id = ${id} AND u.organization_id = ${organizationId}`),
          (rows) => rows.length > 0
        ),

      /** A key of the user; undefined if the id is unknown or the key is somebody else's. */
      ofUser: (userId: string, id: string): Effect.Effect<ApiKey | undefined> =>
        Effect.map(find(id), ([key]) => (key?.userId === userId ? key : undefined)),

      /** The key of a secret, whatever its state; undefined if there is none. */
      bySecret: (secret: Redacted.Redacted): Effect.Effect<ApiKey | undefined> =>
        Effect.map(
          Effect.orDie(
            decode(sql`SELECT ${sql.literal(columns)} FROM api_keys k WHERE k.secret_hash = ${Secret.hash(Redacted.value(secret))}`)
          ),
          ([key]) => key
        ),

      /**
       * Changes the given properties and keeps the others, including concurrent edits. A revoked key cannot be edited.
       * With `mayWiden` false, an edit that gives the key more access than it has at that moment is rejected.
       */
      update: Effect.fn("ApiKeys.update")(
        function* (id: string, change: Partial<Choice>, { mayWiden }: { readonly mayWiden: boolean }, actor: Actor = OPERATOR) {
          yield* sql`SELECT 1 FROM api_keys WHERE id = ${id} FOR UPDATE`
          const [known] = yield* find(id)
          if (known === undefined) return yield* new UnknownKey({ message: `There is no key ${id}.` })
          if (known.revokedAt !== null)
            return yield* new InvalidKey({ field: "id", message: `The key ${id} was revoked and cannot be edited.` })
          const stored = { ...known, ...(yield* checked(known.userId, change)) }
          if (!mayWiden && widens(known, stored)) return yield* new WidensKey({ id })
          yield* sql`
          UPDATE api_keys SET label = ${stored.label}, scopes = ${stored.scopes}::text[], vault_ids = ${stored.vaultIds}::text[],
            ip_allowlist = ${stored.ipAllowlist}::text[], expires_at = ${stored.expiresAt}::timestamptz,
            expiry_announced = CASE WHEN expires_at IS NOT DISTINCT FROM ${stored.expiresAt}::timestamptz(3) THEN expiry_announced
              ELSE ${stepsPassed(sql, sql`${stored.expiresAt}::timestamptz(3)`)} END WHERE id = ${id}`
          const [key = known] = yield* find(id)
          yield* audit(actor, "api_key.updated", known, key)
          return key
        },
        transaction(sql),
        dieOnSql
      ),

      /** Revokes a key. Every request that begins after this returned is rejected. Revoking twice is harmless. */
      revoke: Effect.fn("ApiKeys.revoke")(
        function* (id: string, actor: Actor = OPERATOR) {
          const ended = yield* revokeKeys(sql, sql`k.id = ${id}`)
          const [key] = yield* find(id)
          if (key === undefined) return yield* new UnknownKey({ message: `There is no key ${id}.` })
          if (ended.length > 0) yield* audit(actor, "api_key.revoked", key, key)
          return key
        },
        transaction(sql),
        dieOnSql
      )
    }
  })
}) {
  static readonly layer = this.Default
}
