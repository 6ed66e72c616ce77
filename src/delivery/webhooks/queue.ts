/**
 * The queue of a webhook: its deliveries that are `HELD` wait for their turn, because it is paused, its endpoint is down, all
 * of its slots in flight are taken, somebody asked to retry all, or they are of a recovery. A row of `webhook_queues` represents
 * it. While it exists, only the webhook's drain sends, except that new events pass a queue that has only deliveries of recoveries.
 *
 * The drain (sending/Drain.ts) is a workflow. It deletes the row under a lock when nothing is queued; a transaction that
 * queues a delivery locks the row's key, so none is left behind. `due` is when the drain acts next, null while it has nothing
 * to do: the sweep starts a drain that is overdue, or of an active webhook without one. C-5.
 */
import type { SqlClient, Statement } from "@effect/sql"
import { Effect, Schema } from "effect"
import { drainIdOf } from "../../../workflows/contract.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { insertCommands } from "../../runtime/temporal/commands.ts"

/** An endpoint is down after this many consecutive failures of at least two deliveries, over at least `WEBHOOK_HOLD_AFTER`. */
export const DOWN_ATTEMPTS = 10

/**
 * The order of a queue, before the deliveries' numbers: those that somebody asked to send now, then events as they came,
 * then deliveries of recoveries.
 */
export const RANK = { first: 0, live: 1, recovery: 2 } as const

/** Retries that one statement moves into the queue. */
const PART = 200

/** How much earlier than due a delivery joins the queue: timers of workflows and of Postgres differ by less. */
const EARLY = "1 second"

const decodeMoved = decodeRows(Schema.Struct({ moved: Schema.Number })),
  decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

/** Whether new events of a webhook `w` with the queue `q`, or without one, must join the queue. */
export const joinsQueue = "(w.status = 'PAUSED' OR coalesce(q.down OR q.live, false))"

/** Whether a delivery `d` may be sent now: not while the recovery that made it is paused. */
export const mayBeSent =
  "(d.recovery_id IS NULL OR EXISTS (SELECT 1 FROM recoveries r WHERE r.id = d.recovery_id AND r.status <> 'PAUSED'))"

/** How many attempts at a webhook `w` are in flight, of any process: their rows are in the given partitions. */
export const inFlight = (sql: SqlClient.SqlClient, attempts: Statement.Fragment): Statement.Fragment => sql`
  (SELECT count(*) FROM ${attempts} t JOIN processes p ON p.id = t.process_id WHERE t.webhook_id = w.id AND t.result IS NULL)::int`

/** Why a delivery `d` that is HELD waits: its webhook or its recovery is paused, its endpoint is down, or it waits for its turn. Null for any other. */
export const heldBecause = `CASE WHEN d.status = 'HELD' THEN (
    SELECT CASE WHEN w.status = 'PAUSED' OR NOT ${mayBeSent} THEN 'PAUSED' WHEN q.down THEN 'DOWN' ELSE 'TURN' END
    FROM webhooks w LEFT JOIN webhook_queues q ON q.webhook_id = w.id WHERE w.id = d.webhook_id) END`

/** A common table expression `queued (webhook_id)`: which webhooks' new deliveries join their queue, locked until the transaction ends. */
export const queuedOf = (sql: SqlClient.SqlClient, webhookIds: ReadonlyArray<string>): Statement.Fragment => sql`
  queued AS MATERIALIZED (
    SELECT q.webhook_id FROM webhook_queues q JOIN webhooks w ON w.id = q.webhook_id
    WHERE q.webhook_id = ANY(${webhookIds}::text[]) AND ${sql.literal(joinsQueue)} ORDER BY q.webhook_id FOR KEY SHARE OF q)`

/**
 * Common table expressions that make sure that webhooks have a queue, locked until the transaction ends, and that its drain
 * runs; the last one is `opened (webhook_id)`. `live`: whether more than deliveries of recoveries are queued.
 */
export const openQueues = (sql: SqlClient.SqlClient, webhookIds: ReadonlyArray<string>, live: boolean): Statement.Fragment => sql`
  opened AS (
    INSERT INTO webhook_queues AS q (webhook_id, due, live)
    SELECT w.id, CASE WHEN w.status = 'ACTIVE' THEN clock_timestamp() END, ${live}::bool FROM webhooks w
    WHERE w.id = ANY(${webhookIds}::text[]) AND w.status <> 'DISABLED' ORDER BY w.id
    ON CONFLICT (webhook_id) DO UPDATE SET live = q.live OR excluded.live, due = coalesce(q.due, excluded.due)
    RETURNING q.webhook_id, q.due
  ), drained AS (
    ${insertCommands(sql, sql`SELECT ${drainIdOf("")}::text || webhook_id FROM opened WHERE due <= clock_timestamp()`)}
  )`

