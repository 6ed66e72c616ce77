/**
 * Operations on recoveries: create, pause, resume, cancel. A recovery is a row; its workflow acts on it. Changing a recovery
 * locks the webhook's row first, as changing the webhook does. C-4.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import { drainIdOf } from "../../../workflows/contract.ts"
import { type Action, type Changes, recordOf } from "../../access/audit/AuditTrail.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { requireManage } from "../../access/visibility/scopeMiddleware.ts"
import { seesWebhook } from "../../access/visibility/visibility.ts"
import { fieldIssue, invalidFields } from "../../http/Body.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { databaseTime } from "../../runtime/database/databaseTime.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { transaction } from "../../runtime/database/sql.ts"
import { command } from "../../runtime/temporal/commands.ts"
import * as Id from "../../values/Id.ts"
import { Webhook } from "../webhooks/Webhook.ts"
import { columns } from "../webhooks/WebhooksRepo.ts"
import { requireReadableKinds, requireWebhookScope } from "../webhooks/webhookScope.ts"
import { RecoveriesRepo } from "./RecoveriesRepo.ts"
import { type CreateRecovery, RECOVERY_DAYS } from "./Recovery.ts"

const DAY = 86_400_000
/** Tolerance for the caller's clock, in ms. */
const LENIENT = 60_000
/** How much earlier than its recording an event's id may be, in ms. */
const EARLIER = 60_000

const decodeWebhooks = decodeRows(Webhook)
const decodeBounds = decodeRows(Schema.Struct({ low: Schema.NullOr(Schema.Number), high: Schema.Number }))
const decodeEvents = decodeRows(Schema.Struct({ id: Schema.String, position: Schema.Number }))
const decodeStatuses = decodeRows(Schema.Struct({ status: Schema.String }))

/** What a webhook covers. */
type Covered = Pick<Webhook, "entityIds" | "eventKinds" | "vaultIds">

