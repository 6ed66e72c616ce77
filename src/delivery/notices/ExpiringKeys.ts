/**
 * Announces API keys that expire soon: at each step before the expiry, by one event for each entity that the key reaches and by
 * one e-mail to its user and to each owner of the organization. The step is recorded in the key's row, in the transaction of the
 * event and the e-mails, so each is announced once, whichever processes look and wherever they are killed. After an outage only
 * the latest step is announced. A Temporal schedule looks every ten minutes. C-13.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { workflows } from "../../../workflows/contract.ts"
import { currentStep, FIRST_STEP } from "../../access/credentials/expirySteps.ts"
import { reachedEntities } from "../../access/visibility/visibility.ts"
import * as EventLog from "../../events/log/EventLog.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and, transaction } from "../../runtime/database/sql.ts"
import { insertCommands } from "../../runtime/temporal/commands.ts"
import { createSchedule } from "../../runtime/temporal/createSchedule.ts"
import * as Id from "../../values/Id.ts"
import { expiringKeyText } from "./expiringKeyText.ts"

/** Keys per query. */
const PAGE = 100
/** Most entities of a key's event: as many as a webhook covers. */
const ENTITIES = 100

const DueKey = Schema.Struct({ id: Schema.String, organizationId: Schema.String, expiresAt: Schema.String })
type DueKey = typeof DueKey.Type
const Key = Schema.Struct({
  label: Schema.String,
  hint: Schema.String,
  userId: Schema.String,
  userName: Schema.String,
  isOwner: Schema.Boolean,
  vaultAllowlist: Schema.NullOr(Schema.Array(Schema.String)),
  expiresAt: Schema.String,
  lastUsedAt: Schema.NullOr(Schema.String),
  lastUsedAddress: Schema.NullOr(Schema.String),
  daysBefore: Schema.Number
})
const decodeDue = decodeRows(DueKey),
  decodeKeys = decodeRows(Key),
  decodeEntities = decodeRows(Schema.Struct({ id: Schema.String })),
  decodeRecipients = decodeRows(Schema.Struct({ userId: Schema.String, email: Schema.String }))