/** A delivery that is to join its webhook's queue; `isDue` if that is known, otherwise it must be due by its row. */
export interface Joining {
  readonly deliveryId: string
  readonly webhookId: string
  readonly isDue: boolean
}

/**
 * Moves deliveries into their webhooks' queues, in one statement. They then have no workflow. Returns the ids of those that
 * it moved: not of deliveries that are not due, and not for a webhook that is disabled.
 */
export const enqueue = (sql: SqlClient.SqlClient, deliveries: ReadonlyArray<Joining>) =>
  Effect.map(
    decodeIds(sql`
      WITH ${openQueues(sql, [...new Set(deliveries.map((_) => _.webhookId))].sort(), true)}
      UPDATE deliveries d SET status = 'HELD', next_attempt_at = NULL, started = false
      FROM opened o, unnest(${deliveries.map((_) => _.deliveryId)}::text[], ${deliveries.map((_) => _.isDue)}::bool[]) AS a (id, is_due)
      WHERE d.id = a.id AND d.webhook_id = o.webhook_id AND d.status IN ('PENDING', 'RETRYING')
        AND (a.is_due OR d.next_attempt_at <= clock_timestamp() + ${EARLY}::interval)
      RETURNING d.id`),
    (rows) => new Set(rows.map(({ id }) => id))
  )

/**
 * Moves a part of a webhook's waiting retries into its queue, without those whose attempt is in flight. Returns how many it
 * moved. Locks nothing that recording an attempt needs for longer than a statement.
 */
export const queueRetries = (sql: SqlClient.SqlClient, webhookId: string) =>
  decodeMoved(sql`
    WITH kept AS MATERIALIZED (
      SELECT webhook_id FROM webhook_queues WHERE webhook_id = ${webhookId} FOR KEY SHARE
    ), waiting AS MATERIALIZED (
      SELECT d.id FROM kept JOIN deliveries d ON d.webhook_id = kept.webhook_id
      WHERE d.status = 'RETRYING' AND NOT EXISTS (SELECT 1 FROM delivery_attempts t WHERE t.delivery_id = d.id AND t.result IS NULL)
      ORDER BY d.next_attempt_at LIMIT ${PART} FOR UPDATE OF d SKIP LOCKED
    ), moved AS (
      UPDATE deliveries d SET status = 'HELD', next_attempt_at = NULL FROM waiting w WHERE d.id = w.id RETURNING d.id
    )
    SELECT count(*) AS moved FROM moved`)

/** Whether a part of this size may not be the last one. */
export const isWholePart = (moved: number): boolean => moved >= PART

/** Begins to queue the deliveries of a paused webhook. A cancellation goes on. */
export const pause = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  INSERT INTO webhook_queues AS q (webhook_id, due, live) VALUES (${webhookId}, NULL, true)
  ON CONFLICT (webhook_id) DO UPDATE SET due = CASE WHEN q.cancel_to IS NOT NULL THEN q.due END, live = true`

/** Makes the drain of a queue act now, if `which` selects it. */
const act = (sql: SqlClient.SqlClient, webhookId: string, which: "true" | "down") => sql`
  WITH acts AS (
    UPDATE webhook_queues SET due = clock_timestamp() WHERE webhook_id = ${webhookId} AND ${sql.literal(which)} RETURNING webhook_id
  )
  ${insertCommands(sql, sql`SELECT ${drainIdOf("")}::text || webhook_id FROM acts`)}`

/** Probes the endpoint now, if it is down. */
export const probeNow = (sql: SqlClient.SqlClient, webhookId: string) => act(sql, webhookId, "down")

/** Makes the drain act now: it sends the head of the queue, or probes an endpoint that is down. */
export const sendNow = (sql: SqlClient.SqlClient, webhookId: string) => act(sql, webhookId, "true")

/** Sends everything that waits for a webhook: queued deliveries, and retries, which the drain moves into the queue. */
export const sendAll = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  WITH opened AS (
    INSERT INTO webhook_queues (webhook_id, due, live, retries_queued) VALUES (${webhookId}, clock_timestamp(), true, false)
    ON CONFLICT (webhook_id) DO UPDATE SET due = clock_timestamp(), live = true, retries_queued = false RETURNING webhook_id
  )
  ${insertCommands(sql, sql`SELECT ${drainIdOf("")}::text || webhook_id FROM opened`)}`
