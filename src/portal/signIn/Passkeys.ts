/**
 * Passkeys (WebAuthn). A passkey that verified its user (by fingerprint or PIN) counts as both factors: it signs in and
 * confirms actions on its own. One without user verification is rejected. A challenge can be answered once, within five
 * minutes.
 */
import { randomBytes } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Schema } from "effect"
import { recordOfUser } from "../../access/audit/AuditTrail.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { Bytes, decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import * as Id from "../../values/Id.ts"
import { requireOrigin } from "../server/origin.ts"
import { noteChange } from "./changeNotice.ts"
import { text } from "./confirmation.ts"
import { lockAccount } from "./lockAccount.ts"
import { keepVerification } from "./verifications.ts"

/** A passkey as its owner sees it. */
export const Passkey = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  createdAt: Schema.String,
  lastUsedAt: Schema.NullOr(Schema.String)
})
export type Passkey = typeof Passkey.Type

/** Most passkeys of a user: the list shows each. */
const MOST = 50

/** The purpose of a challenge; a response to one purpose is invalid for another. */
type Ceremony = "register" | "sign-in" | "confirm"

const Stored = Schema.Struct({
  ...Passkey.fields,
  userId: Schema.String,
  credentialId: Schema.String,
  publicKey: Bytes,
  counter: Schema.Number,
  transports: Schema.Array(Schema.String)
})
const decode = decodeRows(Stored),
  // The challenge and its user.
  decodeChallenges = decodeRows(Schema.Struct({ value: Schema.parseJson(Schema.Tuple(Schema.String, Schema.String)) }))

/** A browser's response to a challenge, as in the Web Authentication specification; the library validates its content. */
const answering = <A, I>(response: Schema.Schema<A, I>) =>
  Schema.Struct({
    challengeId: text(100),
    response: Schema.Struct({
      id: text(2_000),
      rawId: Schema.String,
      type: Schema.Literal("public-key"),
      clientExtensionResults: Schema.Object,
      response
    })
  })
const Registration = answering(
  Schema.Struct({
    clientDataJSON: Schema.String,
    attestationObject: Schema.String,
    transports: Schema.optionalWith(Schema.mutable(Schema.Array(text(100))), { exact: true })
  })
)
const Assertion = answering(Schema.Struct({ clientDataJSON: Schema.String, authenticatorData: Schema.String, signature: Schema.String }))

/** A passkey for the browser to look up, and its transports. */
const descriptor = ({ credentialId, transports }: typeof Stored.Type) => ({ id: credentialId, transports: [...transports] })

const refused = () => problem("second_factor_failed", "The passkey was not accepted.")

// Loaded when the first passkey is used.
const webauthn = Effect.promise(() => import("@simplewebauthn/server"))

