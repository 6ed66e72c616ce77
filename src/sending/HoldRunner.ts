/**
 * Runs a step of a hold for its workflow: probes an endpoint that is down if that is due, or sends held deliveries in the
 * order of their numbers. Only one step at a time handles a webhook's held deliveries, and nothing else attempts them, so
 * none is attempted twice concurrently.
 *
 * A probe is the oldest delivery. After the first few probes the oldest ones take turns, so that one that the endpoint
 * never accepts does not keep it on hold. Draining begins with one delivery in flight and doubles after each successful
 * round, up to the bound of attempts in flight. A delivery that fails continues in its own workflow with its schedule. C-5.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Option, Schema } from "effect"
import type { AttemptOutcome, HoldInput, HoldOutcome } from "../../workflows/contract.ts"
import { record, SERVICE } from "../audit/AuditTrail.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { deliveriesToStart } from "../deliveries/deliveriesToStart.ts"
import { WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { oldestId } from "../events/logWindow.ts"
import { noticeTexts } from "../notifications/noticeTexts.ts"
import { Settings } from "../settings/Settings.ts"
import * as Id from "../values/Id.ts"
import { hostOf } from "../webhooks/url.ts"
import { AttemptRunner } from "./AttemptRunner.ts"
import { DrainWidth } from "./DrainWidth.ts"

/** Duration of a step, in ms; another webhook may be waiting for the slot. */
const STEP_MS = 10_000
/** Probes of the oldest delivery before the oldest ones take turns, and how many of those. */
const OLDEST_PROBES = 4,
  TURNS = 10
/** Deliveries per round at full width. */
const ROUND = 64
/** Waits after failed rounds, in ms. */
const FAILED_MS = [1_000, 2_000, 5_000, 10_000, 30_000] as const
/** When to check again, in ms: for a delivery that is not held yet, and if the endpoint admits no attempt. */
const AGAIN_MS = 1_000

const Hold = Schema.Struct({
  active: Schema.Boolean,
  down: Schema.Boolean,
  collected: Schema.Boolean,
  probes: Schema.Number,
  probeInMs: Schema.Number
})
type Hold = typeof Hold.Type
const decodeHolds = decodeRows(Hold)

/** A hold that may end. */
const decodeEnding = decodeRows(
  Schema.Struct({
    url: Schema.String,
    email: Schema.String,
    organizationId: Schema.String,
    since: Schema.String,
    /** Since when the endpoint was down; null if the webhook was only paused. */
    downAt: Schema.NullOr(Schema.String),
    delivered: Schema.Number,
    noticed: Schema.Boolean,
    down: Schema.Boolean
  })
)

const Held = Schema.Struct({ id: Schema.String, sequence: Schema.Number })
type Held = typeof Held.Type
const decodeHeld = decodeRows(Held)
const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

/** The outcome of a delivery's turn. */
type DrainResult = "delivered" | "failed" | "ended" | "again"

