/**
 * kill -9 of the whole program while events flow: at random moments, and at each critical statement. Nothing
 * is lost, every delivery ends correctly, and each request that the receiver saw has its attempt.
 * Reliability F1, F2, F3, F5.
 */
import { describe, expect, test } from "bun:test"
import { inTurn } from "../support/inTurn.ts"
import { until } from "../support/receiver.ts"
import { long, type Rig, report, sound, useRig } from "./Rig.ts"

/** Services that are killed beside each other: after a kill, all wait for Temporal. */
const rigs = (long ? [useRig(), useRig(), useRig()] : [useRig(), useRig()]).map((rig) => ({ rig, next: inTurn() }))
/** The time limit, in ms: tests of a service wait for each other. */
const WHOLE = 900_000
/** Transactions fed around a kill at one statement. */
const FED = long ? 40 : 10
const hasExited = (child: { exitCode: number | null; signalCode: string | null }) => child.exitCode !== null || child.signalCode !== null

describe.concurrent("a process killed between any two statements", () => {
  let tests = 0
  /** Runs a test with one of the services, in turn. */
  const at = (run: (rig: Rig) => Promise<void>) => {
    const one = rigs[tests++ % rigs.length]
    if (one === undefined) throw new Error("no service")
    return one.next(() => run(one.rig))
  }
  const kills = long ? 10 : 2,
    events = long ? 500 : 40
  test(
    `killed ${kills} times at random moments while ${events} events flow: nothing is lost`,
    at(async (rig) => {
      // One in ten is refused at first, so that retries are in progress, too.
      for (const path of rig.paths)
        rig.answer(path, ({ headers }) => (headers["x-service-attempt"] === "1" && Math.random() < 0.1 ? 500 : 200))
      const feeding = rig.feed(events, 150)
      for (let kill = 0; kill < kills; kill++) {
        await Bun.sleep(300 + Math.random() * 1_500)
        if (rig.app.main !== undefined) await rig.app.main.end("SIGKILL")
        await rig.restart()
      }
      await feeding
      await rig.settle()
      const history = await rig.history()
      report("F1 F5 killed at random", { kills, ...history })
      expect(history).toMatchObject({ ...sound, events, deliveries: events * 1.5 })
      // At most the attempts in flight: 8 for each webhook and kill.
      expect(history.repeated).toBeLessThanOrEqual(kills * 8 * rig.paths.length)
    }),
    WHOLE
  )

  const places = [
    "feed-written",
    "dispatch-written",
    "dispatched",
    "started",
    "begun",
    "sent",
    "answered",
    "recorded",
    "failure-written",
    "commands-sent"
  ]
  /** Statements that run once per claim or group: all events may be in the first one. */
  const ofClaims = new Set(["dispatch-written", "dispatched", "started", "commands-sent"])
  interface Kill {
    readonly place: string
    readonly nth: number
  }
  /** Of each list, a process is killed at one statement after the other, and the next one continues what it left. */
  const lists: ReadonlyArray<ReadonlyArray<Kill>> = long
    ? places.flatMap((place) => (ofClaims.has(place) ? [1] : [1, 4]).map((nth) => [{ place, nth }]))
    : [
        [
          { place: "started", nth: 1 },
          { place: "answered", nth: 3 },
          { place: "dispatched", nth: 1 }
        ]
      ]
  for (const list of lists)
    test(
      `killed after it has ${list.map(({ nth, place }) => `${place.replace("-", " ")} ${nth === 1 ? "once" : `${nth} times`}`).join(", and then ")}: nothing is lost`,
      at(async (rig) => {
        await rig.app.main?.end("SIGKILL")
        const [before, feeds]: [number, Array<Promise<void>>] = [rig.acknowledged.size, []]
        for (const { nth, place } of list) {
          for (const path of rig.paths)
            rig.answer(path, ({ headers }) =>
              headers["x-service-attempt"] === "1" && (place === "failure-written" || place === "commands-sent") ? 500 : 200
            )
          const { child } = await rig.restart({ FAIL_AT: `${place}:${nth}` })
          feeds.push(rig.feed(FED, 40))
          await until("its end", () => hasExited(child))
          expect([place, child.signalCode]).toEqual([place, "SIGKILL"])
        }
        await rig.restart()
        await Promise.all(feeds)
        await rig.settle()
        const history = await rig.history()
        report(`F1-F3 killed at ${list.map(({ nth, place }) => `${place}:${nth}`).join()}`, history)
        expect(history).toMatchObject({ ...sound, events: before + FED * list.length })
      }),
      WHOLE
    )
})
