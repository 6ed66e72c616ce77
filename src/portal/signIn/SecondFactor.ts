/**
 * The second factor: an authenticator app (TOTP, RFC 6238) and backup codes. Each code works once: its time step is
 * stored, and codes of that step or earlier ones are rejected, so a code observed at sign-in cannot create a key. Five
 * wrong codes in a row lock the factor for 15 minutes on all routes; every five more double the time, up to a day.
 * Otherwise somebody with the password could try five hundred codes a day.
 *
 * Until the first code, the secret and the backup codes belong to the session that set them up, so that a reload of its page
 * shows them again. The codes are kept encrypted for that time, and the service deletes them with the first code.
 */
import { createHash, randomInt } from "node:crypto"
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import * as OTPAuth from "otpauth"
import { type Action, recordOfUser } from "../../access/audit/AuditTrail.ts"
import { HALFWAY } from "../../access/credentials/AccessChecks.ts"
import { slidingWindows } from "../../access/limits/SlidingWindows.ts"
import { fieldIssue } from "../../http/Body.ts"
import { type Problem, problem } from "../../http/Problem.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import type { SealedColumn } from "../../runtime/crypto/reencryptSecrets.ts"
import { Bytes, decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { noteChange } from "./changeNotice.ts"
import { lockAccount } from "./lockAccount.ts"
import { tooMany } from "./tooMany.ts"
import { keepVerification } from "./verifications.ts"

/** Where authenticator secrets are stored encrypted. */
export const sealedSecondFactors: SealedColumn = {
  purpose: "portal-second-factor",
  table: "portal_second_factors",
  column: "secret",
  key: [["user_id", "text"]],
  context: "user_id"
}

/** Wrong codes in a row that lock the factor. */
const FAILURES = 5
/** Duration of the first lock, and the longest. */
const LOCK_MINUTES = 15,
  LONGEST_LOCK_MINUTES = 24 * 60
/** Confirmations of a user within {@link CONFIRMATIONS_MS}. A passkey of software could confirm any number, each with an e-mail. */
const CONFIRMATIONS = 30,
  CONFIRMATIONS_MS = 900_000
const STEP_SECONDS = 30
/** Accepted time steps before and after now, because clocks differ. */
const WINDOW = 1
const BACKUP_CODES = 10
// Without characters that look alike.
const ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"

const Row = Schema.Struct({
  secret: Bytes,
  verified: Schema.Boolean,
  failures: Schema.Number,
  /** Seconds until codes are accepted again; 0 if they are now. */
  locked: Schema.Number,
  lastStep: Schema.Number
})
const decode = decodeRows(Row),
  decodePending = decodeRows(
    Schema.Struct({ secret: Bytes, hashes: Schema.Array(Bytes), kept: Schema.parseJson(Schema.Tuple(Schema.String, Schema.String)) })
  ),
  decodeLeft = decodeRows(Schema.Struct({ left: Schema.Number }))

/** What confirmed the second factor. A passkey counts as both factors. */
export type FactorUsed = "authenticator" | "backup_code" | "passkey"

/** `locked`: seconds that remain. */
type Outcome = FactorUsed | "wrong" | { readonly locked: number }

const totp = (secret: OTPAuth.Secret, label: string) =>
  new OTPAuth.TOTP({ issuer: "Custody", label, algorithm: "SHA1", digits: 6, period: STEP_SECONDS, secret })

const backupCode = (): string => {
  const letters = Array.from({ length: 15 }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join("")
  return `${letters.slice(0, 5)}-${letters.slice(5, 10)}-${letters.slice(10)}`
}

/** A new authenticator; its secret is returned only here. */
export const Enrolment = Schema.Struct({
  /** For a QR code: otpauth://… */
  uri: Schema.String,
  /** The same secret for manual entry, base32. */
  secret: Schema.String,
  backupCodes: Schema.Array(Schema.String)
})
export type Enrolment = typeof Enrolment.Type

const hashOf = (code: string): Buffer =>
  createHash("sha256")
    .update(code.toLowerCase().replaceAll(/[^a-z0-9]/g, ""))
    .digest()

/** Where the backup codes of an unfinished setup are kept, by its session; rows are encrypted and last as long as the session may. */
const pendingOf = (sessionId: string) => `enrolment/${sessionId}`
const decodeCodes = Schema.decodeSync(Schema.parseJson(Schema.Array(Schema.String)))

/** The session in which an authenticator is set up. */
interface Setup {
  readonly id: string
  readonly userId: string
  readonly email: string
}

const failed = (outcome: Exclude<Outcome, FactorUsed>): Problem<"second_factor_failed" | "rate_limited"> =>
  outcome === "wrong"
    ? problem("second_factor_failed", "The code is not valid or was already used. Wait for the next code.", {
        fields: [fieldIssue("code", "is not valid or was already used; wait for the next code")]
      })
    : tooMany("Too many wrong codes.", outcome.locked)

export class SecondFactor extends Effect.Service<SecondFactor>()("custody/portal/SecondFactor", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { rateLimit } = yield* Settings
    const confirmations = yield* slidingWindows({ name: "confirmation", limit: CONFIRMATIONS, windowMs: CONFIRMATIONS_MS })
    const master = yield* MasterKey

    /** The time step of a code that is valid now; undefined otherwise. */
    const stepOf = (row: typeof Row.Type, userId: string, code: string): number | undefined => {
      const secret = master.open("portal-second-factor", row.secret, userId)
      if (secret === undefined || !/^\d{6}$/.test(code)) return undefined
      const now = Date.now()
      const delta = totp(new OTPAuth.Secret({ buffer: Uint8Array.from(secret).buffer }), "").validate({
        token: code,
        timestamp: now,
        window: WINDOW
      })
      return delta === null ? undefined : Math.floor(now / 1_000 / STEP_SECONDS) + delta
    }

    /** Records the use of the second factor in the audit log, for whoever is signing in or acting. */
    const audit = (userId: string, action: Action) => recordOfUser(sql, userId, { type: "session", id: null, userId }, action)

    /** Accepts a code in one transaction, so that of two requests with the same code one is rejected. */
    const take = (userId: string, given: string, enrolling: boolean): Effect.Effect<Outcome, SqlError.SqlError> =>
      sql.withTransaction(
        Effect.gen(function* () {
          const code = given.replaceAll(/\s/g, "")
          const [row] = yield* decode(sql`
            SELECT secret, verified_at IS NOT NULL AS verified, failures, last_step AS "lastStep",
              coalesce(greatest(0, ceil(extract(epoch FROM locked_until - clock_timestamp()))), 0)::integer AS locked
            FROM portal_second_factors WHERE user_id = ${userId} FOR UPDATE`)
          if (row === undefined || row.verified === enrolling) return "wrong"
          if (row.locked > 0) return { locked: row.locked }
          const step = stepOf(row, userId, code)
          if (step !== undefined && step > row.lastStep) {
            yield* sql`
              UPDATE portal_second_factors SET last_step = ${step}, failures = 0, locked_until = NULL,
                verified_at = coalesce(verified_at, clock_timestamp()) WHERE user_id = ${userId}`
            if (enrolling) {
              yield* sql`DELETE FROM portal_verifications v USING portal_sessions s WHERE s.user_id = ${userId} AND v.identifier = ${pendingOf("")} || s.id`
              yield* audit(userId, "account.second_factor_added")
            }
            return "authenticator"
          }
          if (!enrolling && step === undefined) {
            const spent = yield* sql`
              UPDATE portal_second_factors SET backup_codes = array_remove(backup_codes, ${hashOf(code)}::bytea), failures = 0, locked_until = NULL
              WHERE user_id = ${userId} AND ${hashOf(code)}::bytea = ANY(backup_codes) RETURNING user_id`
            if (spent.length > 0) {
              yield* audit(userId, "account.backup_code_used")
              return "backup_code"
            }
          }
          const failures = row.failures + 1
          const minutes = failures % FAILURES === 0 ? Math.min(LONGEST_LOCK_MINUTES, LOCK_MINUTES * 2 ** (failures / FAILURES - 1)) : 0
          yield* sql`
            UPDATE portal_second_factors SET failures = ${failures}, locked_until = clock_timestamp() + make_interval(mins => ${minutes})
            WHERE user_id = ${userId}`
          yield* audit(userId, "account.second_factor_failed")
          if (minutes > 0) yield* audit(userId, "account.locked")
          return "wrong"
        })
      )

    const enrolment = (secret: OTPAuth.Secret, email: string, backupCodes: ReadonlyArray<string>): Enrolment => ({
      uri: totp(secret, email).toString(),
      secret: secret.base32,
      backupCodes
    })

    /** What this session set up and did not finish; undefined if there is nothing, or another session set up something else. */
    const unfinished = (userId: string, sessionId: string) =>
      Effect.gen(function* () {
        const [row] = yield* decodePending(sql`
          SELECT f.secret, f.backup_codes AS hashes, v.value AS kept FROM portal_second_factors f
          JOIN portal_verifications v ON v.identifier = ${pendingOf(sessionId)} AND v.expires_at > clock_timestamp()
          WHERE f.user_id = ${userId} AND f.verified_at IS NULL`)
        if (row === undefined) return undefined
        const secret = master.open("portal-second-factor", row.secret, userId)
        const plain = master.open("portal-second-factor", Buffer.from(row.kept[0], "base64"), pendingOf(sessionId))
        if (secret === undefined || plain === undefined) return undefined
        const backupCodes = decodeCodes(plain.toString())
        const isSame =
          backupCodes.length === row.hashes.length && backupCodes.every((code, index) => row.hashes[index]?.equals(hashOf(code)))
        return isSame ? { secret: new OTPAuth.Secret({ buffer: Uint8Array.from(secret).buffer }), backupCodes } : undefined
      })

    // Rejected after the transaction, which has to keep the count.
    const taken = (userId: string, code: string, enrolling: boolean) =>
      Effect.flatMap(Effect.orDie(take(userId, code, enrolling)), (outcome) =>
        outcome === "wrong" || typeof outcome === "object" ? failed(outcome) : Effect.succeed(outcome)
      )

    return {
      /**
       * Starts to set up an authenticator, or continues what the session started; discards what another session started. Fails if
       * there is one already.
       */
      begin: ({ email, id, userId }: Setup) =>
        Effect.gen(function* () {
          // Two tabs show the same.
          yield* lockAccount(sql, userId, { session: id })
          const pending = yield* unfinished(userId, id)
          if (pending !== undefined) return enrolment(pending.secret, email, pending.backupCodes)
          const secret = new OTPAuth.Secret({ size: 20 })
          const backupCodes = Array.from({ length: BACKUP_CODES }, backupCode)
          const sealed = master.seal("portal-second-factor", Buffer.from(secret.bytes), userId)
          const kept = yield* sql`
            INSERT INTO portal_second_factors AS f (user_id, secret, backup_codes)
            VALUES (${userId}, ${sealed}, ${backupCodes.map(hashOf)}::bytea[])
            ON CONFLICT (user_id) DO UPDATE SET secret = excluded.secret, backup_codes = excluded.backup_codes, last_step = 0
            WHERE f.verified_at IS NULL RETURNING user_id`
          if (kept.length === 0) return yield* problem("second_factor_failed", "An authenticator is already set up.")
          const codes = master.seal("portal-second-factor", Buffer.from(JSON.stringify(backupCodes)), pendingOf(id))
          yield* keepVerification(sql, { id, identifier: pendingOf(id), value: codes.toString("base64"), userId, validity: HALFWAY })
          return enrolment(secret, email, backupCodes)
        }).pipe(sql.withTransaction, dieOnSql),

      /** Completes the setup with the authenticator's first code. */
      confirm: (userId: string, code: string) => taken(userId, code, true),

      /** Accepts a code of the authenticator, or a backup code, for one action: a sign-in, the creation of one key. Returns which it was. */
      take: (userId: string, code: string) => taken(userId, code, false),

      /** Counts an action that a user is about to confirm. */
      spend: (userId: string) =>
        rateLimit === null
          ? Effect.void
          : Effect.flatMap(confirmations.take(userId), (wait) =>
              wait === 0 ? Effect.void : tooMany("Too many confirmations.", Math.ceil(wait / 1_000))
            ),

      /** Replaces the backup codes. */
      renewBackupCodes: ({ id: session, userId }: { readonly id: string; readonly userId: string }) =>
        Effect.gen(function* () {
          yield* lockAccount(sql, userId, { session })
          const backupCodes = Array.from({ length: BACKUP_CODES }, backupCode)
          yield* sql`UPDATE portal_second_factors SET backup_codes = ${backupCodes.map(hashOf)}::bytea[] WHERE user_id = ${userId}`
          yield* audit(userId, "account.backup_codes_renewed")
          yield* noteChange(sql, userId, "backup-codes-renewed")
          return backupCodes
        }).pipe(sql.withTransaction, dieOnSql),

      /** How many backup codes are left. */
      backupCodesLeft: (userId: string): Effect.Effect<number> =>
        Effect.map(
          Effect.orDie(decodeLeft(sql`SELECT cardinality(backup_codes) AS left FROM portal_second_factors WHERE user_id = ${userId}`)),
          ([row]) => row?.left ?? 0
        )
    }
  })
}) {
  static readonly layer = this.Default
}