export class HoldRunner extends Effect.Service<HoldRunner>()("custody/HoldRunner", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const attempts = yield* AttemptRunner
    const starter = yield* WorkflowStarter
    const settings = yield* Settings
    const { webhookMaxInFlight } = settings
    const waitsMs = settings.webhookRetrySchedule.map(Duration.toMillis)
    const texts = noticeTexts(settings)

    const read = (webhookId: string) =>
      Effect.map(
        decodeHolds(sql`
          UPDATE webhook_holds h SET seen_at = clock_timestamp() FROM webhooks w WHERE h.webhook_id = ${webhookId} AND w.id = h.webhook_id
          RETURNING w.status = 'ACTIVE' AS active, h.down, h.collected, h.probes,
            coalesce(ceil(extract(epoch FROM h.probe_at - clock_timestamp()) * 1000), 0)::float8 AS "probeInMs"`),
        ([hold]) => hold
      )

    const oldest = (webhookId: string, after: number, take: number) =>
      decodeHeld(sql`
      SELECT d.id, d.sequence FROM deliveries d
      WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND d.sequence > ${after} AND d.id >= ${oldestId("del")}
      ORDER BY d.sequence LIMIT ${take}`)

    const waiting = (waitMs: number, pace: Pick<HoldInput, "width" | "failures">, details: string): HoldOutcome => ({
      next: "wait",
      waitMs: Math.max(0, Math.round(waitMs)),
      width: pace.width,
      failures: pace.failures,
      details,
      notices: []
    })

    const step = (webhookId: string, deliveryId: string, held: "probe" | "drain") =>
      attempts.step({
        deliveryId,
        webhookId,
        waitsMs,
        after: 0,
        jitter: Math.random(),
        local: false,
        cancel: false,
        holds: true,
        held
      })

    /** Ends the hold unless a delivery is still held; writers of held deliveries lock the row. */
    const end = (webhookId: string) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const [hold] = yield* decodeEnding(sql`
            SELECT w.url, w.notification_email AS email, w.organization_id AS "organizationId", h.since, h.down_at AS "downAt", h.delivered,
              h.noticed, h.down FROM webhook_holds h JOIN webhooks w ON w.id = h.webhook_id
            WHERE h.webhook_id = ${webhookId} AND w.status = 'ACTIVE' FOR UPDATE OF h`)
          if (hold === undefined) return []
          const left = yield* oldest(webhookId, 0, 1)
          if (left.length > 0) return undefined
          yield* sql`DELETE FROM webhook_holds WHERE webhook_id = ${webhookId}`
          if (hold.downAt !== null)
            yield* record(sql, [
              {
                organizationId: hold.organizationId,
                actor: SERVICE,
                action: "webhook.released",
                target: { type: "webhook", id: webhookId },
                changes: { heldSince: { old: hold.downAt, new: null }, delivered: { old: null, new: hold.delivered } }
              }
            ])
          if (!hold.noticed || hold.down) return []
          const { body, subject } = texts.recovered({ webhookId, host: hostOf(hold.url), since: hold.since, count: hold.delivered })
          const notices = yield* decodeIds(sql`
            INSERT INTO notices (id, webhook_id, organization_id, cause, recipient, subject, body)
            SELECT ${Id.make("ntc")}, w.id, w.organization_id, ${`recovered/${webhookId}/${hold.since}`}, ${hold.email}, ${subject}, ${body}
            FROM webhooks w WHERE w.id = ${webhookId} ON CONFLICT (cause) DO NOTHING RETURNING id`)
          return notices.map(({ id }) => id)
        })
      )

    const ended = (details: string, notices: ReadonlyArray<string> = []): HoldOutcome => ({ next: "ended", details, notices })

    /** Ends the hold, or returns that something is still held. */
    const finish = (webhookId: string, pace: Pick<HoldInput, "width" | "failures">) =>
      Effect.map(end(webhookId), (notices) =>
        notices === undefined ? waiting(0, pace, "draining") : ended("nothing is held any more", notices)
      )

    const probe = Effect.fnUntraced(function* ({ webhookId }: HoldInput, { collected, probes }: Hold) {
      const pace = { width: 1, failures: 0 }
      const candidates = yield* oldest(webhookId, 0, TURNS)
      const chosen = candidates[probes < OLDEST_PROBES ? 0 : (probes - OLDEST_PROBES + 1) % Math.max(1, candidates.length)]
      if (chosen === undefined)
        return collected ? yield* finish(webhookId, pace) : waiting(AGAIN_MS, pace, "waits for deliveries to be held")
      const outcome = yield* step(webhookId, chosen.id, "probe")
      const now = yield* read(webhookId)
      const notices = "notices" in outcome ? outcome.notices : []
      const details = `probe ${probes + 1}: ${outcome.next === "delivered" ? outcome.result : outcome.next === "wait" ? outcome.result : "failed"}`
      if (now === undefined) return ended(details, notices)
      // An attempt that was interrupted or not admitted is repeated soon; one that failed has its next due time.
      const again = outcome.next === "busy" || outcome.next === "wait" ? Math.min(outcome.waitMs, 30_000) : 0
      return { ...waiting(now.down ? Math.max(now.probeInMs, again, now.probes === probes ? AGAIN_MS : 0) : 0, pace, details), notices }
    })

    /** Sends one held delivery. If it fails, its own workflow continues with the schedule: it is started here, or woken by its signal. */
    const turn = Effect.fnUntraced(function* (webhookId: string, { id }: Held, notices: Array<string>) {
      const outcome: AttemptOutcome = yield* step(webhookId, id, "drain")
      if ("notices" in outcome) notices.push(...outcome.notices)
      switch (outcome.next) {
        case "delivered":
          return "delivered" satisfies DrainResult
        case "failed":
          return "failed" satisfies DrainResult
        case "ended":
          return "ended" satisfies DrainResult
        case "wait": {
          // The worker crashed or the proxy failed: the row is still held.
          yield* sql`
            UPDATE deliveries SET status = 'RETRYING', started = true, next_attempt_at = clock_timestamp() + ${outcome.waitMs} * interval '1 millisecond'
            WHERE id = ${id} AND status = 'HELD'`
          const [delivery] = yield* deliveriesToStart(sql, [id])
          if (delivery !== undefined) yield* starter.start(delivery, Option.none())
          return "failed" satisfies DrainResult
        }
        default:
          return "again" satisfies DrainResult
      }
    })

    const drain = Effect.fnUntraced(function* ({ failures, webhookId, width }: HoldInput) {
      const until = performance.now() + STEP_MS
      const notices: Array<string> = []
      let pace = { width, failures }
      const drainWidth = new DrainWidth(webhookMaxInFlight)
      let after = 0
      const done = (outcome: HoldOutcome): HoldOutcome => ({ ...outcome, notices: [...notices, ...outcome.notices] })
      while (performance.now() < until) {
        const hold = yield* read(webhookId)
        if (hold === undefined || !hold.active || hold.down) break
        const round = yield* oldest(webhookId, after, pace.width < webhookMaxInFlight ? pace.width : ROUND)
        if (round.length === 0) {
          const outcome = yield* finish(webhookId, pace)
          if (outcome.next === "ended") return done(outcome)
          // It was held again, or not admitted.
          if (after === 0) return done(waiting(AGAIN_MS, pace, "draining"))
          after = 0
          continue
        }
        const concurrency = round.length === ROUND ? drainWidth.width : pace.width
        const [took, turns] = yield* Effect.timed(Effect.forEach(round, (held) => turn(webhookId, held, notices), { concurrency }))
        after = round.at(-1)?.sequence ?? after
        if (turns.includes("again")) return done(waiting(AGAIN_MS, pace, "waits: the endpoint has its maximum of attempts in flight"))
        const failed = turns.filter((one) => one === "failed").length
        const delivered = turns.filter((one) => one === "delivered").length
        if (delivered === ROUND) drainWidth.took(ROUND, Duration.toMillis(took))
        if (failed === 0) pace = { width: Math.min(webhookMaxInFlight, pace.width * 2), failures: 0 }
        else if (delivered === 0) {
          pace = { width: 1, failures: pace.failures + 1 }
          return done(waiting(FAILED_MS[Math.min(pace.failures, FAILED_MS.length) - 1] ?? AGAIN_MS, pace, "the endpoint fails again"))
        } else pace = { ...pace, failures: 0 }
      }
      return done(waiting(0, pace, `draining, at most ${pace.width} in flight`))
    })

    return {
      /** Runs the step. Fails if Postgres or Temporal is unavailable; it is repeated then. */
      step: (input: HoldInput) =>
        Effect.gen(function* () {
          const hold = yield* read(input.webhookId)
          if (hold === undefined) return ended("nothing is held any more")
          // It is started again when the webhook is resumed.
          if (!hold.active) return ended("the webhook is paused")
          if (!hold.down) return yield* drain(input)
          if (hold.probeInMs > 0) return waiting(hold.probeInMs, { width: 1, failures: 0 }, "the endpoint is down and is probed")
          return yield* probe(input, hold)
        })
    }
  })
}) {
  static readonly layer = this.Default
}
