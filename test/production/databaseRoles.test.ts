/** The roles that deploy/postgres/init.sh creates, on a real Postgres: the service's role is no superuser and can use no other database. */
import { afterAll, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { App, cli } from "../support/app.ts"
import { documentText } from "../support/document.ts"
import { smallest, transaction } from "../support/records.ts"
import { query } from "../support/replica.ts"
import { servers } from "../support/servers.ts"

// Roles belong to the server, which other tests use as well.
const unique = `${process.pid}`
const passwords = { custody: randomBytes(12).toString("hex"), temporal: randomBytes(12).toString("hex") }
/** The script's statements as psql would send them, with names of this test's own. */
const statements = (/<<'SQL'\n([\s\S]*)\nSQL/.exec(documentText("deploy/postgres/init.sh"))?.[1] ?? "")
  .replaceAll(/:'(custody|temporal)'/g, (_, role: keyof typeof passwords) => `'${passwords[role]}'`)
  .replaceAll(/\b(custody|temporal|temporal_visibility)\b(?=[ ;])/g, `$1_${unique}`)
  .split("\n")

const urlAs = async (role: "custody" | "temporal", database: string) => {
  const url = new URL((await servers()).postgres)
  Object.assign(url, { username: `${role}_${unique}`, password: passwords[role], pathname: `/${database}_${unique}` })
  return url.toString()
}
const app = new App()
afterAll(() => app.close())

test("the service runs as its own role, which shares no database with Temporal's", async () => {
  const { postgres } = await servers()
  expect(statements.length).toBeGreaterThanOrEqual(8)
  for (const statement of statements) await query(postgres, statement)

  const custody = await urlAs("custody", "custody")
  const [role] = await query(custody, "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user")
  expect(role).toEqual({ rolsuper: false, rolcreatedb: false, rolcreaterole: false })
  for (const [from, to] of [
    ["custody", "temporal"],
    ["custody", "temporal_visibility"],
    ["temporal", "custody"]
  ] as const)
    await expect(urlAs(from, to).then((url) => query(url, "SELECT 1"))).rejects.toThrow("permission denied for database")
  // What Temporal's own schema needs in addition to tables.
  await query(await urlAs("temporal", "temporal_visibility"), "CREATE EXTENSION IF NOT EXISTS btree_gin")

  await app.open([], { DATABASE_URL: custody })
  expect((await cli(["migrate"], app.env)).code).toBe(0)
  app.main = await app.start(["api", "worker", "dispatcher"])
  await app.feed(smallest())
  await app.feed([transaction("vault_a", 1)])
  expect((await query(custody, "SELECT count(*)::int AS n FROM transactions"))[0]).toEqual({ n: 1 })
})
