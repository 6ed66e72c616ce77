/**
 * Recorded histories replay through the current workflows: a delivery that began under older code continues under today's.
 * Reliability F29.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Worker } from "@temporalio/worker"
import { Effect } from "effect"
import { bundle } from "../../src/runtime/temporal/bundle.ts"

const folder = path.join(import.meta.dir, "histories")
const names = fs.readdirSync(folder).filter((name) => name.endsWith(".json"))

interface Event {
  readonly eventType: string
  readonly [field: string]: unknown
}
const read = (name: string): { events: Array<Event> } => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"))

let workflowBundle: { readonly code: string }
beforeAll(async () => {
  workflowBundle = await Effect.runPromise(bundle(os.tmpdir()))
})

/** Errors of replays by the name of the history; empty if all histories fit. */
const replay = async (histories: ReadonlyArray<{ readonly workflowId: string; readonly history: unknown }>) => {
  const errors: Array<string> = []
  for await (const { error, workflowId } of Worker.runReplayHistories({ workflowBundle }, histories))
    if (error !== undefined) errors.push(`${workflowId}: ${error.message}`)
  return errors
}

describe("a change of the workflows while they run", () => {
  test(`${names.length} recorded histories replay on Bun`, async () => {
    expect(names.length).toBeGreaterThanOrEqual(12)
    expect(await replay(names.map((name) => ({ workflowId: name, history: read(name) })))).toEqual([])
  })

  test("at least fifteen of them are of holds, pauses and recoveries", () => {
    expect(names.filter((name) => /drain|held|recovery|retry-of-all/.test(name)).length).toBeGreaterThanOrEqual(15)
  })

  test("a history that does not match these workflows is detected", async () => {
    const history = read("delivered-after-a-retry.json")
    // The retry's timer is removed, as if the code had never waited.
    const events = history.events.filter(({ eventType }) => !/TIMER/i.test(eventType))
    expect(events.length).toBeLessThan(history.events.length)
    expect(await replay([{ workflowId: "altered", history: { events } }])).toHaveLength(1)
  })

  test("no history contains a payload, URL, secret or machine name", () => {
    for (const name of names) {
      const text = fs.readFileSync(path.join(folder, name), "utf8")
      const decoded = text.replaceAll(/"data": "([A-Za-z0-9+/=]+)"/g, (_, data: string) => Buffer.from(data, "base64").toString())
      for (const secret of [
        "https://",
        "whsec_",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "amount",
        path.resolve(import.meta.dir, "../..")
      ])
        expect([name, secret, decoded.includes(secret)]).toEqual([name, secret, false])
    }
  })
})