export class ExpiringKeys extends Effect.Service<ExpiringKeys>()("custody/ExpiringKeys", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const step = currentStep(sql, sql.literal("k.expires_at"))
    /** True for a key `k` with its user `u` that has reached a step that was not announced. */
    const isDue = sql`k.revoked_at IS NULL AND u.status = 'active' AND k.expires_at > now()
      AND k.expires_at <= now() + make_interval(days => ${FIRST_STEP}) AND ${step} <> ALL (k.expiry_announced)`

    /** A page of keys in the order of their expiry, after the last one of the page before. */
    const dueKeys = (last: DueKey | undefined) =>
      decodeDue(sql`
        SELECT k.id, u.organization_id AS "organizationId", k.expires_at::text AS "expiresAt"
        FROM api_keys k JOIN users u ON u.id = k.user_id
        WHERE ${isDue} ${and(sql, last !== undefined && sql`(k.expires_at, k.id) > (${last.expiresAt}::timestamptz, ${last.id})`)}
        ORDER BY k.expires_at, k.id LIMIT ${PAGE}`)

    const recordEvents = Effect.fnUntraced(function* (streams: EventLog.Streams, { id, organizationId }: DueKey, key: typeof Key.Type) {
      const { daysBefore, expiresAt, label, lastUsedAt, userId } = key
      const entities = yield* decodeEntities(sql`
        SELECT r.id FROM (${reachedEntities(sql, { ...key, organizationId })}) r ORDER BY r.id LIMIT ${ENTITIES}`)
      const audience = entities.map((entity) => entity.id)
      const occurrences = audience.map((entityId) => ({
        kind: "api_key.expiring" as const,
        date: new Date(streams.now).toISOString(),
        organizationId,
        entityId,
        vaultId: null,
        audience,
        data: { apiKeyId: id, apiKey: { id, label, userId, expiresAt, lastUsedAt }, daysBefore }
      }))
      yield* EventLog.append(sql, streams, occurrences, EventLog.identify(streams, occurrences))
    })

    /** Writes the e-mails: one for each address. Their ids are derived, so a restored backup repeats their Message-IDs. */
    const writeNotices = Effect.fnUntraced(function* ({ id, organizationId }: DueKey, key: typeof Key.Type) {
      const recipients = yield* decodeRecipients(sql`
        SELECT DISTINCT ON (lower(u.email)) u.id AS "userId", u.email FROM users u
        WHERE u.organization_id = ${organizationId} AND u.status = 'active' AND (u.id = ${key.userId} OR u.organization_role = 'owner')
        ORDER BY lower(u.email), u.id <> ${key.userId}, u.id`)
      const causes = recipients.map(({ userId }) => [id, key.expiresAt, String(key.daysBefore), userId])
      const texts = recipients.map(({ userId }) => expiringKeyText({ ...key, id, isTheirs: userId === key.userId }))
      yield* sql`
        WITH written AS (
          INSERT INTO notices (id, key_id, key_expires_at, organization_id, cause, recipient, subject, body)
          SELECT n.id, ${id}, ${key.expiresAt}::timestamptz, ${organizationId}, n.cause, n.recipient, n.subject, n.body
          FROM unnest(${causes.map((parts) => Id.ofKey("ntc", ...parts))}::text[], ${causes.map((parts) => `expiring/${parts.join("/")}`)}::text[],
            ${recipients.map(({ email }) => email)}::text[], ${texts.map(({ subject }) => subject)}::text[], ${texts.map(({ body }) => body)}::text[])
            AS n (id, cause, recipient, subject, body)
          ON CONFLICT DO NOTHING RETURNING id
        )
        ${insertCommands(sql, sql`SELECT id FROM written`)}`
    })

    /** Announces a key, unless another process did. */
    const announceKey = (due: DueKey) =>
      transaction(sql)(
        Effect.gen(function* () {
          // The stream is locked before the key, as by the ledger, which revokes keys.
          const streams = yield* EventLog.lock(sql, [due.organizationId])
          const [key] = yield* decodeKeys(sql`
            UPDATE api_keys k SET expiry_announced = k.expiry_announced || ${step} FROM users u
            WHERE k.id = ${due.id} AND u.id = k.user_id AND ${isDue}
            RETURNING k.label, k.hint, k.user_id AS "userId", u.name AS "userName", u.organization_role = 'owner' AS "isOwner",
              k.vault_ids AS "vaultAllowlist", k.expires_at AS "expiresAt", k.last_used_at AS "lastUsedAt",
              k.last_used_address AS "lastUsedAddress", k.expiry_announced[cardinality(k.expiry_announced)] AS "daysBefore"`)
          if (key === undefined) return "not due" as const
          yield* recordEvents(streams, due, key)
          yield* writeNotices(due, key)
          return "announced" as const
        })
      )

    return {
      /** Announces every key that is due. A failure is logged, and retried by the next look. Returns the counts. */
      announce: Effect.gen(function* () {
        const total = { announced: 0, failed: 0 }
        for (let last: DueKey | undefined, found = PAGE; found === PAGE; ) {
          const keys: ReadonlyArray<DueKey> = yield* dueKeys(last)
          for (const key of keys) {
            const outcome = yield* announceKey(key).pipe(
              Effect.catchAllCause((cause) =>
                Effect.logError("a key that expires soon could not be announced and will be retried", cause).pipe(
                  Effect.annotateLogs({ keyId: key.id }),
                  Effect.as("failed" as const)
                )
              )
            )
            if (outcome !== "not due") total[outcome]++
          }
          last = keys.at(-1)
          found = keys.length
        }
        return total
      })
    }
  })
}) {
  static readonly layer = this.Default
}

/** Creates the schedule if it is missing. */
export const schedule = createSchedule({
  name: "expiring-keys",
  workflowType: workflows.announceExpiringKeys,
  spec: { intervals: [{ every: "10 minutes" }] },
  catchupWindow: "1 minute"
})
