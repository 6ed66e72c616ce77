/**
 * Records operational notices, each once per cause, in the transaction of the cause; a workflow of its own sends each.
 * Decision D-23.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import type { Values } from "../../runtime/settings/table.ts"
import { insertCommands } from "../../runtime/temporal/commands.ts"
import * as Id from "../../values/Id.ts"
import { noticeTexts, type Text } from "../notices/noticeTexts.ts"
import { hostOf } from "../webhooks/url.ts"

/** Waiting deliveries are counted up to this for a notice. */
const COUNTED = 10_000

const decodeCount = decodeRows(Schema.Struct({ count: Schema.Number }))
const decodeRest = decodeRows(Schema.Struct({ retrying: Schema.Number, failed: Schema.Number }))
const decodeTargets = decodeRows(Schema.Struct({ url: Schema.String, email: Schema.String }))

/** How many deliveries wait for a webhook, counted up to {@link COUNTED} of those that are queued and of the others. */
export const countWaiting = (sql: SqlClient.SqlClient, webhookId: string) =>
  Effect.map(
    decodeCount(sql`
      SELECT (SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status IN ('PENDING', 'RETRYING')
        LIMIT ${COUNTED + 1}) waiting) + (SELECT count(*) FROM (SELECT 1 FROM deliveries d
        WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' LIMIT ${COUNTED + 1}) held) AS count`),
    ([row]) => row?.count ?? 0
  )

/** A disable: when, how many deliveries it cancels, and since when the oldest of them, or of the recovery that it ends; null without any. */
export interface Disabled {
  readonly at: string
  readonly canceled: number
  readonly oldest: string | null
}

/** The failures that a notice is about. */
export interface Cause {
  readonly webhookId: string
  readonly deliveryId: string
  readonly since: string
  readonly failures: number
  readonly lastResult: string
}

/** The notices about failures. */
export const makeNotices = (
  sql: SqlClient.SqlClient,
  settings: Pick<Values, "webhookRetrySchedule" | "webhookProbeSchedule" | "webhookDisableAfter">
) => {
  const texts = noticeTexts(settings)

  /** Writes the notice, unless its cause has one or the webhook had one of the kind within `unlessWithin`. */
  const write = (
    webhookId: string,
    cause: string,
    recipient: string,
    { body, subject }: Text,
    unless?: { kind: string; within: string }
  ) => sql`
    WITH written AS (
      INSERT INTO notices (id, webhook_id, organization_id, cause, recipient, subject, body)
      SELECT ${Id.make("ntc")}, w.id, w.organization_id, ${cause}, ${recipient}, ${subject}, ${body} FROM webhooks w WHERE w.id = ${webhookId} ${
        unless === undefined
          ? sql.literal("")
          : sql`AND NOT EXISTS (SELECT 1 FROM notices n WHERE n.webhook_id = w.id AND n.cause LIKE ${`${unless.kind}/%`}
              AND n.created_at > now() - ${unless.within}::interval)`
      }
      ON CONFLICT (cause) DO NOTHING RETURNING id
    )
    ${insertCommands(sql, sql`SELECT id FROM written`)}`

  /** Calls `make` with the webhook's recipient and host, if the webhook exists. */
  const of = <E>(webhookId: string, make: (email: string, host: string) => Effect.Effect<unknown, E>) =>
    Effect.flatMap(
      decodeTargets(sql`SELECT w.url, w.notification_email AS email FROM webhooks w WHERE w.id = ${webhookId} AND w.deleted_at IS NULL`),
      ([target]) => (target === undefined ? Effect.void : Effect.asVoid(make(target.email, hostOf(target.url))))
    )

  return {
    disabled: (cause: Cause, { at, ...disabled }: Disabled, gone: boolean) =>
      of(cause.webhookId, (email, host) =>
        write(cause.webhookId, `disabled/${cause.webhookId}/${at}`, email, texts.disabled({ ...cause, ...disabled, host, gone }))
      ),
    /** At most one an hour; the queue remembers that there was one. */
    held: (cause: Cause, at: string) =>
      of(cause.webhookId, (email, host) =>
        Effect.gen(function* () {
          const held = yield* countWaiting(sql, cause.webhookId)
          yield* write(cause.webhookId, `held/${cause.webhookId}/${at}`, email, texts.held({ ...cause, host, held }), {
            kind: "held",
            within: "1 hour"
          })
          yield* sql`
            UPDATE webhook_queues SET noticed = true WHERE webhook_id = ${cause.webhookId}
              AND EXISTS (SELECT 1 FROM notices n WHERE n.cause = ${`held/${cause.webhookId}/${at}`})`
        })
      ),
    streak: (cause: Cause, isDown: boolean) =>
      Effect.gen(function* () {
        const key = `streak/${cause.webhookId}/${cause.since}`
        if ((yield* sql`SELECT 1 FROM notices WHERE cause = ${key}`).length > 0) return
        const held = isDown ? yield* countWaiting(sql, cause.webhookId) : undefined
        yield* of(cause.webhookId, (email, host) => write(cause.webhookId, key, email, texts.streak({ ...cause, host, held })))
      }),
    /** At most one a day. */
    failed: (cause: Cause) =>
      of(cause.webhookId, (email, host) =>
        write(cause.webhookId, `failed/${cause.webhookId}/${cause.deliveryId}`, email, texts.failed({ ...cause, host }), {
          kind: "failed",
          within: "1 day"
        })
      ),
    /** The endpoint answers again, and everything that was held has been sent. */
    recovered: (webhookId: string, since: string, delivered: number) =>
      Effect.gen(function* () {
        const [rest = { failed: 0, retrying: 0 }] = yield* decodeRest(sql`
          SELECT (SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status = 'RETRYING'
            LIMIT ${COUNTED + 1}) waiting) AS retrying, coalesce(sum(failed), 0)::integer AS failed FROM webhook_counters
          WHERE webhook_id = ${webhookId} AND slot >= date_bin('10 minutes', ${since}::timestamptz, 'epoch')`)
        yield* of(webhookId, (email, host) =>
          write(webhookId, `recovered/${webhookId}/${since}`, email, texts.recovered({ webhookId, host, since, delivered, ...rest }))
        )
      })
  }
}
