/**
 * `Idempotency-Key`: a mutation that is repeated with the same key and body gets the first response, including its
 * secret, and does nothing. The response is stored in the transaction of the mutation, so a process killed at any point has
 * done both or neither. It is encrypted, and so is the fingerprint of the body: both may come from credentials. Decision D-13.
 */

import { createHash } from "node:crypto"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, Predicate, Schema } from "effect"
import { MasterKey } from "../runtime/crypto/MasterKey.ts"
import type { SealedColumn } from "../runtime/crypto/reencryptSecrets.ts"
import { Bytes, decodeRows } from "../runtime/database/decodeRows.ts"
import { transaction } from "../runtime/database/sql.ts"
import { type ProblemOf, problem, problems } from "./Problem.ts"

/** 409 of mutations that take the header. */
export const IdempotencyInProgress = problems("IdempotencyInProgress", "idempotency_in_progress")
/** 422 of mutations that take the header. */
export const IdempotencyKeyReused = problems("IdempotencyKeyReused", "idempotency_key_reused")

/** Errors of the header. */
export type IdempotencyProblem = ProblemOf<"idempotency_in_progress" | "idempotency_key_reused" | "invalid_parameter">

/** The header in the contract; its value is checked here, not by the contract. */
export const IdempotencyHeaders = Schema.Struct({
  "idempotency-key": Schema.optional(
    Schema.String.annotations({
      jsonSchema: {
        type: "string",
        minLength: 1,
        maxLength: 255,
        pattern: "^[!-~]{1,255}$",
        description:
          "1 to 255 printable characters. A repeated request with the same key and body within 24 hours returns the first response and does nothing else."
      }
    })
  )
})

/** A stored response: status and JSON. */
export interface StoredResponse {
  readonly status: number
  readonly body: unknown
}

/** Whether the caller still sees what a stored response's body is about. */
type IsShown = (body: unknown) => Effect.Effect<boolean>

/** What a stored response is bound to: the caller and the key. */
const contextOf = (caller: string, key: string) => `${caller}\n${key}`

/** Where stored responses are encrypted. */
export const sealedAnswers: SealedColumn = {
  purpose: "idempotent-answer",
  table: "idempotency_keys",
  column: "answer",
  key: [
    ["key_id", "text"],
    ["idempotency_key", "text"]
  ],
  context: "key_id || E'\\n' || idempotency_key"
}

/** Where the fingerprints of bodies are encrypted. */
export const sealedFingerprints: SealedColumn = { ...sealedAnswers, purpose: "idempotent-body", column: "fingerprint" }

const form = /^[!-~]{1,255}$/

/** JSON with sorted keys, so that bodies that differ only in the order of keys are equal. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, one: unknown) =>
    Predicate.isRecord(one)
      ? Object.fromEntries(
          Object.keys(one)
            .sort()
            .map((key) => [key, one[key]])
        )
      : one
  )

/** The input of a mutation that takes no body. */
export const NO_BODY = ""

/**
 * Runs a mutation in a transaction, at most once for each key of a caller within 24 hours. `caller` is the owner of the
 * keys, `body` the input of the mutation. Without the header the mutation just runs. Check the caller's permissions
 * first: a stored response is returned as it is, if `isShown` says that the caller still sees what it is about.
 */
export const once = <E, R>(
  sql: SqlClient.SqlClient,
  caller: string,
  body: unknown,
  mutation: Effect.Effect<StoredResponse, E | SqlError.SqlError, R>,
  isShown?: IsShown
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E | SqlError.SqlError | IdempotencyProblem,
  R | HttpServerRequest.HttpServerRequest | MasterKey
> =>
  Effect.flatMap(identify(caller, body), (identity) =>
    Effect.map(transaction(sql)(identity === undefined ? mutation : guarded(sql, identity, mutation, isShown)), respond)
  )

/** The identity of a mutation: the owner of the key, and the content that was sent with it. */
export interface Identity {
  readonly caller: string
  readonly key: string
  readonly fingerprint: Buffer
}

/** The identity of the current request by its header; undefined without one. `body` is what was sent. */
export const identify = (
  caller: string,
  body: unknown
): Effect.Effect<Identity | undefined, ProblemOf<"invalid_parameter">, HttpServerRequest.HttpServerRequest> =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const key = request.headers["idempotency-key"]
    if (key === undefined) return undefined
    if (!form.test(key)) {
      return yield* problem("invalid_parameter", "Idempotency-Key must have 1 to 255 printable characters without spaces.", {
        fields: [{ in: "header", field: "Idempotency-Key", code: "invalid_parameter", detail: "must have 1 to 255 printable characters" }]
      })
    }
    const fingerprint = createHash("sha256")
      .update(canonical([request.method, request.url, body]))
      .digest()
    return { caller, key, fingerprint }
  })

/** A stored response as an HTTP response. */
export const respond = ({ body, status }: StoredResponse) =>
  HttpServerResponse.raw(JSON.stringify(body), { status, contentType: "application/json" })

const decodeLocks = decodeRows(Schema.Struct({ free: Schema.Boolean })),
  decodeKept = decodeRows(Schema.Struct({ fingerprint: Bytes, status: Schema.Number, answer: Bytes }))

/**
 * Runs a mutation unless its identity has a stored response, which is returned instead. Call it in the mutation's
 * transaction.
 */
export const guarded = <E, R>(
  sql: SqlClient.SqlClient,
  { caller, fingerprint, key }: Identity,
  mutation: Effect.Effect<StoredResponse, E | SqlError.SqlError, R>,
  isShown: IsShown = () => Effect.succeed(true)
) =>
  Effect.gen(function* () {
    const master = yield* MasterKey
    const context = contextOf(caller, key)
    const [lock] = yield* decodeLocks(sql`SELECT pg_try_advisory_xact_lock(hashtextextended(${context}, 0)) AS free`)
    if (lock?.free !== true) {
      return yield* problem("idempotency_in_progress", "A request with this Idempotency-Key is still in progress.", {
        headers: { "retry-after": "1" }
      })
    }
    const [known] = yield* decodeKept(sql`
      SELECT fingerprint, status, answer FROM idempotency_keys
      WHERE key_id = ${caller} AND idempotency_key = ${key} AND created_at > now() - interval '24 hours'`)
    if (known !== undefined) {
      const first = master.open("idempotent-body", known.fingerprint, context),
        opened = master.open("idempotent-answer", known.answer, context)
      if (first?.equals(fingerprint) === false) {
        return yield* problem("idempotency_key_reused", "This Idempotency-Key was used for another request within 24 hours.")
      }
      if (first === undefined || opened === undefined)
        return yield* Effect.die(
          new Error("a stored idempotent response cannot be decrypted: was MASTER_KEY replaced without MASTER_KEY_PREVIOUS?")
        )
      const body: unknown = JSON.parse(opened.toString())
      if (!(yield* isShown(body))) {
        return yield* problem(
          "idempotency_key_reused",
          "What the first request with this Idempotency-Key created no longer exists, or you no longer have access to it."
        )
      }
      return { status: known.status, body }
    }
    const kept = yield* mutation
    const answer = master.seal("idempotent-answer", Buffer.from(JSON.stringify(kept.body)), context)
    yield* sql`
      INSERT INTO idempotency_keys (key_id, idempotency_key, fingerprint, status, answer)
      VALUES (${caller}, ${key}, ${master.seal("idempotent-body", fingerprint, context)}, ${kept.status}, ${answer})
      ON CONFLICT (key_id, idempotency_key) DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,
        answer = excluded.answer, created_at = now()`
    return kept
  })
