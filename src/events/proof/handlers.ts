/** The handlers of signing keys and checkpoints. C-3. */

import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { Principal, type PrincipalState } from "../../access/credentials/Principal.ts"
import { reads } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { handler } from "../../http/handler.ts"
import { Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { SigningKeys } from "../../runtime/crypto/SigningKeys.ts"
import { seal } from "../feed/cursor.ts"
import { LONGEST_WRITE } from "../feed/streamEnd.ts"
import { oldestTime } from "../log/logWindow.ts"
import { type CheckpointRow, CheckpointsRepo } from "./CheckpointsRepo.ts"

/** How long a copy of the public keys may be cached, in seconds. A key is published before it signs. */
const KEYS_MAX_AGE = 300

export const layer = HttpApiBuilder.group(
  Api,
  "proof",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const signing = yield* SigningKeys
    const master = yield* MasterKey
    const pages = yield* Pages
    const checkpoints = yield* CheckpointsRepo

    const signed = ({ organizationId }: PrincipalState, { at, count, entityId, eventId, hash, position }: CheckpointRow) => {
      const statement = { entityId, count, hash: hash.toString("hex"), at }
      const time = Date.parse(at) - LONGEST_WRITE
      return Effect.map(signing.sign({ iss: signing.issuer, ...statement }), (jws) => ({
        ...statement,
        resumeCursor: time < oldestTime() ? null : seal(master, organizationId, { position, at: time, id: eventId }),
        jws
      }))
    }

    const visible = Effect.fnUntraced(function* (entityId: string) {
      const principal = yield* Principal
      return (yield* checkpoints.sees(principal, entityId)) ? principal : yield* notFound()
    })

    return handlers
      .handleRaw(
        "getSigningKeys",
        handler("getSigningKeys", () =>
          Effect.map(signing.jwks, (keys) =>
            HttpServerResponse.raw(JSON.stringify(keys), {
              contentType: "application/json",
              headers: { "cache-control": `public, max-age=${KEYS_MAX_AGE}` }
            })
          )
        )
      )
      .handle(
        "listEventCheckpoints",
        read("listEventCheckpoints", ({ urlParams: { cursor, entityId, limit } }) =>
          Effect.gen(function* () {
            const principal = yield* visible(entityId)
            const page = yield* pages.cut({
              of: { list: "event-checkpoints", filters: { entityId } },
              limit,
              cursor,
              keyLength: 1,
              fetch: (after, take) => checkpoints.list(entityId, after, take),
              keyOf: ({ at }) => [at]
            })
            const data = yield* Effect.forEach(page.rows, (row) => signed(principal, row))
            return { data, pagination: { limit: page.limit, nextCursor: page.nextCursor } }
          })
        )
      )
      .handle(
        "getLatestEventCheckpoint",
        read("getLatestEventCheckpoint", ({ urlParams: { entityId } }) =>
          Effect.gen(function* () {
            const principal = yield* visible(entityId)
            return yield* signed(principal, yield* checkpoints.latest(principal, entityId))
          })
        )
      )
  })
)
