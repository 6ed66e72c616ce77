/** A database that goes back to an earlier point while API processes run, as a restore or an asynchronous standby does. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { asset, balance, smallest, vault } from "../../support/records.ts"
import { copyDatabase, dropDatabase } from "../../support/servers.ts"

const app = useApp([])
let backup = ""

beforeAll(async () => {
  backup = `${app.databaseUrl}_backup`
  app.main = await app.start(["api"])
  await app.feed(smallest())
  await app.main.end()
  await copyDatabase(app.databaseUrl, backup)
})
afterAll(() => dropDatabase(backup))

test("a catalog record that the database lost is applied when it comes again", async () => {
  const first = await app.start(["api"])
  const second = await app.start(["api"])
  const lost = [vault("vault_lost", "entity_a"), balance("vault_lost", "ethereum/native", "7")]
  app.main = first
  for (const record of lost) expect((await app.feed([record])).changed).toBe(1)

  await copyDatabase(backup, app.databaseUrl)
  // As many changes of the catalog as were lost, by another process.
  app.main = second
  await app.feed([asset("ethereum/erc20:0x6B175474E89094C44Da98b954EedeAC495271d0F")])
  app.main = first
  for (const record of lost) expect((await app.feed([record])).changed).toBe(1)
  expect(await app.sql("SELECT amount::text FROM balances WHERE vault_id = 'vault_lost'")).toEqual([{ amount: "7" }])
})
