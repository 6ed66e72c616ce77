/** `custody organizations export`: a file with everything of one organization and no secret, which can be loaded elsewhere. Decision D-56. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { deletedTables } from "../../../src/access/organizations/organizationTables.ts"
import { App, cli, useApp } from "../../support/app.ts"
import { receiverEnv, useReceiver } from "../../support/receiver.ts"
import { asset, transaction, vault } from "../../support/records.ts"
import { contentOf, insertRemainingRows, ownerKey, shared, tenant } from "../../support/tenants.ts"

const TOKENS = ["0x00000000000000000000000000000000000000aa", "0x00000000000000000000000000000000000000bb"] as const
const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h" }))
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-export-"))
const file = path.join(folder, "gone.ndjson")
let gone: Awaited<ReturnType<typeof tenant>>

interface Row {
  readonly table: string
  readonly row: { readonly [column: string]: unknown }
}
interface Exported {
  readonly records: number
  readonly rows: { readonly [table: string]: number }
}
let answer: Exported
let lines: ReadonlyArray<string> = []

beforeAll(async () => {
  await app.feed(shared(TOKENS))
  gone = await tenant(app, receiver, "gone", TOKENS[0])
  await tenant(app, receiver, "stays", TOKENS[1])
  for (const name of ["gone", "stays"]) await insertRemainingRows(app, name)
  // Assets that only a fee names, or a state before a correction.
  const [fee, former] = ["0x00000000000000000000000000000000000000cc", "0x00000000000000000000000000000000000000dd"].map(
    (token) => `ethereum/erc20:${token}`
  )
  await app.feed([
    ...[fee, former].map((id) => asset(String(id))),
    transaction("vault_gone", 900, { fee: { asset: fee, amount: "1" } }),
    transaction("vault_gone", 901, { asset: former }),
    transaction("vault_gone", 901)
  ])
  const { code, stderr, stdout } = await cli(["organizations", "export", "org_gone", file], app.env)
  expect([code, stderr]).toEqual([0, ""])
  answer = JSON.parse(stdout)
  lines = fs.readFileSync(file, "utf8").trimEnd().split("\n")
})

describe("export of an organization", () => {
  test("each line is a record or a row of this organization, as counted", () => {
    const parsed = lines.map((line): Row | { readonly type: string } => JSON.parse(line))
    const records = parsed.filter((one) => "type" in one)
    const rows = parsed.filter((one): one is Row => "table" in one)
    expect(records).toHaveLength(answer.records)
    expect(rows.length).toBe(1 + Object.values(answer.rows).reduce((sum, count) => sum + count, 0))
    expect(rows[0]).toMatchObject({ table: "export", row: { organizationId: "org_gone" } })
    expect(lines.filter((line) => line.includes("stays"))).toEqual([])
    const exported = deletedTables.filter((table) => (table.exported ?? "rows") === "rows").map(({ table }) => table)
    for (const table of [...exported, "audit_log"]) expect([table, (answer.rows[table] ?? 0) > 0]).toEqual([table, true])
  })

  test("only its owner can read the file, and nothing else is left in the folder", () => {
    expect((fs.statSync(file).mode & 0o777).toString(8)).toBe("600")
    expect(fs.readdirSync(folder)).toEqual(["gone.ndjson"])
  })

  test("no secret is in it: not of webhooks, keys, sessions, invitations, passwords or second factors", async () => {
    const text = lines.join("\n")
    const secrets = await app.sql(`
      SELECT encode(ciphertext, 'hex') AS secret FROM webhook_secrets UNION ALL SELECT encode(secret_hash, 'hex') FROM api_keys
      UNION ALL SELECT encode(token_hash, 'hex') FROM portal_invitations UNION ALL SELECT token FROM portal_sessions
      UNION ALL SELECT password FROM portal_accounts UNION ALL SELECT encode(secret, 'hex') FROM portal_second_factors
      UNION ALL SELECT encode(answer, 'hex') FROM idempotency_keys
      UNION ALL SELECT encode(gateway_credentials, 'hex') FROM webhooks WHERE gateway_credentials IS NOT NULL`)
    expect(secrets.length).toBeGreaterThan(8)
    for (const { secret } of secrets) expect(text.includes(String(secret))).toBe(false)
    expect(text.includes(gone.key)).toBe(false)
    expect([text.includes("X-Api-Key"), text.includes("key-gone")]).toEqual([true, false])
  })

  test("an unknown organization or folder fails with 1 and leaves no file behind", async () => {
    for (const [id, to] of [
      ["org_nobody", file],
      ["org_gone", path.join(folder, "none", "gone.ndjson")],
      ["org_gone", folder]
    ] as const) {
      const { code, stderr } = await cli(["organizations", "export", id, to], app.env)
      expect([code, stderr.length > 10]).toEqual([1, true])
    }
    expect(await app.sql("SELECT 1 FROM audit_log WHERE action = 'organization.exported'")).toHaveLength(1)
    expect(fs.readdirSync(folder)).toEqual(["gone.ndjson"])
    expect(fs.readFileSync(file, "utf8").trimEnd().split("\n")).toEqual([...lines])
  })

  test("there is no file without its entry in the audit log", async () => {
    const other = path.join(folder, "unrecorded.ndjson")
    await app.sql("ALTER TABLE audit_log ADD CONSTRAINT none CHECK (action <> 'organization.exported') NOT VALID")
    const { code } = await cli(["organizations", "export", "org_gone", other], app.env)
    await app.sql("ALTER TABLE audit_log DROP CONSTRAINT none")
    expect([code, fs.readdirSync(folder)]).toEqual([1, ["gone.ndjson"]])
  })

  test("another deployment loads it with the same custody data, to the last digit", async () => {
    const other = new App()
    try {
      await other.open([], {})
      const loaded = await cli(["load", "--no-events", file], other.env)
      expect([loaded.code, loaded.stderr]).toEqual([
        0,
        `Skipped ${lines.length - answer.records} rows of an export that are not custody records.\n`
      ])
      other.main = await other.start(["api"])
      const keys = { here: await ownerKey(app, "gone"), there: await ownerKey(other, "gone") }
      for (const target of [
        "/v1/vaults",
        "/v1/vaults/vault_gone",
        "/v1/vaults/vault_gone/balances",
        "/v1/vaults/vault_gone/balances?at=2024-05-15T00:00:00.000Z",
        "/v1/vaults/vault_gone/transactions?limit=500",
        "/v1/vaults/vault_gone/transactions?status=dropped",
        "/v1/vaults/vault_gone/addresses",
        "/v1/vaults/vault_gone/balance-history?asset=ethereum/native"
      ]) {
        const [here, there] = [await app.get(target, keys.here), await other.get(target, keys.there)]
        // When a balance was recorded is of the deployment.
        const same = (text: string) => text.replaceAll(/"(recordedAt|updatedAt)":"[^"]+"/g, "")
        expect([target, there.status, same(there.text)]).toEqual([target, 200, same(here.text)])
        expect(there.text.length).toBeGreaterThan(40)
      }
      // A vault has the time of its last change: a later one is no old news.
      const [row] = await app.sql("SELECT (extract(epoch FROM given_at) * 1000)::float8 AS given FROM vaults WHERE id = 'vault_gone'")
      const renamed = vault("vault_gone", "entity_gone", {
        label: "Renamed",
        occurredAt: new Date(Number(row?.["given"]) + 1).toISOString()
      })
      expect(await other.feed([renamed])).toMatchObject({ changed: 1, stale: 0 })
      const content = { here: await contentOf(app), there: await contentOf(other) }
      for (const table of [
        "organizations",
        "entities",
        "vaults",
        "users",
        "vault_roles",
        "transactions",
        "deposit_addresses",
        "balance_history"
      ])
        expect([table, content.there.get(table)?.length]).toEqual([
          table,
          content.here.get(table)?.filter((row) => row.includes("gone")).length
        ])
    } finally {
      await other.close()
    }
  })
})
