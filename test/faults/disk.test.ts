/**
 * The disk of Postgres is full: writes get 503 and nothing else, reads succeed, and when there is room
 * again everything acknowledged is stored and delivered. Once with the log of Postgres
 * elsewhere, so that Postgres stays up, and once with the log on the same disk, where Postgres stops.
 * Linux as root only, because a disk of bounded size must be mounted. Reliability F23.
 */

import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Answer } from "../support/app.ts"
import { PostgresServer } from "../support/postgres.ts"
import { hash, transaction } from "../support/records.ts"
import { short } from "../support/webhookFixtures.ts"
import { long, Rig, report, sound } from "./Rig.ts"

const MEGABYTE = 1_048_576

/** A disk of bounded size, in memory; undefined with the reason if it cannot be mounted. */
const mount = (megabytes: number): { readonly folder: string } | { readonly reason: string } => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-disk-"))
  const made = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0711`, "custody-test", folder], { encoding: "utf8" })
  if (made.status === 0) return { folder }
  fs.rmdirSync(folder)
  return { reason: made.error?.message ?? made.stderr.trim() }
}

const unmount = (folder: string) => {
  const done = spawnSync("umount", [folder], { encoding: "utf8" })
  if (done.status === 0) fs.rmdirSync(folder)
  else console.error(`${folder} stays mounted: ${done.stderr}`)
}

/** Writes until the disk has no more than this many bytes left. */
const fill = (folder: string, left: number) => {
  const { bavail, bsize } = fs.statfsSync(folder)
  const file = fs.openSync(path.join(folder, "ballast"), "a")
  const block = Buffer.alloc(MEGABYTE)
  for (let more = bavail * bsize - left; more > 0; more -= block.length) fs.writeSync(file, block, 0, Math.min(block.length, more))
  fs.closeSync(file)
}

/** A rig whose Postgres is on the disk, with its write-ahead log there or elsewhere. */
class DiskRig extends Rig {
  readonly server: PostgresServer
  readonly #log = fs.mkdtempSync(path.join(os.tmpdir(), "custody-log-"))

  readonly disk: string
  readonly logApart: boolean

  constructor(disk: string, logApart: boolean) {
    super()
    this.disk = disk
    this.logApart = logApart
    this.server = new PostgresServer(disk)
  }

  async openOnDisk(): Promise<void> {
    await this.open({}, undefined, async () => {
      await this.server.start()
      if (this.logApart) await this.#moveLog()
      this.app.databaseUrl = this.server.url
      return this.server.url
    })
  }

  async #moveLog(): Promise<void> {
    await this.server.stop()
    const [from, to] = [path.join(this.server.cluster, "pg_wal"), path.join(this.#log, "pg_wal")]
    fs.chmodSync(this.#log, 0o711)
    if (spawnSync("mv", [from, to]).status !== 0) throw new Error("the log could not be moved")
    fs.symlinkSync(to, from)
    await this.server.start()
  }

  free(): void {
    fs.rmSync(path.join(this.disk, "ballast"))
  }

  override async close(): Promise<void> {
    await super.close()
    await this.server.close().catch(() => {})
    fs.rmSync(this.#log, { recursive: true, force: true })
  }
}

let number = 1_000_000

/** One write and one read of each kind, and their responses. An acknowledged record counts as such. */
const ask = async (rig: DiskRig, waiting: Set<string>) => {
  const text = hash(++number)
  waiting.add(text)
  const fed = await rig.app.records([transaction("vault_0", 0, { hash: text })])
  if (fed.status === 200) {
    waiting.delete(text)
    rig.acknowledged.add(text)
  }
  const made = await rig.app.request("POST", "/v1/webhooks", {
    key: rig.key,
    body: {
      url: "https://hooks.example.com/disk",
      entityIds: ["entity_0"],
      eventKinds: ["balance.updated"],
      notificationEmail: "ops@example.com",
      description: "d".repeat(1_000),
      status: "DISABLED"
    }
  })
  const paths = ["/v1/vaults", "/v1/vaults/vault_0/transactions", "/v1/webhooks", "/v1/webhook-events?limit=20"]
  const reads: Array<Answer> = []
  for (const target of paths) reads.push(await rig.app.get(target, rig.key))
  return { fed, made, reads }
}

const counted = (answers: ReadonlyArray<string>) =>
  Object.fromEntries(
    Map.groupBy(answers, (one) => one)
      .entries()
      .map(([one, { length }]) => [one, length])
  )

const probe = long ? mount(8) : { reason: "part of the long run only" }
if ("folder" in probe) unmount(probe.folder)
else if (long) console.log(`F23 is skipped: a disk of bounded size cannot be mounted here: ${probe.reason}`)

for (const logApart of [true, false])
  describe.skipIf("reason" in probe)(`a full disk of Postgres, its log ${logApart ? "elsewhere" : "on it"}`, () => {
    let rig: DiskRig
    beforeAll(async () => {
      const disk = mount(logApart ? 192 : 384)
      if ("reason" in disk) throw new Error(disk.reason)
      rig = new DiskRig(disk.folder, logApart)
      await rig.openOnDisk()
    })
    afterAll(async () => {
      await rig.close()
      unmount(rig.disk)
    })

    test("writes get 503, and acknowledged ones are delivered when there is room again", async () => {
      await rig.feed(20)
      await rig.settle()
      fill(rig.disk, 256 * 1_024)
      const feeding = rig.feed(300, 20)
      const waiting = new Set<string>(),
        made = new Set<string>()
      const [writes, reads]: [Array<string>, Array<string>] = [[], []]
      const full = Date.now()
      for (let refused = 0; refused < 30; await Bun.sleep(100)) {
        if (Date.now() - full > 120_000) throw new Error("the disk did not fill")
        // Under load, a new segment of the log is needed sooner or later.
        if (!logApart) await rig.app.sql("SELECT pg_switch_wal()").catch(() => {})
        const answers = await ask(rig, waiting)
        if (answers.made.status === 201) made.add(answers.made.json.id)
        writes.push(short(answers.fed), short(answers.made))
        reads.push(...answers.reads.map(short))
        for (const answer of [answers.fed, answers.made, ...answers.reads])
          if (answer.status >= 300) expect(answer.headers.get("content-type")).toBe("application/problem+json")
        if (answers.fed.status === 503 && answers.made.status === 503) refused++
      }
      const figures = { writes: counted(writes), reads: counted(reads), postgresRuns: rig.server.runs }
      expect([...writes, ...reads].filter((one) => !["200", "201", "503 service_unavailable"].includes(one))).toEqual([])
      // With its log on the full disk Postgres stops, and nothing can be read either.
      if (logApart) expect(figures).toMatchObject({ reads: { "200": reads.length }, postgresRuns: true })

      rig.free()
      if (!logApart) {
        await rig.server.stop()
        await rig.server.start()
      }
      const freed = Date.now()
      await feeding
      // Refused records are sent again, as a platform would.
      await rig.app.feed([...waiting].map((text) => transaction("vault_0", 0, { hash: text })))
      for (const text of waiting) rig.acknowledged.add(text)
      await rig.settle()
      const history = await rig.history()
      report(`F23 disk full, log ${logApart ? "elsewhere" : "on it"}`, {
        ...figures,
        settledAfterSeconds: (Date.now() - freed) / 1_000,
        ...history
      })
      expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
      const listed = new Set((await rig.app.walk("/v1/webhooks", rig.key, 500)).map(({ id }) => id))
      expect([...made].filter((id) => !listed.has(id))).toEqual([])
    }, 400_000)
  })
