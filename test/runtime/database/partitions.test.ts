/** Partitions that are created ahead, beside another copy of the tables in the same database. */
import { expect, test } from "bun:test"
import * as Partitions from "../../../src/runtime/database/Partitions.ts"
import { useApi } from "../../support/api.ts"

const app = useApi()

test("a table of the same name in another schema is no partition", async () => {
  const name = Partitions.nameOf("events", Partitions.dayOf(Date.now()) + 3)
  const attached = () => app.sql("SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass($1)", [`public.${name}`])
  expect(await attached()).toHaveLength(1)
  await app.sql("CREATE SCHEMA former")
  await app.sql(`ALTER TABLE events DETACH PARTITION ${name}`)
  await app.sql(`ALTER TABLE ${name} SET SCHEMA former`)
  await app.start(["api"])
  expect(await attached()).toHaveLength(1)
})