export class Passkeys extends Effect.Service<Passkeys>()("custody/portal/Passkeys", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql.literal(`k.id, k.user_id AS "userId", k.name, k.credential_id AS "credentialId", k.public_key AS "publicKey",
      k.counter, k.transports, k.created_at AS "createdAt", k.last_used_at AS "lastUsedAt"`)
    const ofUser = (userId: string) =>
      Effect.orDie(
        decode(sql`SELECT ${columns} FROM portal_passkeys k WHERE k.user_id = ${userId} ORDER BY k.created_at, k.id LIMIT ${MOST}`)
      )

    /** The passkeys of a user who may add another. */
    const ofUserWithRoom = (userId: string) =>
      Effect.filterOrElse(
        ofUser(userId),
        ({ length }) => length < MOST,
        () => problem("passkey_limit_reached", `An account has at most ${MOST} passkeys. Remove one first.`)
      )

    /** Keeps a challenge; one of a session in place of its earlier one. */
    const keep = (ceremony: Ceremony, challenge: string, userId: string, sessionId?: string) =>
      Effect.gen(function* () {
        const challengeId = randomBytes(16).toString("base64url")
        const identifier = `passkey/${ceremony}/${challengeId}`
        const id = sessionId === undefined ? challengeId : `passkey/${ceremony}/${sessionId}`
        yield* keepVerification(sql, { id, identifier, value: challenge, userId, validity: Duration.minutes(5) })
        return challengeId
      }).pipe(Effect.orDie)

    /** The challenge and its user, empty for any; deleted on reading, so that it can be answered only once. */
    const answerTo = (ceremony: Ceremony, challengeId: string) =>
      Effect.gen(function* () {
        const [kept] = yield* Effect.orDie(
          decodeChallenges(sql`
            DELETE FROM portal_verifications WHERE identifier = ${`passkey/${ceremony}/${challengeId}`} AND expires_at > clock_timestamp() RETURNING value`)
        )
        if (kept === undefined) return yield* refused()
        return kept.value
      })

    const options = (ceremony: Ceremony, userId: string, sessionId?: string) =>
      Effect.gen(function* () {
        const origin = yield* requireOrigin
        const library = yield* webauthn
        const known = userId === "" ? [] : yield* ofUser(userId)
        const made = yield* Effect.promise(() =>
          library.generateAuthenticationOptions({
            rpID: new URL(origin).hostname,
            userVerification: "required",
            allowCredentials: known.map(descriptor)
          })
        )
        return { challengeId: yield* keep(ceremony, made.challenge, userId, sessionId), options: made }
      })

    return {
      list: (userId: string): Effect.Effect<ReadonlyArray<Passkey>> =>
        Effect.map(ofUser(userId), (found) => found.map(({ createdAt, id, lastUsedAt, name }) => ({ id, name, createdAt, lastUsedAt }))),

      /** Options for a browser to authenticate any user. */
      signInOptions: options("sign-in", ""),
      /** Options for a browser to authenticate with the session's user's own passkeys; a session's latest ones are valid. */
      confirmOptions: ({ id, userId }: { readonly id: string; readonly userId: string }) => options("confirm", userId, id),

      /** Options for a browser to create a passkey. */
      registerOptions: (userId: string, email: string) =>
        Effect.gen(function* () {
          const origin = yield* requireOrigin
          const library = yield* webauthn
          const known = yield* ofUserWithRoom(userId)
          const made = yield* Effect.promise(() =>
            library.generateRegistrationOptions({
              rpName: "Custody",
              rpID: new URL(origin).hostname,
              userName: email,
              userID: new TextEncoder().encode(userId),
              attestationType: "none",
              excludeCredentials: known.map(descriptor),
              authenticatorSelection: { residentKey: "required", userVerification: "required" }
            })
          )
          return { challengeId: yield* keep("register", made.challenge, userId), options: made }
        }),

      /** Stores a passkey that the user's browser created. */
      register: ({ id: session, userId }: { readonly id: string; readonly userId: string }, name: string, given: unknown) =>
        Effect.gen(function* () {
          const origin = yield* requireOrigin
          const { challengeId, response } = yield* Effect.mapError(Schema.decodeUnknown(Registration)(given), refused)
          const [challenge, owner] = yield* answerTo("register", challengeId)
          if (owner !== userId) return yield* refused()
          const library = yield* webauthn
          const { registrationInfo, verified } = yield* Effect.tryPromise({
            try: () =>
              library.verifyRegistrationResponse({
                response,
                expectedChallenge: challenge,
                expectedOrigin: origin,
                expectedRPID: new URL(origin).hostname,
                requireUserVerification: true
              }),
            catch: refused
          })
          if (!verified) return yield* refused()
          const { counter, id: credentialId, publicKey, transports } = registrationInfo.credential
          yield* Effect.gen(function* () {
            yield* lockAccount(sql, userId, { session })
            yield* ofUserWithRoom(userId)
            const kept = yield* sql`
              INSERT INTO portal_passkeys (id, user_id, name, credential_id, public_key, counter, transports)
              VALUES (${Id.make("psk")}, ${userId}, ${name}, ${credentialId}, ${Buffer.from(publicKey)}, ${counter}, ${[...(transports ?? [])]}::text[])
              ON CONFLICT (credential_id) DO NOTHING RETURNING id`
            if (kept.length === 0) return yield* refused()
            yield* recordOfUser(sql, userId, { type: "session", id: null, userId }, "account.passkey_added")
            yield* noteChange(sql, userId, "passkey-added")
          }).pipe(sql.withTransaction, dieOnSql)
        }),

      /** The passkey that answered the challenge, and its active user. For "confirm" it is the given user. */
      verify: (given: unknown, ceremony: "sign-in" | "confirm", userId?: string) =>
        Effect.gen(function* () {
          const origin = yield* requireOrigin
          const { challengeId, response } = yield* Effect.mapError(Schema.decodeUnknown(Assertion)(given), refused)
          const [challenge, asked] = yield* answerTo(ceremony, challengeId)
          const [known] = yield* Effect.orDie(
            decode(sql`
              SELECT ${columns} FROM portal_passkeys k JOIN users u ON u.id = k.user_id
              WHERE k.credential_id = ${response.id} AND u.status = 'active'`)
          )
          if (known === undefined || (ceremony === "confirm" && (known.userId !== userId || asked !== userId))) return yield* refused()
          const library = yield* webauthn
          const { authenticationInfo, verified } = yield* Effect.tryPromise({
            try: () =>
              library.verifyAuthenticationResponse({
                response,
                expectedChallenge: challenge,
                expectedOrigin: origin,
                expectedRPID: new URL(origin).hostname,
                credential: { id: known.credentialId, publicKey: Uint8Array.from(known.publicKey), counter: known.counter },
                requireUserVerification: true
              }),
            catch: refused
          })
          if (!verified) return yield* refused()
          const used = yield* Effect.orDie(sql`
            UPDATE portal_passkeys SET counter = ${authenticationInfo.newCounter}, last_used_at = clock_timestamp() WHERE id = ${known.id} RETURNING id`)
          return used.length === 0 ? yield* refused() : { id: known.id, userId: known.userId }
        }),

      /** Removes a passkey, and ends all other sessions: it may have begun them. */
      remove: ({ id: session, userId }: { readonly id: string; readonly userId: string }, id: string) =>
        Effect.gen(function* () {
          const removed = yield* sql`DELETE FROM portal_passkeys WHERE id = ${id} AND user_id = ${userId} RETURNING id`
          if (removed.length === 0) return yield* notFound()
          yield* sql`DELETE FROM portal_sessions WHERE user_id = ${userId} AND id <> ${session}`
          yield* recordOfUser(sql, userId, { type: "session", id: null, userId }, "account.passkey_removed")
          yield* noteChange(sql, userId, "passkey-removed")
        }).pipe(sql.withTransaction, dieOnSql)
    }
  })
}) {
  static readonly layer = this.Default
}
