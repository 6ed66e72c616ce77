/**
 * The portal's routes beside the API: names for selection, counts and health for lists, exact payloads, and commands on
 * waiting deliveries.
 */

import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Duration, Effect, Option, Record } from "effect"
import { type PrincipalState, scopes } from "../../access/credentials/Principal.ts"
import { StatementsRepo } from "../../custody/statements/StatementsRepo.ts"
import { statuses } from "../../delivery/deliveries/Delivery.ts"
import { DeliveryCommands } from "../../delivery/deliveries/DeliveryCommands.ts"
import { RequestPreview } from "../../delivery/deliveries/RequestPreview.ts"
import { WaitingDeliveries } from "../../delivery/deliveries/WaitingDeliveries.ts"
import { COUNTED, RecoveriesRepo } from "../../delivery/recoveries/RecoveriesRepo.ts"
import { ACTIVE_PER_ENTITY } from "../../delivery/webhooks/limit.ts"
import { LIVE_SECRETS } from "../../delivery/webhooks/signingSecret.ts"
import { portsOf } from "../../delivery/webhooks/url.ts"
import { eventSchema } from "../../events/log/eventSchema.ts"
import { isKind, kinds, names } from "../../events/log/Kind.ts"
import { RETENTION_DAYS } from "../../events/log/logWindow.ts"
import { sampleEvent } from "../../events/log/sampleEvent.ts"
import { jsonOfRow, jsonText } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { isStorable } from "../../values/givenId.ts"
import { inTurn, principalOf, Sessions } from "../signIn/Sessions.ts"
import { explorersOf } from "./explorers.ts"
import { IDS_PER_REQUEST, Overview, type Span, spans } from "./Overview.ts"
import { done, PortalApi, PortalContext } from "./PortalApi.ts"
import { Search } from "./Search.ts"

/** Runs a request of the signed-in user when the organization gets a slot. */
const asking = <A, E, R>(ask: (caller: PrincipalState) => Effect.Effect<A, E, R>) =>
  inTurn("complete", (session) => ask(principalOf(session)))

/** Runs a command. */
const command = <E, R>(act: (caller: PrincipalState) => Effect.Effect<unknown, E, R>) => asking((caller) => Effect.as(act(caller), done))

/** The comma-separated ids of a query; those past `most` are ignored. */
const idsOf = (text = "", most = IDS_PER_REQUEST): ReadonlyArray<string> =>
  text
    .split(",")
    .filter((id) => id !== "" && isStorable(id))
    .slice(0, most)

export const layer = HttpApiBuilder.group(PortalApi, "overview", (handlers) =>
  handlers
    .handleRaw("getContext", () =>
      asking((caller) =>
        Effect.gen(function* () {
          const { portalExplorers, smtpUrl, webhookAllowPorts, webhookRotationGrace, webhookSourceAddresses } = yield* Settings
          const found = yield* (yield* Overview).visibleNames(caller)
          const rest: Omit<PortalContext, "entities" | "vaults"> = {
            scopes,
            kinds: names.map((name) => ({
              name,
              when: kinds[name].when,
              scope: kinds[name].scope,
              schemaVersion: kinds[name].schemaVersion
            })),
            deliveryStatuses: statuses,
            activePerEntity: ACTIVE_PER_ENTITY,
            liveSecrets: LIVE_SECRETS,
            rotationGraceSeconds: Duration.toSeconds(webhookRotationGrace),
            retentionDays: RETENTION_DAYS,
            webhookPorts: portsOf({ ports: webhookAllowPorts }),
            webhookSourceAddresses: webhookSourceAddresses.map(({ text }) => text),
            sendsMail: smtpUrl !== undefined,
            explorers: explorersOf(portalExplorers)
          }
          return jsonText(jsonOfRow(Record.keys(PortalContext.fields), { ...rest, ...found }, found))
        })
      )
    )
    .handle("getEventCounts", ({ urlParams: { ids } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          return yield* (yield* Overview).eventCounts(caller, idsOf(ids))
        })
      )
    )
    .handle("getWebhookHealth", ({ urlParams: { ids } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          return yield* (yield* Overview).webhookHealth(caller, idsOf(ids))
        })
      )
    )
    .handleRaw("getWebhookTraffic", ({ urlParams: { ids, span: wanted } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          const span: Span = wanted === "7d" || wanted === "31d" ? wanted : "24h"
          return jsonText(yield* (yield* Overview).traffic(caller, idsOf(ids, spans[span].webhooks), span))
        })
      )
    )
    .handle("getEventKind", ({ path: { kind } }) =>
      Effect.gen(function* () {
        yield* (yield* Sessions).complete
        return isKind(kind)
          ? {
              sample: sampleEvent("evt_00000000000000000000000000", kind, new Date().toISOString()),
              schema: JSON.stringify(eventSchema(kind))
            }
          : yield* notFound()
      })
    )
    .handle("getEventData", ({ urlParams: { ids } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          return yield* (yield* Overview).eventData(caller, idsOf(ids))
        })
      )
    )
    .handle("getAuditNames", ({ urlParams: { ids } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          return yield* (yield* Overview).auditNames(caller, idsOf(ids))
        })
      )
    )
    .handle("getAssetNames", ({ urlParams: { ids } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          return yield* (yield* Overview).assetNames(caller, idsOf(ids))
        })
      )
    )
    .handle("getStatementDays", ({ path: { id } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          const days = yield* (yield* StatementsRepo).sealed(caller, id)
          return yield* Effect.mapError(days, notFound)
        })
      )
    )
    .handle("search", ({ urlParams: { q = "" } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          const text = q.trim().slice(0, 256)
          if (text.length < 2 || !isStorable(text)) return { data: [], searched: "nothing yet: at least two characters are needed" }
          return yield* (yield* Search).find(caller, text)
        })
      )
    )
    .handle("countMissed", ({ path: { id }, urlParams }) =>
      asking((caller) =>
        Effect.gen(function* () {
          const hours = Math.min(RETENTION_DAYS * 24, Math.max(1, Number(urlParams.hours) || 24))
          return { ...(yield* (yield* RecoveriesRepo).missed(caller, id, hours)), countedUpTo: COUNTED }
        })
      )
    )
    .handleRaw("getPayload", ({ path: { id } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          return yield* Option.match(yield* (yield* Overview).payload(caller, id), {
            onNone: () => notFound(),
            onSome: (payload) => Effect.succeed(HttpServerResponse.text(payload, { contentType: "application/json" }))
          })
        })
      )
    )
    .handle("retryWaiting", ({ path: { id } }) => command((caller) => Effect.flatMap(WaitingDeliveries, (all) => all.retryAll(caller, id))))
    .handle("cancelWaiting", ({ path: { id } }) =>
      command((caller) => Effect.flatMap(WaitingDeliveries, (all) => all.cancelAll(caller, id)))
    )
    .handle("retryNow", ({ path: { id } }) => command((caller) => Effect.flatMap(DeliveryCommands, (all) => all.retryNow(caller, id))))
    .handle("cancelDelivery", ({ path: { id } }) => command((caller) => Effect.flatMap(DeliveryCommands, (all) => all.cancel(caller, id))))
    .handle("previewRequest", ({ path: { id } }) =>
      asking((caller) =>
        Effect.gen(function* () {
          return yield* (yield* RequestPreview).signed(caller, id)
        })
      )
    )
)
