/** A slow but working endpoint is never idle and gets the longest due first, however often deliveries are woken. Reliability F26. */
import { describe, expect, test } from "bun:test"
import { Effect } from "effect"
import { EndpointLimiter } from "../../src/sending/admission/EndpointLimiter.ts"
import { unshared } from "../../src/sending/admission/EndpointPermits.ts"
import * as Id from "../../src/values/Id.ts"

const PER_WEBHOOK = 8
const DELIVERIES = 120
const TAKES = 700

/** Sends every delivery to an endpoint with this response time, as workflows do; `wakeMs`: how often a waiting delivery is woken. */
const drain = async (wakeMs: number) => {
  const limiter = new EndpointLimiter(unshared(PER_WEBHOOK))
  const ids = Array.from({ length: DELIVERIES }, (_, number) => Id.derived("del", 1_700_000_000_000 + number, String(number)))
  const begun: Array<number> = [],
    ended: Array<number> = []
  let inFlight = 0,
    most = 0,
    asked = 0
  const startedAt = performance.now()
  const one = async (deliveryId: string, number: number) => {
    for (;;) {
      asked++
      const admission = await Effect.runPromise(limiter.admit({ webhookId: "whs_a", deliveryId, first: true, local: false }))
      if (admission.go === "here") {
        begun.push(number)
        most = Math.max(most, ++inFlight)
        await Bun.sleep(TAKES)
        inFlight--
        ended.push(performance.now() - startedAt)
        return admission.release(TAKES)
      }
      if (admission.go === "later") await Bun.sleep(Math.min(wakeMs * (0.5 + Math.random()), admission.waitMs))
    }
  }
  // They start in about the order of recording.
  await Promise.all(ids.map((id, number) => one(id, number)))
  const gaps = ended.map((at, index) => at - (ended[index - 1] ?? 0))
  /** How far from its place in the order a delivery was sent, on average. */
  const off = begun.reduce((total, number, index) => total + Math.abs(number - index), 0) / DELIVERIES
  return { tookMs: ended.at(-1) ?? 0, gap: Math.max(...gaps), off, most, asked }
}

const ideal = (DELIVERIES * TAKES) / PER_WEBHOOK

describe("Decision D-20: a slow endpoint", () => {
  // Beside each other: they wait most of the time.
  for (const [name, wakeMs] of [
    ["left alone", Number.POSITIVE_INFINITY],
    ["woken again and again", 400]
  ] as const)
    test.concurrent(`gets all deliveries within 1.3 times the minimum, oldest first, when they are ${name}`, async () => {
      let run = await drain(wakeMs)
      // A pause of the machine lengthens one run; a limiter that keeps slots empty lengthens each.
      for (let again = 0; again < 2 && (run.tookMs >= 1.3 * ideal || run.gap >= 3 * TAKES); again++) run = await drain(wakeMs)
      const { asked, gap, most, off, tookMs } = run
      expect(most).toBe(PER_WEBHOOK)
      expect(tookMs).toBeLessThan(1.3 * ideal)
      expect(gap).toBeLessThan(3 * TAKES)
      expect(off).toBeLessThan(PER_WEBHOOK)
      if (wakeMs === Number.POSITIVE_INFINITY) expect(asked).toBeLessThan(6 * DELIVERIES)
    })

  test.concurrent("that hangs is attempted a few times a second, however much waits for it", async () => {
    const limiter = new EndpointLimiter(unshared(PER_WEBHOOK))
    for (let number = 0; number < PER_WEBHOOK; number++)
      await Effect.runPromise(limiter.admit({ webhookId: "whs_a", deliveryId: `del_${number}`, first: false, local: false }))
    // Nothing is known of it except that 8 attempts hang.
    await Bun.sleep(2_000)
    const waits: Array<number> = []
    let inLine = 0
    for (let number = 0; number < 2_000; number++) {
      const asking = limiter.admit({ webhookId: "whs_a", deliveryId: `del_w${number}`, first: false, local: false })
      const exit = Effect.runFork(asking).unsafePoll()
      if (exit?._tag === "Success" && exit.value.go === "later") waits.push(exit.value.waitMs)
      else inLine++
    }
    expect(inLine).toBeLessThan(20)
    // Two seconds for each of 8 slots: 2,000 take 500 s, and each checks again on the way.
    expect(Math.max(...waits)).toBeGreaterThan(300_000)
    expect(waits.filter((wait) => wait < 10_000).length).toBeLessThan(120)
  })
})
