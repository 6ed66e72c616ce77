/** What an outcome means for a delivery and its webhook, over every combination. Decisions D-20 to D-23, C-5. */
import { describe, expect, test } from "bun:test"
import * as fc from "fast-check"
import { type Result, results, statuses } from "../../../src/delivery/deliveries/Delivery.ts"
import {
  countFailure,
  type DeliveryNow,
  decide,
  meansDown,
  NO_STREAK,
  type Outcome,
  type Rules,
  type Streak,
  type WebhookNow
} from "../../../src/delivery/sending/decide.ts"

const NOW = Date.UTC(2026, 0, 31, 12)
const MINUTE = 60_000,
  HOUR = 60 * MINUTE
const rules: Rules = {
  waitsMs: [0, 5_000, 300_000],
  disableAfterMs: 120 * HOUR,
  hold: true,
  holdAfterMs: MINUTE,
  probeSeconds: [30, 60, 120],
  jitter: 0.5
}
const delivery: DeliveryNow = { id: "del_a", status: "PENDING", used: 0, isLast: true }
const webhook: WebhookNow = { status: "ACTIVE", down: false, probes: 0, streak: NO_STREAK }
const statusOf: Partial<Record<Result, number>> = { "2xx": 200, "3xx": 302, "4xx": 404, "5xx": 503 }
const outcome = (result: Result, more: Partial<Outcome> = {}): Outcome => ({
  via: "first",
  result,
  httpStatus: statusOf[result] ?? 0,
  retryAfterSeconds: undefined,
  stale: false,
  ...more
})
/** Failures that began this long ago and of which the next one may be too many. */
const streak = (failures: number, ago: number, more: Partial<Streak> = {}): Streak => ({
  ...NO_STREAK,
  consecutiveFailures: failures,
  failingSince: NOW - ago,
  firstFailedDelivery: "del_b",
  severalDeliveries: true,
  lastFailureAt: NOW - 1_000,
  downFailures: failures,
  downSince: NOW - ago,
  downDelivery: "del_b",
  downSeveral: true,
  ...more
})
const waiting = ["PENDING", "RETRYING", "HELD"] as const

const anyDelivery: fc.Arbitrary<DeliveryNow> = fc.record({
  id: fc.constantFrom("del_a", "del_b"),
  status: fc.constantFrom(...statuses),
  used: fc.nat(3),
  isLast: fc.boolean()
})
const anyStreak = fc
  .record({ failures: fc.nat(30), ago: fc.integer({ min: 0, max: 200 * HOUR }), gone: fc.boolean(), several: fc.boolean() })
  .map(({ ago, failures, gone, several }) =>
    failures === 0 ? NO_STREAK : streak(failures, ago, { goneAt: gone ? NOW - ago : null, severalDeliveries: several })
  )
const anyWebhook: fc.Arbitrary<WebhookNow> = fc.record({
  status: fc.constantFrom("ACTIVE", "PAUSED", "DISABLED"),
  deleted: fc.boolean(),
  down: fc.boolean(),
  probes: fc.nat(10),
  streak: anyStreak
})
const anyOutcome: fc.Arbitrary<Outcome> = fc
  .record({
    via: fc.constantFrom("first", "retry", "probe", "drain"),
    result: fc.constantFrom(...results),
    retryAfter: fc.option(fc.nat(100_000), { nil: undefined }),
    stale: fc.boolean()
  })
  .map(({ result, retryAfter, stale, via }) =>
    outcome(result, { via, retryAfterSeconds: retryAfter, stale: stale && result !== "2xx" && result !== "interrupted" })
  )
const anyRules = fc
  .record({ hold: fc.boolean(), jitter: fc.double({ min: 0, max: 1, noNaN: true }) })
  .map((more) => ({ ...rules, ...more }))

const always = (holds: (d: DeliveryNow, w: WebhookNow, o: Outcome, r: Rules) => void) =>
  fc.assert(fc.property(anyDelivery, anyWebhook, anyOutcome, anyRules, holds), { numRuns: 3_000 })

