/**
 * The portal's paths beside the API's own: names to choose from, counts and health for lists, exact payloads, and what
 * can be asked of a delivery that waits.
 */
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Duration, Effect, Option } from "effect"
import { scopes } from "../credentials/Principal.ts"
import { statuses } from "../deliveries/Delivery.ts"
import { Nudges } from "../deliveries/Nudges.ts"
import { Samples } from "../deliveries/Samples.ts"
import { RETENTION_DAYS } from "../events/Event.ts"
import { kinds, names } from "../events/Kind.ts"
import { notFound } from "../http/Problem.ts"
import { Settings } from "../settings/Settings.ts"
import { ACTIVE_PER_ENTITY } from "../webhooks/limit.ts"
import { LIVE_SECRETS } from "../webhooks/Webhooks.ts"
import { AT_ONCE, Overview } from "./Overview.ts"
import { done, json, pathId } from "./respond.ts"
import { principalOf, Sessions } from "./Sessions.ts"

const principal = Effect.flatMap(Sessions, ({ complete }) => Effect.map(complete, principalOf))

/** The ids of a query, comma-separated; more than {@link AT_ONCE} are not looked at. */
const idsOf = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) =>
  (new URLSearchParams(url.split("?", 2)[1]).get("ids") ?? "")
    .split(",")
    .filter((id) => id !== "" && !id.includes("\u0000"))
    .slice(0, AT_ONCE)
)

export const workRoutes = HttpRouter.empty.pipe(
  HttpRouter.get(
    "/context",
    Effect.gen(function* () {
      const { webhookRotationGrace } = yield* Settings
      return json({
        ...(yield* (yield* Overview).reach(yield* principal)),
        scopes,
        kinds: names.map((name) => ({ name, when: kinds[name].when, scope: kinds[name].scope })),
        deliveryStatuses: statuses,
        activePerEntity: ACTIVE_PER_ENTITY,
        liveSecrets: LIVE_SECRETS,
        rotationGraceSeconds: Duration.toSeconds(webhookRotationGrace),
        retentionDays: RETENTION_DAYS
      })
    })
  ),
  HttpRouter.get(
    "/event-counts",
    Effect.gen(function* () {
      const caller = yield* principal
      return json(yield* (yield* Overview).eventCounts(caller, yield* idsOf))
    })
  ),
  HttpRouter.get(
    "/webhook-health",
    Effect.gen(function* () {
      const caller = yield* principal
      return json(yield* (yield* Overview).webhookHealth(caller, yield* idsOf))
    })
  ),
  HttpRouter.get(
    "/events/:id/payload",
    Effect.gen(function* () {
      const caller = yield* principal
      return yield* Option.match(yield* (yield* Overview).payload(caller, yield* pathId), {
        onNone: () => notFound(),
        onSome: (payload) => Effect.succeed(HttpServerResponse.text(payload, { contentType: "application/json" }))
      })
    })
  ),
  HttpRouter.post(
    "/deliveries/:id/retry-now",
    Effect.gen(function* () {
      const caller = yield* principal
      yield* (yield* Nudges).retryNow(caller, yield* pathId)
      return done()
    })
  ),
  HttpRouter.post(
    "/deliveries/:id/cancel",
    Effect.gen(function* () {
      const caller = yield* principal
      yield* (yield* Nudges).cancel(caller, yield* pathId)
      return done()
    })
  ),
  HttpRouter.post(
    "/deliveries/:id/sample",
    Effect.gen(function* () {
      const caller = yield* principal
      return json(yield* (yield* Samples).signed(caller, yield* pathId))
    })
  )
)
