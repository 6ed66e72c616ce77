import { test } from "bun:test"
import { jsonSchema } from "../../src/custody/ledger/Record.ts"
import { golden, pretty } from "../support/golden.ts"

test("the JSON Schema of custody records matches its golden file", () => {
  golden("records.json", pretty(jsonSchema()))
})
