/**
 * What happens to a delivery and its webhook after an attempt: the one place that decides it. Nothing here reads or writes:
 * FailureRecorder locks and reads what it needs, and writes what it says. What a 2xx means depends on nothing else, so
 * `AttemptsRepo.succeed` writes it for many deliveries in one statement. Decisions D-20 to D-23, C-5.
 */
import { Data } from "effect"
import type { Result } from "../deliveries/Delivery.ts"
import { waitAfter, waitAfterProxyError } from "../deliveries/retrySchedule.ts"
import { STREAK_ATTEMPTS, STREAK_HOURS } from "../webhooks/failureStreak.ts"
import { DOWN_ATTEMPTS } from "../webhooks/queue.ts"

const HOUR = 3_600_000
/** A failure more than this many ms after the previous one starts a new streak. */
const STREAK_GAP = 48 * HOUR
/** Time between two 410 responses after which an endpoint counts as gone, in ms. */
const GONE_AFTER = 5 * 60_000
/** Longest `Retry-After` of a probe, in seconds. */
const RETRY_AFTER_SECONDS = 3_600
/** The longest wait before a probe, in seconds. */
export const longestProbeWait = (probeSeconds: ReadonlyArray<number>): number => Math.max(RETRY_AFTER_SECONDS, ...probeSeconds)

/** A webhook's failed attempts in a row. Times are in ms since 1970, by Postgres' clock. */
export interface Streak {
  readonly consecutiveFailures: number
  readonly failingSince: number | null
  /** The first delivery that failed in the streak, and whether another one did too. */
  readonly firstFailedDelivery: string | null
  readonly severalDeliveries: boolean
  /** The first 410 of the streak. */
  readonly goneAt: number | null
  readonly lastFailureAt: number | null
  /** Failures in a row that mean that the endpoint is down: how many, since when, of which delivery first, and whether of several. */
  readonly downFailures: number
  readonly downSince: number | null
  readonly downDelivery: string | null
  readonly downSeveral: boolean
}

/** No failure. */
export const NO_STREAK: Streak = {
  consecutiveFailures: 0,
  failingSince: null,
  firstFailedDelivery: null,
  severalDeliveries: false,
  goneAt: null,
  lastFailureAt: null,
  downFailures: 0,
  downSince: null,
  downDelivery: null,
  downSeveral: false
}

/** A delivery when an attempt of it is recorded. */
export interface DeliveryNow {
  readonly id: string
  readonly status: "PENDING" | "RETRYING" | "HELD" | "DELIVERED" | "FAILED" | "CANCELED"
  /** Attempts of the schedule that were used up before this one. */
  readonly used: number
  /** Whether no later attempt has begun; otherwise the outcome came late and completes its own row only. */
  readonly isLast: boolean
}

/** The webhook of that delivery. */
export interface WebhookNow {
  readonly status: "ACTIVE" | "PAUSED" | "DISABLED"
  /** Whether its endpoint is down, and how many probes have failed. */
  readonly down: boolean
  readonly probes: number
  readonly streak: Streak
}

/** Who made an attempt: a claim's group, the delivery's own workflow, or the webhook's drain, which probes or sends. */
export type Via = "first" | "retry" | "probe" | "drain"

/** Whether the webhook's drain makes an attempt. */
export const isOfDrain = (via: Via): boolean => via === "probe" || via === "drain"

/** The outcome of an attempt. */
export interface Outcome {
  readonly via: Via
  readonly result: Result
  readonly httpStatus: number
  readonly retryAfterSeconds: number | undefined
  /** Whether a kept connection turned out to be closed, or a kept access token to be no longer accepted. */
  readonly stale: boolean
}

/** What decides, apart from the facts: settings, and a random number from 0 to 1 for the jitter. */
export interface Rules {
  readonly waitsMs: ReadonlyArray<number>
  readonly disableAfterMs: number
  readonly hold: boolean
  readonly holdAfterMs: number
  readonly probeSeconds: ReadonlyArray<number>
  readonly jitter: number
}

/** What happens to the delivery. */
export type Next = Data.TaggedEnum<{
  /** It ends DELIVERED. */
  Delivered: object
  /** It is attempted again after the wait. */
  RetryAt: { readonly waitMs: number }
  /** It is attempted again at once, on a new connection and with a new access token. */
  Again: object
  /** It joins its webhook's queue, or stays there. */
  Hold: object
  /** It ends FAILED: its schedule is used up. */
  Exhausted: object
  /** It ends CANCELED, because its webhook is disabled: by this outcome or before. */
  Disabled: object
  /** It had ended, or a later attempt decides. */
  Unchanged: object
}>
export const Next = Data.taggedEnum<Next>()

/** The notices that an outcome may cause, besides those of a disable and of the beginning of a hold; each is sent once per cause. */
type NoticeKind = "streak" | "failed"

/** What an outcome changes. */
export interface Decision {
  readonly next: Next
  /** Whether the attempt used up an attempt of the schedule. */
  readonly usesSchedule: boolean
  /** The webhook's streak afterwards; null if it does not change. */
  readonly streak: Streak | null
  /** Why the outcome disables the webhook; null if it does not. */
  readonly disables: "FAILING" | "GONE" | null
  /** What happens to the webhook's hold. */
  readonly hold: "none" | "begins" | "goes on" | "ends"
  /** Time until the next probe in seconds, if the hold begins or a probe failed. */
  readonly probeInSeconds: number | null
  readonly notices: ReadonlyArray<NoticeKind>
}

