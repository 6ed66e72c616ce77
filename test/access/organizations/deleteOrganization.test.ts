/** `custody organizations delete`: everything of one organization, nothing of another. Decision D-56. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { tmpdir } from "node:os"
import * as path from "node:path"
import type { Client } from "@temporalio/client"
import { deletedTables } from "../../../src/access/organizations/organizationTables.ts"
import { baseEnv, cli, PROGRAM, useApp } from "../../support/app.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { transaction, vault } from "../../support/records.ts"
import { operator } from "../../support/temporal.ts"
import {
  contentOf,
  feedTransactions,
  idsOf,
  insertRemainingRows,
  ownerKey,
  recordsOf,
  shared,
  sharedTables,
  tablesOf,
  tenant
} from "../../support/tenants.ts"

const ALL = ["api", "worker", "dispatcher"]
const TOKENS = ["0x00000000000000000000000000000000000000aa", "0x00000000000000000000000000000000000000bb"] as const
const receiver = useReceiver()
const app = useApp(ALL, () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h", TEMPORAL_SHOW_HOSTS: "off" }))
let client: Client, close: () => Promise<void>
let gone: Awaited<ReturnType<typeof tenant>>, stays: Awaited<ReturnType<typeof tenant>>

beforeAll(async () => {
  ;({ client, close } = await operator())
  await app.feed(shared(TOKENS))
  gone = await tenant(app, receiver, "gone", TOKENS[0])
  stays = await tenant(app, receiver, "stays", TOKENS[1])
})
afterAll(() => close())

const remove = (id: string, entered: string) => cli(["organizations", "delete", id], app.env, `${entered}\n`)
const statusOf = async (id: string) => (await client.workflow.getHandle(id).describe()).status.name

describe("deletion of an organization", () => {
  test("every table of the schema is deleted from, or is known to be shared", async () => {
    const handled = [...deletedTables.map(({ table }) => table), "organizations", "event_streams", ...sharedTables]
    expect([...new Set(handled)].sort()).toEqual([...(await tablesOf(app))])
  })

  test("an unknown id and a wrong confirmation change nothing: exit codes 1 and 2", async () => {
    const unknown = await remove("org_nobody", "org_nobody")
    expect([unknown.code, unknown.stderr]).toEqual([1, "There is no organization org_nobody.\n"])
    for (const entered of ["", "org_stays", "yes"]) {
      const wrong = await remove("org_gone", entered)
      expect([wrong.code, wrong.stderr.includes("Nothing was deleted"), wrong.stdout]).toEqual([2, true, ""])
    }
    expect(await app.sql("SELECT id FROM organizations WHERE deleting_at IS NOT NULL")).toEqual([])
    expect((await app.get("/v1/vaults", gone.key)).json.data).toHaveLength(2)
  })

  test("afterwards only the audit log refers to it, and the other organization is unchanged", async () => {
    await app.main?.end()
    for (const name of ["gone", "stays"]) await insertRemainingRows(app, name)
    const ids = await idsOf(app, "gone")
    const isGone = (row: string) => ids.some((id) => row.includes(id))
    const before = await contentOf(app)
    for (const { table } of deletedTables) expect([table, before.get(table)?.some(isGone)]).toEqual([table, true])

    const { code, stderr, stdout } = await remove("org_gone", "org_gone")
    expect([code, stderr]).toEqual([0, ""])
    const after = await contentOf(app)
    for (const [table, rows] of after) {
      if (table === "catalog_version") continue
      if (table === "audit_log") expect(rows.filter((row) => !isGone(row))).toEqual(before.get(table)?.filter((row) => !isGone(row)) ?? [])
      else expect([table, rows]).toEqual([table, before.get(table)?.filter((row) => !isGone(row)) ?? []])
    }

    const answer = JSON.parse(stdout)
    const removed = [...before].filter(
      ([table]) => !sharedTables.includes(table) && table !== "portal_sessions" && table !== "webhook_secrets" && table !== "event_streams"
    )
    for (const [table, rows] of removed) expect([table, answer.deleted[table]]).toEqual([table, rows.filter(isGone).length])
    const actions = await app.sql(
      "SELECT action FROM audit_log WHERE organization_id = 'org_gone' AND target_type = 'organization' ORDER BY at"
    )
    expect(actions.map(({ action }) => action)).toEqual(["organization.deleting", "organization.deleted"])
    expect(answer.kept.audit_log).toBe(after.get("audit_log")?.filter((row) => row.includes("org_gone")).length ?? 0)
  })

  test("its workflows are terminated, and those of the other are not", async () => {
    for (const id of gone.waiting) expect([id, await statusOf(id)]).toEqual([id, "TERMINATED"])
    for (const id of stays.waiting) expect([id, await statusOf(id)]).toEqual([id, "RUNNING"])
    // Of this file's service: other tests have an organization of the same name on the same server.
    const query = `OrganizationId = "org_gone" AND TaskQueue = "${app.env["TEMPORAL_TASK_QUEUE"]}" AND ExecutionStatus = "Running"`
    await until("the end of each", async () => (await client.workflow.count(query)).count === 0)
  })

  test("its key is unknown afterwards, and the same organization can be fed again", async () => {
    // A planted event that was dispatched before.
    await app.sql("DELETE FROM event_outbox WHERE position = -1")
    app.main = await app.start(ALL)
    expect((await app.get("/v1/vaults", gone.key)).status).toBe(401)
    const refused = await app.records([{ ...recordsOf("gone", TOKENS[0])[7] } as never])
    expect([refused.status, refused.text.includes("refers to vault_gone, which was not recorded before")]).toEqual([400, true])
    const count = receiver.to("/stays/fine").length
    await feedTransactions(app, "stays")
    await until("the other's delivery", () => receiver.to("/stays/fine").length > count)
    expect((await app.get("/v1/vaults", stays.key)).json.data).toHaveLength(2)
    await app.feed(recordsOf("gone", TOKENS[0]))
    await feedTransactions(app, "gone")
    const key = await ownerKey(app, "gone")
    expect((await app.get("/v1/vaults", key)).json.data).toHaveLength(2)
    expect((await app.get("/v1/webhooks", key)).json.data).toEqual([])
  })

  test("from the beginning its keys and records are refused, and nothing is sent", async () => {
    const key = await ownerKey(app, "gone")
    expect((await app.get("/v1/vaults", key)).status).toBe(200)
    // As a deletion that was interrupted leaves it.
    await app.sql(
      "BEGIN; UPDATE organizations SET deleting_at = now() WHERE id = 'org_gone'; UPDATE catalog_version SET version = DEFAULT; COMMIT"
    )
    for (const record of recordsOf("gone", TOKENS[0])) {
      const answer = await app.records([record as never])
      expect([record.type, answer.status, answer.text.includes("org_gone is being deleted")]).toEqual([record.type, 400, true])
    }
    expect((await app.records([recordsOf("stays", TOKENS[1])[0] as never])).status).toBe(200)
    await expect(app.key("user_gone")).rejects.toThrow()
    const invited = await cli(["users", "invite", "user_gone"], app.env)
    expect([invited.code, invited.stderr.includes("The organization of the user user_gone is being deleted.")]).toEqual([1, true])
    const exported = await cli(["organizations", "export", "org_gone", path.join(tmpdir(), `custody-gone-${process.pid}.ndjson`)], app.env)
    expect([exported.code, exported.stderr.trim()]).toEqual([1, "org_gone is being deleted, so its export would not be complete."])
    expect((await remove("org_gone", "org_gone")).code).toBe(0)
    expect((await app.get("/v1/vaults", key)).status).toBe(401)
  })

  test("its vault can be recorded under the other organization, and is fed at once", async () => {
    await app.feed([vault("vault_gone", "entity_stays")])
    const { json, status } = await app.records([transaction("vault_gone", 990)])
    expect([status, json.changed, json.events]).toEqual([200, 1, 1])
  })

  test("a run that another one overtook deletes nothing of a new organization with its id", async () => {
    await tenant(app, receiver, "again", TOKENS[0])
    // The first run waits for a ping in flight.
    await app.sql(`
      INSERT INTO pings (event_id, webhook_id, organization_id, at, until)
      SELECT 'evt_ping', id, organization_id, now(), now() + interval '1 hour' FROM webhooks WHERE organization_id = 'org_again' LIMIT 1`)
    const first = Bun.spawn([process.execPath, PROGRAM, "organizations", "delete", "org_again"], {
      env: { ...baseEnv(), ...app.env },
      stdin: new Blob(["org_again\n"]),
      stdout: "pipe",
      stderr: "pipe"
    })
    await until("the end of its webhooks", async () => {
      const left = await app.sql("SELECT 1 FROM webhooks WHERE organization_id = 'org_again' AND deleted_at IS NULL")
      return left.length === 0
    })
    first.kill("SIGSTOP")
    await app.sql("DELETE FROM pings")
    expect((await remove("org_again", "org_again")).code).toBe(0)
    await app.feed(recordsOf("again", TOKENS[0]))
    await feedTransactions(app, "again")
    const key = await ownerKey(app, "again")
    first.kill("SIGCONT")
    expect([await first.exited, await new Response(first.stderr).text()]).toEqual([
      1,
      expect.stringContaining("Another run of this command has deleted org_again.")
    ])
    expect((await app.get("/v1/vaults", key)).json.data).toHaveLength(2)
    await feedTransactions(app, "again")
    // Nor does it see what the former one did.
    const { data } = (await app.get("/v1/audit-log?limit=500", key)).json
    const actions = data.map(({ action }: { action: string }) => action)
    expect([actions.includes("api_key.created"), actions.includes("organization.deleted"), actions.includes("webhook.created")]).toEqual([
      true,
      false,
      false
    ])
  })
})