export class Recoveries extends Effect.Service<Recoveries>()("custody/Recoveries", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const repo = yield* RecoveriesRepo

    const audit = (principal: PrincipalState, action: Action, recoveryId: string, changes: Changes = {}) =>
      recordOf(sql, principal, action, { type: "recovery", id: recoveryId }, changes)

    const read = (principal: PrincipalState, recoveryId: string) =>
      Effect.flatMap(repo.find(principal, recoveryId), Option.match({ onNone: () => Effect.fail(notFound()), onSome: Effect.succeed }))

    /** The position before the organization's first event whose id is not older than a time, by binary search. */
    const positionBefore = Effect.fnUntraced(function* (organizationId: string, at: number) {
      const [bounds] = yield* decodeBounds(sql`
        SELECT (SELECT min(e.position) FROM events e WHERE e.organization_id = ${organizationId}) AS low, s.position AS high
        FROM event_streams s WHERE s.organization_id = ${organizationId}`)
      const from = Id.floor("evt", Math.max(0, at))
      let low = (bounds?.low ?? 1) - 1,
        high = bounds?.high ?? 0
      const last = high
      // Events up to `low` are older; the one at `high` + 1 is not.
      while (low < high) {
        const middle = Math.floor((low + high) / 2)
        const [next] = yield* decodeEvents(sql`
          SELECT e.id, e.position FROM events e WHERE e.organization_id = ${organizationId} AND e.position > ${middle} ORDER BY e.position LIMIT 1`)
        if (next === undefined || next.id >= from) high = middle
        else low = next.position
      }
      return { position: low, last }
    })

    const requireStretch = (since: string, until: string | undefined) =>
      Effect.gen(function* () {
        const now = yield* databaseTime(sql)
        const [from, to] = [Date.parse(since), Math.min(now, until === undefined ? now : Date.parse(until))]
        if (from > to) return yield* invalidFields([fieldIssue("since", "must be before until, and before now")])
        if (to - from > RECOVERY_DAYS * DAY + LENIENT)
          return yield* invalidFields([fieldIssue("since", `must be at most ${RECOVERY_DAYS} days before until`)])
        return new Date(to).toISOString()
      })

    /** Rejects callers who could not read everything that the webhook covers: sending it requires what subscribing to it does. */
    const requireCoverage = (principal: PrincipalState, { entityIds, eventKinds, vaultIds }: Covered) =>
      Effect.zipRight(requireWebhookScope(sql, principal, entityIds, vaultIds), requireReadableKinds(principal, eventKinds))

    /** Locks the recovery's webhook if the caller can see it and may manage webhooks. Fails if the recovery has ended. */
    const lock = Effect.fnUntraced(function* (principal: PrincipalState, recoveryId: string) {
      const [webhook] = yield* decodeWebhooks(sql`
        SELECT ${sql.literal(columns)} FROM webhooks w
        WHERE w.id = (SELECT r.webhook_id FROM recoveries r WHERE r.id = ${recoveryId}) AND w.deleted_at IS NULL
          AND ${seesWebhook(sql, principal)} FOR SHARE`)
      if (webhook === undefined) return yield* notFound()
      yield* requireManage(principal)
      const [found] = yield* decodeStatuses(sql`SELECT status FROM recoveries WHERE id = ${recoveryId} FOR UPDATE`)
      if (found === undefined) return yield* notFound()
      if (found.status === "COMPLETED" || found.status === "CANCELED")
        return yield* problem("recovery_ended", "The recovery has already ended.")
      return { status: found.status, webhook }
    })

    const change = <E>(
      principal: PrincipalState,
      recoveryId: string,
      action: "recovery.paused" | "recovery.resumed" | "recovery.canceled",
      requirement: (webhook: Webhook) => Effect.Effect<void, E>
    ) =>
      transaction(sql)(
        Effect.gen(function* () {
          const { status: before, webhook } = yield* lock(principal, recoveryId)
          const status = action === "recovery.paused" ? "PAUSED" : action === "recovery.resumed" ? "RUNNING" : "CANCELED"
          if (status !== before) {
            yield* requirement(webhook)
            const ends = status === "CANCELED"
            yield* sql`
              UPDATE recoveries SET status = ${status}, canceling = ${ends}, completed_at = CASE WHEN ${ends} THEN now() END,
                updated_at = now() WHERE id = ${recoveryId}`
            yield* command(sql, recoveryId, drainIdOf(webhook.id))
            // The drain skips deliveries of a paused recovery, and sends them now.
            if (status === "RUNNING")
              yield* sql`UPDATE webhook_queues SET due = coalesce(due, clock_timestamp()) WHERE webhook_id = ${webhook.id}`
            yield* audit(principal, action, recoveryId, { status: { old: before, new: status } })
          }
          return yield* read(principal, recoveryId)
        })
      )

    return {
      /** Creates a recovery, which a dispatcher starts. Call it in a transaction. */
      create: Effect.fn("Recoveries.create")(function* (principal: PrincipalState, webhookId: string, body: CreateRecovery) {
        const [webhook] = yield* decodeWebhooks(sql`
          SELECT ${sql.literal(columns)} FROM webhooks w WHERE w.id = ${webhookId} AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)}
          FOR NO KEY UPDATE`)
        if (webhook === undefined) return yield* notFound()
        yield* requireManage(principal)
        const until = yield* requireStretch(body.since, body.until)
        const kinds = body.eventKinds ?? null
        if (kinds?.some((kind) => !webhook.eventKinds.includes(kind)) === true)
          return yield* invalidFields([fieldIssue("eventKinds", "must list kinds that the webhook receives")])
        const vaults = body.vaultIds ?? null
        if (vaults !== null && webhook.vaultIds !== null && vaults.some((id) => webhook.vaultIds?.includes(id) !== true))
          return yield* invalidFields([fieldIssue("vaultIds", "must list vaults that the webhook covers")])
        yield* requireCoverage(principal, webhook)
        if (vaults !== null) yield* requireWebhookScope(sql, principal, webhook.entityIds, vaults)
        if (webhook.status === "DISABLED") return yield* problem("webhook_disabled", "The webhook is disabled. Enable it first.")
        const running = yield* sql`SELECT 1 FROM recoveries WHERE webhook_id = ${webhookId} AND status IN ('RUNNING', 'PAUSED')`
        if (running.length > 0)
          return yield* problem("recovery_running", "A recovery of this webhook is still running. Wait for it, or cancel it.")
        const { last, position } = yield* positionBefore(principal.organizationId, Date.parse(body.since) - EARLIER)
        const id = Id.make("rec")
        yield* sql`
          INSERT INTO recoveries (id, webhook_id, organization_id, status, since, until, event_kinds, vault_ids, include, rate_per_second, position, last_position)
          VALUES (${id}, ${webhookId}, ${principal.organizationId}, 'RUNNING', ${body.since}::timestamptz, ${until}::timestamptz, ${kinds}::text[],
            ${vaults}::text[], ${body.include}::text[], ${body.ratePerSecond ?? null}, ${position}, ${last})`
        yield* command(sql, id)
        yield* audit(principal, "recovery.created", id, {
          webhookId: { old: null, new: webhookId },
          since: { old: null, new: body.since },
          until: { old: null, new: until },
          include: { old: null, new: body.include }
        })
        return yield* read(principal, id)
      }),

      /** No further deliveries are created until it is resumed. */
      pause: (principal: PrincipalState, recoveryId: string) => change(principal, recoveryId, "recovery.paused", () => Effect.void),
      /** Continues where it was paused. Requires access to everything that the webhook covers now, as its creation does. */
      resume: (principal: PrincipalState, recoveryId: string) =>
        change(principal, recoveryId, "recovery.resumed", (webhook) => requireCoverage(principal, webhook)),
      /** Ends it. Its waiting deliveries are canceled after the commit; no attempt of them begins in the meantime. */
      cancel: (principal: PrincipalState, recoveryId: string) => change(principal, recoveryId, "recovery.canceled", () => Effect.void)
    }
  })
}) {
  static readonly layer = this.Default
}