const DOWN: ReadonlySet<Result> = new Set<Result>([
  "timeout",
  "dns_error",
  "connection_refused",
  "connection_reset",
  "tls_error",
  "network_error",
  "auth_error",
  "5xx"
])

/** Whether an outcome means that the endpoint, or the token server before it, is down, not that it rejected this one delivery. */
export const meansDown = ({ httpStatus, result }: Pick<Outcome, "httpStatus" | "result">): boolean => DOWN.has(result) || httpStatus === 429

/** The streak after one more failure. */
export const countFailure = (streak: Streak, deliveryId: string, outcome: Pick<Outcome, "httpStatus" | "result">, now: number): Streak => {
  const before = streak.lastFailureAt !== null && now - streak.lastFailureAt > STREAK_GAP ? NO_STREAK : streak
  const down = meansDown(outcome)
  const goesOn = before.downFailures > 0
  return {
    consecutiveFailures: before.consecutiveFailures + 1,
    failingSince: before.failingSince ?? now,
    firstFailedDelivery: before.firstFailedDelivery ?? deliveryId,
    severalDeliveries: before.severalDeliveries || (before.firstFailedDelivery ?? deliveryId) !== deliveryId,
    goneAt: before.goneAt ?? (outcome.httpStatus === 410 ? now : null),
    lastFailureAt: now,
    downFailures: down ? before.downFailures + 1 : 0,
    downSince: down ? (goesOn ? before.downSince : now) : null,
    downDelivery: down ? (goesOn ? before.downDelivery : deliveryId) : null,
    downSeveral: down && goesOn && (before.downSeveral || before.downDelivery !== deliveryId)
  }
}

/** What an outcome means for the delivery and its webhook. Total: every combination has an answer. */
export const decide = (delivery: DeliveryNow, webhook: WebhookNow, outcome: Outcome, now: number, rules: Rules): Decision => {
  const { hold, holdAfterMs, probeSeconds, waitsMs } = rules
  const waits = delivery.isLast && (delivery.status === "PENDING" || delivery.status === "RETRYING" || delivery.status === "HELD")
  const inQueue = isOfDrain(outcome.via)
  const neutral = { streak: null, disables: null, hold: "none", probeInSeconds: null, notices: [], usesSchedule: false } as const

  if (outcome.result === "2xx")
    return {
      next: delivery.status === "DELIVERED" ? Next.Unchanged() : Next.Delivered(),
      usesSchedule: true,
      streak: webhook.streak.consecutiveFailures > 0 ? NO_STREAK : null,
      disables: null,
      hold: webhook.down ? "ends" : "none",
      probeInSeconds: null,
      notices: []
    }
  if (outcome.stale) return { ...neutral, next: waits ? Next.Again() : Next.Unchanged() }
  // Our own proxy failed: the endpoint is not asked for long, and nothing is used up.
  if (outcome.result === "proxy_error")
    return {
      ...neutral,
      next: !waits ? Next.Unchanged() : inQueue ? Next.Hold() : Next.RetryAt({ waitMs: waitAfterProxyError(rules.jitter) })
    }

  const down = meansDown(outcome)
  const active = webhook.status === "ACTIVE"
  const streak = countFailure(webhook.streak, delivery.id, outcome, now)
  const failingFor = now - (streak.failingSince ?? now)
  const isLong = streak.consecutiveFailures >= STREAK_ATTEMPTS

  const gone = outcome.httpStatus === 410 && streak.goneAt !== null && now - streak.goneAt >= GONE_AFTER
  const failing = isLong && streak.severalDeliveries && failingFor >= rules.disableAfterMs
  if (active && (gone || failing))
    return {
      next: waits ? Next.Disabled() : Next.Unchanged(),
      usesSchedule: true,
      streak,
      disables: gone ? "GONE" : "FAILING",
      hold: "none",
      probeInSeconds: null,
      notices: []
    }

  const begins =
    active &&
    hold &&
    down &&
    !webhook.down &&
    streak.downFailures >= DOWN_ATTEMPTS &&
    streak.downSeveral &&
    now - (streak.downSince ?? now) >= holdAfterMs
  const isDown = begins || (webhook.down && down)
  const failedProbe = outcome.via === "probe" && down
  const waitMs = waitAfter(delivery.used + 1, outcome, waitsMs, rules.jitter)
  const next: Next = !waits
    ? Next.Unchanged()
    : webhook.status === "DISABLED"
      ? Next.Disabled()
      : failedProbe
        ? Next.Hold()
        : waitMs === undefined
          ? Next.Exhausted()
          : isDown
            ? Next.Hold()
            : Next.RetryAt({ waitMs })
  const probes = begins ? 0 : webhook.probes + 1
  const probeInSeconds = Math.max(
    probeSeconds[Math.min(probes, probeSeconds.length - 1)] ?? 0,
    begins ? 0 : Math.min(outcome.retryAfterSeconds ?? 0, RETRY_AFTER_SECONDS)
  )
  return {
    next,
    usesSchedule: !failedProbe,
    streak,
    disables: null,
    hold: begins ? "begins" : webhook.down ? (down ? "goes on" : "ends") : "none",
    probeInSeconds: begins || failedProbe ? probeInSeconds : null,
    notices: active
      ? [
          ...(isLong && failingFor >= STREAK_HOURS * HOUR ? (["streak"] as const) : []),
          ...(next._tag === "Exhausted" ? (["failed"] as const) : [])
        ]
      : []
  }
}