describe("every combination of delivery, webhook and outcome", () => {
  test("a delivery that ended, or whose next attempt began, changes only by a 2xx", () =>
    always((d, w, o, r) => {
      if (d.isLast && waiting.some((status) => status === d.status)) return
      if (o.result === "2xx") return
      expect(decide(d, w, o, NOW, r).next._tag).toBe("Unchanged")
    }))

  test("a waiting delivery always has a next step", () =>
    always((d, w, o, r) => {
      if (!d.isLast || !waiting.some((status) => status === d.status)) return
      expect(decide(d, w, o, NOW, r).next._tag).not.toBe("Unchanged")
    }))

  test("neutral results neither begin nor end a hold, and count for nothing", () =>
    always((d, w, o, r) => {
      if (o.result !== "proxy_error" && !o.stale) return
      const { hold, notices, streak, usesSchedule } = decide(d, w, o, NOW, r)
      expect({ hold, notices, streak, usesSchedule }).toEqual({ hold: "none", notices: [], streak: null, usesSchedule: false })
    }))

  test("every result that does not mean down ends a hold, and no other does", () =>
    always((d, w, o, r) => {
      const { disables, hold, next } = decide(d, w, o, NOW, r)
      if (o.stale || o.result === "proxy_error" || disables !== null || next._tag === "Disabled") return
      expect(hold === "ends").toBe(w.down && !meansDown(o))
    }))

  test("only results that mean down begin a hold, of an active webhook", () =>
    always((d, w, o, r) => {
      if (decide(d, w, o, NOW, r).hold !== "begins") return
      expect([meansDown(o), w.status, w.down, r.hold]).toEqual([true, "ACTIVE", false, true])
    }))

  test("a probe that finds the endpoint down uses up nothing and keeps its delivery held", () =>
    always((d, w, o, r) => {
      if (o.via !== "probe" || !meansDown(o) || o.stale || !d.isLast || !waiting.some((status) => status === d.status)) return
      const { next, usesSchedule } = decide(d, { ...w, status: "ACTIVE", down: true, streak: NO_STREAK }, o, NOW, r)
      expect({ next: next._tag, usesSchedule }).toEqual({ next: "Hold", usesSchedule: false })
    }))

  test("a delivery that the endpoint rejects is never held for it", () =>
    always((d, w, o, r) => {
      if (o.stale || o.result === "2xx" || o.result === "proxy_error" || meansDown(o)) return
      expect(decide(d, w, o, NOW, r).next._tag).not.toBe("Hold")
    }))

  test("a webhook that is not active is neither held nor disabled, and nobody is notified", () =>
    always((d, w, o, r) => {
      if (w.status === "ACTIVE") return
      const { disables, hold, notices } = decide(d, w, o, NOW, r)
      expect([hold === "begins", disables, notices]).toEqual([false, null, []])
    }))
})

