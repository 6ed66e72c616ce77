/**
 * `bun run kills`, with 500 kills: every process of a distributed service is killed repeatedly, at random moments,
 * while events flow and every tenth first attempt fails. Nothing acknowledged is lost.
 * Reliability, goals.
 */
import { expect, test } from "bun:test"
import { sound, useRig } from "./Rig.ts"

const kills = Number(process.env["CUSTODY_KILLS"] ?? 0)
/** The processes, by their roles. */
const processes = [["api"], ["worker"], ["worker"], ["dispatcher"], ["dispatcher"]]
/** How long a process lives after it is ready, between two kills, in ms. */
const LEAST_MS = 200,
  MOST_MS = 6_000

if (kills > 0) {
  const rig = useRig({}, ["api"])
  test(
    `${kills} random kills across all processes lose nothing`,
    async () => {
      for (const path of rig.paths)
        rig.answer(path, ({ headers }) => (headers["x-service-attempt"] === "1" && Math.random() < 0.1 ? 500 : 200))
      let killed = 0
      const killing = processes.map(async (roles) => {
        const isApi = roles.includes("api")
        const start = () => (isApi ? rig.restart({}, roles) : rig.app.start(roles))
        for (let running = (isApi ? rig.app.main : undefined) ?? (await start()); ; running = await start()) {
          await Bun.sleep(LEAST_MS + Math.random() * (MOST_MS - LEAST_MS))
          if (killed >= kills) return
          killed++
          await running.end("SIGKILL")
        }
      })
      const startedAt = performance.now()
      while (killed < kills) await rig.feed(10, 200)
      await Promise.all(killing)
      const seconds = Math.round((performance.now() - startedAt) / 1_000)
      await rig.settle(300)
      const history = await rig.history()
      console.log(JSON.stringify({ kills: killed, seconds, ...history }))
      expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, deliveries: rig.acknowledged.size * 1.5 })
      // At most the attempts in flight: 8 for each webhook and kill.
      expect(history.repeated).toBeLessThanOrEqual(kills * 8 * rig.paths.length)
    },
    kills * 5_000 + 600_000
  )
}
