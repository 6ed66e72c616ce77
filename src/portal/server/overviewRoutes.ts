/**
 * The portal's routes beside the API: names for selection, counts and health for lists, exact payloads, and commands on
 * waiting deliveries.
 */

import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Duration, Effect, Option } from "effect"
import { type PrincipalState, scopes } from "../../access/credentials/Principal.ts"
import { Admission } from "../../access/visibility/Admission.ts"
import { statuses } from "../../delivery/deliveries/Delivery.ts"
import { DeliveryCommands } from "../../delivery/deliveries/DeliveryCommands.ts"
import { RequestPreview } from "../../delivery/deliveries/RequestPreview.ts"
import { WaitingDeliveries } from "../../delivery/deliveries/WaitingDeliveries.ts"
import { COUNTED, RecoveriesRepo } from "../../delivery/recoveries/RecoveriesRepo.ts"
import { ACTIVE_PER_ENTITY } from "../../delivery/webhooks/limit.ts"
import { LIVE_SECRETS } from "../../delivery/webhooks/signingSecret.ts"
import { ALWAYS_PORTS } from "../../delivery/webhooks/url.ts"
import { kinds, names } from "../../events/log/Kind.ts"
import { RETENTION_DAYS } from "../../events/log/logWindow.ts"
import { notFound } from "../../http/Problem.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { isStorable } from "../../values/givenId.ts"
import { principalOf, Sessions } from "../signIn/Sessions.ts"
import { explorersOf } from "./explorers.ts"
import { IDS_PER_REQUEST, Overview, type Span } from "./Overview.ts"
import { done, parameter, pathId, route } from "./respond.ts"
import { Search } from "./Search.ts"

/** Runs a request of the signed-in user when the organization gets a slot. */
const asking = <A, E, R>(ask: (caller: PrincipalState) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const caller = principalOf(yield* (yield* Sessions).complete)
    return yield* (yield* Admission).admit(caller, ask(caller))
  })

/** Runs a command on the object that the path names. */
const command = <E, R>(act: (caller: PrincipalState, id: string) => Effect.Effect<unknown, E, R>) =>
  asking((caller) =>
    Effect.as(
      Effect.flatMap(pathId, (id) => act(caller, id)),
      done
    )
  )

/** The comma-separated ids of a query; those past {@link IDS_PER_REQUEST} are ignored. */
const idsOf = Effect.map(parameter("ids"), (ids) =>
  ids
    .split(",")
    .filter((id) => id !== "" && isStorable(id))
    .slice(0, IDS_PER_REQUEST)
)

export const overviewRoutes = HttpRouter.empty.pipe(
  route(
    "GET /context",
    asking((caller) =>
      Effect.gen(function* () {
        const { portalExplorers, webhookAllowPorts, webhookRotationGrace } = yield* Settings
        return {
          ...(yield* (yield* Overview).visibleNames(caller)),
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
          webhookPorts: [...ALWAYS_PORTS, ...webhookAllowPorts],
          explorers: explorersOf(portalExplorers)
        }
      })
    )
  ),
  route(
    "GET /event-counts",
    asking((caller) =>
      Effect.gen(function* () {
        return yield* (yield* Overview).eventCounts(caller, yield* idsOf)
      })
    )
  ),
  route(
    "GET /webhook-health",
    asking((caller) =>
      Effect.gen(function* () {
        return yield* (yield* Overview).webhookHealth(caller, yield* idsOf)
      })
    )
  ),
  route(
    "GET /webhook-traffic",
    asking((caller) =>
      Effect.gen(function* () {
        const wanted = yield* parameter("span")
        const span: Span = wanted === "7d" || wanted === "31d" ? wanted : "24h"
        return yield* (yield* Overview).traffic(caller, yield* idsOf, span)
      })
    )
  ),
  route(
    "GET /event-data",
    asking((caller) =>
      Effect.gen(function* () {
        return yield* (yield* Overview).eventData(caller, yield* idsOf)
      })
    )
  ),
  route(
    "GET /asset-names",
    asking((caller) =>
      Effect.gen(function* () {
        return yield* (yield* Overview).assetNames(caller, yield* idsOf)
      })
    )
  ),
  route(
    "GET /search",
    asking((caller) =>
      Effect.gen(function* () {
        const text = (yield* parameter("q")).trim().slice(0, 256)
        return { data: text.length < 2 || !isStorable(text) ? [] : yield* (yield* Search).find(caller, text) }
      })
    )
  ),
  route(
    "GET /webhooks/:id/missed",
    asking((caller) =>
      Effect.gen(function* () {
        const id = yield* pathId
        const hours = Math.min(RETENTION_DAYS * 24, Math.max(1, Number(yield* parameter("hours")) || 24))
        const since = new Date(Date.now() - hours * 3_600_000).toISOString()
        return { since, count: yield* (yield* RecoveriesRepo).missed(caller, id, since), countedUpTo: COUNTED }
      })
    )
  ),
  HttpRouter.get(
    "/events/:id/payload",
    asking((caller) =>
      Effect.gen(function* () {
        return yield* Option.match(yield* (yield* Overview).payload(caller, yield* pathId), {
          onNone: () => notFound(),
          onSome: (payload) => Effect.succeed(HttpServerResponse.text(payload, { contentType: "application/json" }))
        })
      })
    )
  ),
  route(
    "POST /webhooks/:id/retry-waiting",
    command((caller, id) => Effect.flatMap(WaitingDeliveries, (all) => all.retryAll(caller, id)))
  ),
  route(
    "POST /webhooks/:id/cancel-waiting",
    command((caller, id) => Effect.flatMap(WaitingDeliveries, (all) => all.cancelAll(caller, id)))
  ),
  route(
    "POST /deliveries/:id/retry-now",
    command((caller, id) => Effect.flatMap(DeliveryCommands, (all) => all.retryNow(caller, id)))
  ),
  route(
    "POST /deliveries/:id/cancel",
    command((caller, id) => Effect.flatMap(DeliveryCommands, (all) => all.cancel(caller, id)))
  ),
  route(
    "POST /deliveries/:id/request-preview",
    asking((caller) =>
      Effect.gen(function* () {
        return yield* (yield* RequestPreview).signed(caller, yield* pathId)
      })
    )
  )
)
