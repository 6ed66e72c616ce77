/** The handlers of recoveries. C-4. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option } from "effect"
import { callerOf, Principal, type PrincipalState } from "../../access/credentials/Principal.ts"
import { reads, turns } from "../../access/visibility/Admission.ts"
import { requireManage } from "../../access/visibility/scopeMiddleware.ts"
import { withBody } from "../../access/visibility/withBody.ts"
import { Api } from "../../app/Api.ts"
import * as Body from "../../http/Body.ts"
import { handler } from "../../http/handler.ts"
import * as Idempotency from "../../http/Idempotency.ts"
import { answerJson, Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import { requireManageable, WebhooksRepo } from "../webhooks/WebhooksRepo.ts"
import { Recoveries } from "./Recoveries.ts"
import { RecoveriesRepo, recoveryJson } from "./RecoveriesRepo.ts"
import { CreateRecovery } from "./Recovery.ts"

const decodeCreation = Body.decode(CreateRecovery)

export const layer = HttpApiBuilder.group(
  Api,
  "recoveries",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const inTurn = yield* turns
    const bodied = yield* withBody
    const pages = yield* Pages
    const webhooks = yield* WebhooksRepo
    const repo = yield* RecoveriesRepo
    const recoveries = yield* Recoveries
    const sql = yield* SqlClient.SqlClient
    const master = yield* MasterKey

    const mutation = { uninterruptible: true }

    const changeable = (recoveryId: string) => (principal: PrincipalState) =>
      Effect.gen(function* () {
        if (Option.isNone(yield* inTurn(repo.find(principal, recoveryId)))) return yield* notFound()
        yield* requireManage(principal)
      })

    const commanded = <A, E, R>(recoveryId: string, act: (principal: PrincipalState, recoveryId: string) => Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const { principal } = yield* bodied(changeable(recoveryId), Body.none)
        return yield* inTurn(act(principal, recoveryId))
      }).pipe(dieOnSql)

    return handlers
      .handleRaw(
        "createRecovery",
        handler("createRecovery", ({ path: { webhookId } }) =>
          Effect.gen(function* () {
            const manageable = (caller: PrincipalState) => inTurn(requireManageable(webhooks, caller, webhookId))
            const { body: text, principal } = yield* bodied(manageable, Body.read())
            return yield* inTurn(
              Effect.flatMap(decodeCreation(text), (body) => {
                const created = Effect.map(recoveries.create(principal, webhookId, body), (recovery) => ({ status: 202, body: recovery }))
                return Idempotency.once(sql, callerOf(principal), body, created)
              })
            )
          }).pipe(Effect.provideService(MasterKey, master), dieOnSql)
        ),
        mutation
      )
      .handleRaw(
        "listRecoveries",
        read("listRecoveries", ({ path: { webhookId }, urlParams: { cursor, limit } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            if (Option.isNone(yield* webhooks.find(principal, webhookId))) return yield* notFound()
            const page = yield* pages.cut({
              of: { list: "recoveries", path: [webhookId] },
              limit,
              cursor,
              keyLength: 2,
              fetch: (after, take) => repo.list(principal, webhookId, after, take),
              keyOf: (row) => [row.createdAt, row.id]
            })
            return answerJson(page, recoveryJson)
          })
        )
      )
      .handle(
        "getRecovery",
        read("getRecovery", ({ path: { recoveryId } }) =>
          Effect.gen(function* () {
            const found = yield* repo.find(yield* Principal, recoveryId)
            return Option.isNone(found) ? yield* notFound() : found.value
          })
        )
      )
      .handle(
        "pauseRecovery",
        handler("pauseRecovery", ({ path: { recoveryId } }) => commanded(recoveryId, recoveries.pause)),
        mutation
      )
      .handle(
        "resumeRecovery",
        handler("resumeRecovery", ({ path: { recoveryId } }) => commanded(recoveryId, recoveries.resume)),
        mutation
      )
      .handle(
        "cancelRecovery",
        handler("cancelRecovery", ({ path: { recoveryId } }) => commanded(recoveryId, recoveries.cancel)),
        mutation
      )
  })
)