describe("an outcome", () => {
  test("2xx ends the delivery, a streak and a hold", () => {
    const { hold, next, streak: after } = decide(delivery, { ...webhook, down: true, streak: streak(3, HOUR) }, outcome("2xx"), NOW, rules)
    expect([next._tag, hold, after]).toEqual(["Delivered", "ends", NO_STREAK])
  })

  test("a failure waits as the schedule says, and the last one fails the delivery", () => {
    const nextOf = (used: number) => decide({ ...delivery, used }, webhook, outcome("5xx"), NOW, rules).next
    expect(nextOf(0)).toEqual({ _tag: "RetryAt", waitMs: 5_000 })
    expect(nextOf(1)).toEqual({ _tag: "RetryAt", waitMs: 300_000 })
    expect(nextOf(2)._tag).toBe("Exhausted")
  })

  test("the tenth failure of several deliveries over a minute begins a hold, no earlier one", () => {
    const holdOf = (failures: number, ago: number, more: Partial<Streak> = {}) =>
      decide(delivery, { ...webhook, streak: streak(failures, ago, more) }, outcome("timeout"), NOW, rules).hold
    expect(holdOf(9, MINUTE)).toBe("begins")
    expect(holdOf(8, MINUTE)).toBe("none")
    expect(holdOf(9, MINUTE - 1)).toBe("none")
    expect(holdOf(9, MINUTE, { downSeveral: false, downDelivery: "del_a" })).toBe("none")
  })

  test("the delivery whose failure begins a hold joins the queue with its attempts", () => {
    const { next, usesSchedule } = decide(delivery, { ...webhook, streak: streak(9, MINUTE) }, outcome("timeout"), NOW, rules)
    expect([next._tag, usesSchedule]).toEqual(["Hold", true])
  })

  test("any response that is not down resets what counts towards a hold", () => {
    const { streak: after } = decide(delivery, { ...webhook, streak: streak(9, HOUR) }, outcome("4xx"), NOW, rules)
    expect([after?.consecutiveFailures, after?.downFailures]).toEqual([10, 0])
  })

  test("probes wait longer each time, and as long as Retry-After asks, up to an hour", () => {
    const probeIn = (probes: number, retryAfterSeconds?: number) =>
      decide(
        { ...delivery, status: "HELD" },
        { ...webhook, down: true, probes },
        outcome("4xx", { via: "probe", httpStatus: 429, retryAfterSeconds }),
        NOW,
        rules
      ).probeInSeconds
    expect([probeIn(0), probeIn(1), probeIn(7), probeIn(0, 90), probeIn(0, 9_000)]).toEqual([60, 120, 120, 90, 3_600])
  })

  test("120 hours without a 2xx disable the webhook, after ten failures of several deliveries", () => {
    const after = (failures: number, ago: number, more: Partial<Streak> = {}, now = delivery, httpStatus = 404) => {
      const { disables, next } = decide(
        now,
        { ...webhook, streak: streak(failures, ago, more) },
        outcome("4xx", { httpStatus }),
        NOW,
        rules
      )
      return [disables, next._tag]
    }
    expect(after(9, 120 * HOUR)).toEqual(["FAILING", "Disabled"])
    expect(after(8, 120 * HOUR)).toEqual([null, "RetryAt"])
    expect(after(9, 120 * HOUR - 1)).toEqual([null, "RetryAt"])
    expect(after(9, 120 * HOUR, { severalDeliveries: false, firstFailedDelivery: "del_a" })).toEqual([null, "RetryAt"])
    // Of a delivery that has ended, too; and a first 410 does not mean that the endpoint is gone.
    expect(after(9, 120 * HOUR, {}, { ...delivery, status: "DELIVERED" }, 410)).toEqual(["FAILING", "Unchanged"])
  })

  test("a second 410 five minutes after the first disables the webhook as gone", () => {
    const after = (ago: number) => {
      const gone = streak(1, ago, { goneAt: NOW - ago })
      const { disables, next } = decide(delivery, { ...webhook, streak: gone }, outcome("4xx", { httpStatus: 410 }), NOW, rules)
      return [disables, next._tag]
    }
    expect(after(5 * MINUTE)).toEqual(["GONE", "Disabled"])
    expect(after(5 * MINUTE - 1)).toEqual([null, "RetryAt"])
  })

  test("a failure more than 48 hours after the one before begins a new streak", () => {
    const long = streak(20, 119 * HOUR, { lastFailureAt: NOW - 48 * HOUR - 1 })
    expect(countFailure(long, "del_a", outcome("5xx"), NOW).consecutiveFailures).toBe(1)
    expect(countFailure({ ...long, lastFailureAt: NOW - 48 * HOUR }, "del_a", outcome("5xx"), NOW).consecutiveFailures).toBe(21)
  })

  test("our own proxy's failure is tried again within half a minute", () => {
    const next = decide(delivery, webhook, outcome("proxy_error", { via: "retry" }), NOW, rules).next
    expect(next._tag === "RetryAt" && next.waitMs <= 30_000).toBe(true)
    expect(decide({ ...delivery, status: "HELD" }, webhook, outcome("proxy_error", { via: "drain" }), NOW, rules).next._tag).toBe("Hold")
  })
})
