/**
 * Commands on webhooks: create, update, delete, rotate the secret. Each is one transaction that includes its checks on
 * the locked row: what the caller can see (webhookScope.ts), how many there are (limit.ts), which URLs are allowed
 * (url.ts). A transaction that fails with a deadlock or serialization error is repeated. Spec: Webhook operations;
 * Delivery contract 5 to 7. Decisions D-8, D-19, D-25, D-29.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Either, Redacted, Schema } from "effect"
import { type Action, type Changes, changed, recordOf } from "../../access/audit/AuditTrail.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import * as EventLog from "../../events/log/EventLog.ts"
import { removeUnused } from "../../events/retention/removeDeletedWebhooks.ts"
import { fieldIssue, invalidFields } from "../../http/Body.ts"
import { type ProblemOf, problem } from "../../http/Problem.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { Bytes, decodeRows } from "../../runtime/database/decodeRows.ts"
import { transaction } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import * as Id from "../../values/Id.ts"
import * as gateway from "../gateway/gatewayCredentials.ts"
import { changesOf } from "./auditedChanges.ts"
import { beginGrace } from "./beginGrace.ts"
import { lastSequence, requestCancellation, runCancellation } from "./cancelWaiting.ts"
import { type CredentialChange, changedCredentials } from "./changedCredentials.ts"
import { endRecoveries } from "./endRecoveries.ts"
import { endStreak } from "./failureStreak.ts"
import { requireRoom } from "./limit.ts"
import { lockWebhook } from "./lockWebhook.ts"
import * as queue from "./queue.ts"
import * as Secret from "./signingSecret.ts"
import * as url from "./url.ts"
import { type CreateWebhook, type RotateSecret, type UpdateWebhook, Webhook } from "./Webhook.ts"
import { columns } from "./WebhooksRepo.ts"
import { requireReadableKinds, requireVaults, requireWebhookScope, seesAll } from "./webhookScope.ts"

const decode = decodeRows(Webhook)
const decodeCredentials = decodeRows(Schema.Struct({ sealed: Schema.NullOr(Bytes) }))
/** Whether a patch lets a webhook receive events that it did not receive before. */
const widens = ({ eventKinds, vaultIds }: Webhook, patch: UpdateWebhook): boolean => {
  const adds = (wanted: ReadonlyArray<string> | undefined, had: ReadonlyArray<string>) => wanted?.some((one) => !had.includes(one)) === true
  return adds(patch.eventKinds, eventKinds) || (vaultIds !== null && (patch.vaultIds === null || adds(patch.vaultIds, vaultIds)))
}

const decodeTimes = decodeRows(Schema.Struct({ at: Schema.String }))

