/**
 * Runs the first attempts of a group of deliveries concurrently: the same steps as for a single delivery, with the same
 * admission, rows, SSRF guard and signatures. An attempt that takes over a second leaves the group, together with the
 * others of its webhook, and continues in its own workflow, so a slow endpoint never delays the others: it is finished in
 * this process, where the workflow's first step joins it. A repeated activity joins the group that is running. Running the
 * group again after that is harmless: completed attempts are in their rows, and attempts of a dead process are closed as
 * interrupted and repeated. Architecture, What must hold 1.
 */
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Deferred, Effect, Fiber, Option } from "effect"
import type { AttemptOutcome, FirstAttemptsInput, FirstAttemptsOutcome } from "../../workflows/contract.ts"
import { deliveriesToStart } from "../deliveries/deliveriesToStart.ts"
import { type NotStarted, WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { Settings } from "../settings/Settings.ts"
import { TemporalConnection, type TemporalUnavailable } from "../temporal/Connection.ts"
import { AttemptRunner } from "./AttemptRunner.ts"
import { makeJoined } from "./joined.ts"
import { makePace } from "./pace.ts"

/** How long one attempt may take within a group, and how long a group begins new attempts, in ms. */
const PATIENCE_MS = 1_000,
  GROUP_MS = 5_000
/**
 * Groups whose attempts a process makes at the same time. After a stall a hundred may come at once; all of them together
 * would take the process longer than a workflow task lasts, and every group would be repeated.
 */
const GROUPS = 16
/**
 * Shortest time between two workflows that the groups of a process start, in ms, and how many may start at once after a
 * pause. On a Temporal server without fairness keys, the workflows of other organizations wait behind these.
 */
const START_EVERY_MS = 20,
  STARTS_AT_ONCE = 10

/** How a webhook's members continue: until when, and whether one of them took too long, so that the others leave. */
interface Pace {
  readonly until: number
  slow: boolean
}

type Member = FirstAttemptsInput["deliveries"][number]

/** The outcome of a member; `under way` if it is in flight; undefined if none was begun or it failed. */
type Result = AttemptOutcome | "under way" | undefined

const noticesOf = (result: Result) => (typeof result === "object" && "notices" in result ? result.notices : [])

export class FirstAttempts extends Effect.Service<FirstAttempts>()("custody/FirstAttempts", {
  scoped: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const attempts = yield* AttemptRunner
    const starter = yield* WorkflowStarter
    const { hostQueue } = yield* TemporalConnection
    const { webhookMaxInFlight } = yield* Settings
    const startTurn = makePace(START_EVERY_MS, STARTS_AT_ONCE)
    const making = yield* Effect.makeSemaphore(GROUPS)
    const inFlight = yield* makeJoined<FirstAttemptsOutcome, SqlError.SqlError | NotStarted | TemporalUnavailable>()

    /** Starts the notices of an attempt that has left its group: the delivery's workflow does not see it if it begins later. */
    const startNotices = ({ organizationId, webhookId }: Member, result: Result) =>
      Effect.forEach(
        noticesOf(result),
        // If Temporal is unavailable, and for the inputs of older workflows, the sweeper starts them.
        (noticeId) =>
          organizationId === undefined ? Effect.void : Effect.ignore(starter.startNotice(noticeId, organizationId, webhookId)),
        { discard: true }
      )

    const attempt = (member: Member, { waitsMs }: FirstAttemptsInput, pace: Pace) =>
      Effect.suspend((): Effect.Effect<Result> => {
        if (pace.slow || performance.now() > pace.until) return Effect.succeed(undefined)
        const step = attempts.step({
          deliveryId: member.deliveryId,
          webhookId: member.webhookId,
          waitsMs,
          after: 0,
          jitter: Math.random(),
          local: true,
          cancel: false,
          holds: true
        })
        // The delivery's own workflow repeats a failed step.
        const outcome = Effect.orElseSucceed(step, (): Result => undefined)
        return Effect.flatMap(Effect.forkDaemon(outcome), (running) => {
          const late = Effect.suspend(() => {
            pace.slow = true
            return Effect.as(
              Effect.forkDaemon(Effect.flatMap(Fiber.join(running), (result) => startNotices(member, result))),
              "under way" as const
            )
          })
          return Effect.raceFirst(Fiber.join(running), Effect.delay(late, PATIENCE_MS))
        })
      })

    /**
     * The members of one webhook. If nothing is known of the endpoint, one of them measures it, and the others wait.
     */
    const ofWebhook = (members: ReadonlyArray<Member>, input: FirstAttemptsInput, until: number) =>
      Effect.flatMap(Deferred.make<void>(), (proved) => {
        const pace: Pace = { until, slow: false }
        return Effect.forEach(
          members,
          (member) =>
            Effect.gen(function* () {
              const first = yield* attempt(member, input, pace)
              if (typeof first !== "object" || first.next !== "elsewhere") {
                yield* Deferred.succeed(proved, undefined)
                return [member, first] as const
              }
              yield* Effect.raceFirst(Deferred.await(proved), Effect.sleep(PATIENCE_MS))
              return [member, yield* attempt(member, input, pace)] as const
            }),
          { concurrency: webhookMaxInFlight }
        )
      })

    const ofGroup = (input: FirstAttemptsInput) =>
      Effect.gen(function* () {
        const groups = Map.groupBy(input.deliveries, ({ webhookId }) => webhookId)
        const makeAttempts = Effect.suspend(() => {
          const until = performance.now() + GROUP_MS
          return Effect.forEach(groups.values(), (members) => ofWebhook(members, input, until), { concurrency: "unbounded" })
        })
        const results = (yield* making.withPermits(1)(makeAttempts)).flat()
        const isDone = (result: Result) =>
          typeof result === "object" && (result.next === "delivered" || (result.next === "ended" && result.status === "DELIVERED"))
        const isHeld = (result: Result) => typeof result === "object" && result.next === "held"
        const held = results.flatMap(([{ deliveryId }, result]) => (isHeld(result) ? [deliveryId] : []))
        // They have no workflow until their turn comes.
        if (held.length > 0) yield* sql`UPDATE deliveries SET started = false WHERE id = ANY(${held}::text[]) AND status = 'HELD'`
        const others = new Map(
          results.flatMap(([{ deliveryId }, result]) => (isDone(result) || isHeld(result) ? [] : [[deliveryId, result] as const]))
        )
        if (others.size > 0) {
          const deliveries = yield* deliveriesToStart(sql, [...others.keys()])
          yield* Effect.forEach(
            deliveries,
            (delivery) =>
              Effect.zipRight(
                startTurn,
                starter.start(delivery, others.get(delivery.id) === "under way" ? Option.some(hostQueue) : Option.none())
              ),
            { concurrency: "unbounded", discard: true }
          )
        }
        return {
          deliveries: Object.fromEntries(
            results.map(([{ deliveryId }, result]) => [deliveryId, isDone(result) ? "2xx" : isHeld(result) ? "held" : "goes on"])
          ),
          notices: results.flatMap(([, result]) => noticesOf(result)),
          organizations: Object.fromEntries(
            results.flatMap(([{ organizationId }, result]) =>
              organizationId === undefined ? [] : noticesOf(result).map((noticeId) => [noticeId, organizationId])
            )
          )
        } satisfies FirstAttemptsOutcome
      })

    return {
      /** Makes the attempts. Fails if a workflow cannot be started or Postgres is unavailable; it is repeated then. */
      run: (input: FirstAttemptsInput) => inFlight.join(input.deliveries.map(({ deliveryId }) => deliveryId).join(), ofGroup(input))
    }
  })
}) {
  static readonly layer = this.Default
}