export class Webhooks extends Effect.Service<Webhooks>()("custody/Webhooks", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const master = yield* MasterKey
    const settings = yield* Settings
    const allowed: url.Allowed = { cidrs: settings.webhookAllowCidrs, ports: settings.webhookAllowPorts }

    const checkUrl = (text: string, field = "url"): Effect.Effect<string, ProblemOf<"invalid_body" | "url_not_deliverable">> =>
      Either.match(url.check(text, allowed), {
        onRight: (href) => Effect.succeed(href),
        onLeft: ({ code, detail }) =>
          code === "invalid_body"
            ? Effect.fail(invalidFields([fieldIssue(field, detail)]))
            : Effect.fail(
                problem("url_not_deliverable", `${field} ${detail}.`, { fields: [fieldIssue(field, detail, "url_not_deliverable")] })
              )
      })

    /** A body's credentials with the token URL to store. */
    const checkTokenUrl = ({
      headers,
      oauth
    }: CredentialChange): Effect.Effect<CredentialChange, ProblemOf<"invalid_body" | "url_not_deliverable">> =>
      oauth?.tokenUrl === undefined
        ? Effect.succeed({ headers, oauth })
        : Effect.map(checkUrl(oauth.tokenUrl, "oauth.tokenUrl"), (tokenUrl) => ({ headers, oauth: { ...oauth, tokenUrl } }))

    /** Names of headers, OAuth client credentials without their secret, and everything encrypted: values of their columns. */
    const storedCredentials = (webhookId: string, credentials: gateway.GatewayCredentials) => {
      const { clientSecret: _, ...oauth } = credentials.oauth ?? {}
      return [
        sql`${credentials.headers.map(([name]) => name)}::text[]`,
        sql`${credentials.oauth === null ? null : JSON.stringify(oauth)}::jsonb`,
        sql`${gateway.seal(master, webhookId, credentials)}::bytea`
      ]
    }

    const audit = (principal: PrincipalState, action: Action, webhookId: string, changes: Changes = {}) =>
      recordOf(sql, principal, action, { type: "webhook", id: webhookId }, changes)

    const read = Effect.fnUntraced(function* (webhookId: string) {
      const [found] = yield* decode(sql`SELECT ${sql.literal(columns)} FROM webhooks w WHERE w.id = ${webhookId}`)
      return found === undefined ? yield* Effect.die(new Error(`the webhook ${webhookId} is missing within its transaction`)) : found
    })

    const lock = (principal: PrincipalState, webhookId: string) => Effect.zipRight(lockWebhook(sql, principal, webhookId), read(webhookId))

    /** Checks that the caller may create this webhook, and returns its normalized URL and its entities. Call it in a transaction. */
    const requireCreatable = Effect.fnUntraced(function* (principal: PrincipalState, body: CreateWebhook) {
      const href = yield* checkUrl(body.url)
      const entityIds = yield* requireWebhookScope(sql, principal, body.entityIds, body.vaultIds)
      yield* requireReadableKinds(principal, body.eventKinds)
      const credentials = yield* changedCredentials(yield* checkTokenUrl(body), href, undefined)
      yield* requireRoom(sql, entityIds, { active: body.status !== "DISABLED", added: true })
      return { href, entityIds, credentials }
    })

    /** The credentials of a locked webhook after a patch; undefined if they stay. */
    const patchedCredentials = Effect.fnUntraced(function* (known: Webhook, patch: UpdateWebhook, href: string) {
      const isWithout = known.headers.length === 0 && known.oauth === null
      const isNew = patch.headers !== undefined || patch.oauth !== undefined
      if (!isNew && (isWithout || href === known.url)) return undefined
      const [row] = yield* decodeCredentials(sql`SELECT gateway_credentials AS sealed FROM webhooks WHERE id = ${known.id}`)
      const stored = gateway.open(master, known.id, row?.sealed ?? null)
      const credentials = yield* changedCredentials(yield* checkTokenUrl(patch), href, { ...known, stored })
      return isNew ? credentials : undefined
    })

    /** Locks the webhook, checks that the caller may apply this patch, and returns what it changes. Call it in a transaction. */
    const requireUpdatable = Effect.fnUntraced(function* (principal: PrincipalState, webhookId: string, patch: UpdateWebhook) {
      const known = yield* lock(principal, webhookId)
      const href = patch.url === undefined ? known.url : yield* checkUrl(patch.url)
      const status = patch.status ?? known.status
      const enabling = status !== "DISABLED" && known.status === "DISABLED"
      const resuming = status === "ACTIVE" && known.status === "PAUSED"
      const disabling = status === "DISABLED" && known.status !== "DISABLED"
      const moving = href !== known.url
      // The URL and the status need the same checks as the filters. Who sees the webhook reaches its entities.
      if (patch.vaultIds !== undefined || patch.eventKinds !== undefined || moving || enabling || resuming) {
        yield* requireVaults(sql, principal, known.entityIds, patch.vaultIds === undefined ? known.vaultIds : patch.vaultIds)
        yield* requireReadableKinds(principal, patch.eventKinds ?? known.eventKinds)
      }
      const credentials = yield* patchedCredentials(known, patch, href)
      if (enabling) yield* requireRoom(sql, known.entityIds, { active: true, added: false })
      return { known, href, credentials, status, enabling, resuming, disabling, moving }
    })

    /** Puts a change of what a webhook receives after events that are being recorded and before all others, so that none is missed. */
    const inTurnWithEvents = (principal: PrincipalState) => EventLog.lock(sql, [principal.organizationId])

    const removeSecrets = (webhookId: string) => sql`DELETE FROM webhook_secrets WHERE webhook_id = ${webhookId}`

    /** Runs a change in a transaction, and then some of the cancellations that it requested; the webhook's drain does the rest. */
    const afterwards = <A, E, R>(change: Effect.Effect<A, E, R>, _principal: PrincipalState, webhookId: string) =>
      Effect.tap(transaction(sql)(change), () =>
        Effect.repeat(runCancellation(sql, webhookId), { times: 1, until: ({ done }) => done }).pipe(
          Effect.catchAllCause((cause) =>
            Effect.logWarning("waiting deliveries of a webhook could not be canceled yet and will be canceled later", cause)
          )
        )
      )

    return {
      /** Fails where `create` would fail, and changes nothing. */
      check: (principal: PrincipalState, body: CreateWebhook) => transaction(sql)(requireCreatable(principal, body)),

      /** Fails where `update` would fail, and changes nothing. */
      checkUpdate: (principal: PrincipalState, webhookId: string, patch: UpdateWebhook) =>
        transaction(sql)(requireUpdatable(principal, webhookId, patch)),

      /** Creates a webhook and returns its secret, only this once. Call it in a transaction. Spec: POST /v1/webhooks. */
      create: Effect.fn("Webhooks.create")(function* (principal: PrincipalState, body: CreateWebhook) {
        const { credentials, entityIds, href } = yield* requireCreatable(principal, body)
        const id = Id.make("whs"),
          secret = Secret.make()
        const disabled = body.status === "DISABLED"
        if (!disabled) yield* inTurnWithEvents(principal)
        yield* sql`
          INSERT INTO webhooks (id, organization_id, url, description, status, disabled_reason, disabled_at, event_kinds, vault_ids, notification_email,
            header_names, oauth, gateway_credentials)
          VALUES (${id}, ${principal.organizationId}, ${href}, ${body.description}, ${body.status}, ${disabled ? "MANUAL" : null},
            CASE WHEN ${disabled} THEN now() END, ${body.eventKinds}::text[], ${body.vaultIds}::text[], ${body.notificationEmail},
            ${sql.csv(storedCredentials(id, credentials))})`
        yield* sql`
          INSERT INTO webhook_entities (webhook_id, entity_id, organization_id, created_at, status)
          SELECT w.id, a.id, w.organization_id, w.created_at, w.status
          FROM webhooks w CROSS JOIN unnest(${entityIds}::text[]) AS a (id) WHERE w.id = ${id}`
        yield* sql`INSERT INTO webhook_secrets (webhook_id, ciphertext) VALUES (${id}, ${Secret.seal(master, id, secret)})`
        if (body.status === "PAUSED") yield* queue.pause(sql, id)
        const made = yield* read(id)
        yield* audit(principal, "webhook.created", id, changesOf(undefined, made, {}))
        return { ...made, secret: Redacted.value(secret) }
      }),

      /** Applies a patch. Enabling counts against the limit; it and a new URL start a new streak; disabling cancels waiting deliveries; pausing holds them. `isConfirmed`: whether a session may change the URL. */
      update: Effect.fn("Webhooks.update")(function* (
        principal: PrincipalState,
        webhookId: string,
        patch: UpdateWebhook,
        isConfirmed: boolean
      ) {
        const { credentials, disabling, enabling, href, known, moving, resuming, status } = yield* requireUpdatable(
          principal,
          webhookId,
          patch
        )
        if (Object.keys(patch).length === 0) return known
        if (enabling || (status !== "DISABLED" && widens(known, patch))) yield* inTurnWithEvents(principal)
        // The patch has the URL of before: another owner has moved the webhook since.
        if (moving && !isConfirmed && principal.sessionId !== null)
          return yield* Effect.die(
            problem("second_factor_required", "The URL was changed meanwhile.", { fields: [fieldIssue("code", "is missing", "missing")] })
          )
        // Waiting deliveries may belong to vaults that the webhook no longer covers. They must not go to a URL of somebody
        // who cannot read them: they are canceled in their turn. What the webhook covers, an owner sees, but for events without a vault if
        // the key has an allowlist.
        const hiding = moving && !(yield* seesAll(sql, principal, known.entityIds))
        // Before its queue is locked, as a failure is recorded.
        if (enabling || moving) yield* endStreak(sql, webhookId)
        // A new URL, or new credentials for a gateway, may work where the old ones did not.
        if (moving || credentials !== undefined) yield* queue.probeNow(sql, webhookId)
        if (disabling) {
          yield* requestCancellation(sql, webhookId, "WEBHOOK_DISABLED")
          yield* endRecoveries(sql, webhookId)
        }
        if (status === "PAUSED" && known.status !== "PAUSED") yield* queue.pause(sql, webhookId)
        if (resuming) yield* queue.sendNow(sql, webhookId)
        yield* sql`
          UPDATE webhooks SET url = ${href}, event_kinds = ${patch.eventKinds ?? known.eventKinds}::text[],
            vault_ids = ${patch.vaultIds === undefined ? known.vaultIds : patch.vaultIds}::text[],
            description = ${patch.description === undefined ? known.description : (patch.description ?? "")}, status = ${status},
            disabled_reason = CASE WHEN ${disabling} THEN 'MANUAL' WHEN ${enabling} THEN NULL ELSE disabled_reason END,
            disabled_at = CASE WHEN ${disabling} THEN now() WHEN ${enabling} THEN NULL ELSE disabled_at END,
            moved_at = CASE WHEN ${hiding} THEN clock_timestamp() ELSE moved_at END,
            moved_to = CASE WHEN ${hiding} THEN ${lastSequence(sql, webhookId)} ELSE moved_to END,
            hidden_to = CASE WHEN ${hiding && principal.vaultAllowlist !== null} THEN ${lastSequence(sql, webhookId)} ELSE hidden_to END,
            ${
              credentials === undefined
                ? sql.literal("")
                : sql`(header_names, oauth, gateway_credentials) = ROW(${sql.csv(storedCredentials(webhookId, credentials))}),`
            }
            updated_at = now()
          WHERE id = ${webhookId}`
        const now = yield* read(webhookId)
        yield* audit(principal, "webhook.updated", webhookId, changesOf(known, now, patch))
        return now
      }, afterwards),

      /**
       * Deletes a webhook. Its deliveries stay readable through their events, and its row with them; waiting ones are canceled.
       * Without deliveries, nothing stays.
       */
      delete: Effect.fn("Webhooks.delete")(function* (principal: PrincipalState, webhookId: string) {
        yield* lockWebhook(sql, principal, webhookId)
        yield* audit(principal, "webhook.deleted", webhookId)
        if (yield* removeUnused(sql, webhookId)) return
        yield* requestCancellation(sql, webhookId, "WEBHOOK_DELETED")
        yield* endRecoveries(sql, webhookId)
        yield* sql`
          UPDATE webhooks SET deleted_at = now(), status = 'DISABLED', disabled_reason = coalesce(disabled_reason, 'MANUAL'),
            disabled_at = coalesce(disabled_at, now()), header_names = '{}', oauth = NULL, gateway_credentials = NULL, updated_at = now() WHERE id = ${webhookId}`
        // A deleted webhook never sends again.
        yield* removeSecrets(webhookId)
      }, afterwards),

      /**
       * Creates a new secret and returns it, only this once; requests are signed with the previous one as well during the
       * grace period, or, with `expirePrevious`, with none of the earlier ones. At most three are valid. Call it in a
       * transaction. Spec: rotate-secret; Limits. C-12.
       */
      rotateSecret: Effect.fn("Webhooks.rotateSecret")(function* (
        principal: PrincipalState,
        webhookId: string,
        { expirePrevious }: RotateSecret
      ) {
        const known = yield* lock(principal, webhookId)
        const expires =
          expirePrevious === "now"
            ? yield* Effect.as(removeSecrets(webhookId), null)
            : yield* beginGrace(sql, webhookId, settings.webhookRotationGrace)
        const secret = Secret.make()
        yield* sql`INSERT INTO webhook_secrets (webhook_id, ciphertext) VALUES (${webhookId}, ${Secret.seal(master, webhookId, secret)})`
        const [updated] = yield* decodeTimes(sql`
          UPDATE webhooks SET updated_at = now() WHERE id = ${webhookId} RETURNING updated_at AS at`)
        if (updated === undefined) return yield* Effect.die(new Error(`the webhook ${webhookId} is missing although it is locked`))
        yield* EventLog.record(
          sql,
          known.entityIds.map((entityId) => ({
            kind: "webhook.secret_rotated",
            date: updated.at,
            organizationId: principal.organizationId,
            entityId,
            vaultId: null,
            audience: known.entityIds,
            data: { webhookId, webhook: { id: webhookId, previousSecretExpiresAt: expires ?? updated.at } }
          }))
        )
        yield* audit(principal, "webhook.secret_rotated", webhookId, changed(["expirePrevious"], undefined, { expirePrevious }))
        return { id: webhookId, secret: Redacted.value(secret), previousSecretExpiresAt: expires }
      })
    }
  })
}) {
  static readonly layer = this.Default
}
