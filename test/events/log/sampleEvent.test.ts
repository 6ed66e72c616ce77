/** Samples of every kind: valid, and about nothing. C-12. */
import { expect, test } from "bun:test"
import { Schema } from "effect"
import { schemaOf } from "../../../src/events/log/Envelope.ts"
import { names } from "../../../src/events/log/Kind.ts"
import { sampleEvent } from "../../../src/events/log/sampleEvent.ts"

const ID = "evt_01jz0000000000000000000000"
const AT = "2026-01-31T23:59:59.000Z"
const sampleOf = (kind: (typeof names)[number]) => JSON.parse(sampleEvent(ID, kind, AT))

/** Every text and number in a value, with the name of its field; `entityIds` is that of the items of a list. */
const leaves = (value: unknown, name = ""): ReadonlyArray<readonly [name: string, leaf: unknown]> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, one]) => leaves(one, Array.isArray(value) ? name : key))
    : [[name, value]]

test("the sample of every kind has exactly the fields of its schema, and data.test", () => {
  for (const kind of names) {
    const { data, ...envelope } = sampleOf(kind)
    const { test: marked, ...rest } = data
    expect([kind, marked]).toEqual([kind, true])
    const event = { ...envelope, data: rest }
    const decode = Schema.decodeUnknownSync(schemaOf(kind) as Schema.Schema<unknown>, { onExcessProperty: "error" })
    expect([kind, decode(event)]).toEqual([kind, event])
    expect(Object.keys(envelope)).toEqual(["id", "kind", "schemaVersion", "date", "entityId", "vaultIds"])
    expect([envelope.id, envelope.kind, envelope.date]).toEqual([ID, kind, AT])
  }
})

test("ids in a sample name nothing, amounts are 0, and hashes and addresses are zeros", () => {
  for (const kind of names) {
    const { id: _, ...sample } = sampleOf(kind)
    const found = leaves(sample)
    for (const [name, leaf] of found) {
      const place = [kind, name, leaf]
      if (/^(?:id|.+Ids?)$/.test(name) && leaf !== null) expect(place).toEqual([kind, name, expect.stringMatching(/^[a-z]+_0{26}$/)])
      if (name === "amount") expect(leaf).toBe("0")
      if (/hash$/i.test(name) && leaf !== null) expect(place).toEqual([kind, name, expect.stringMatching(/^(?:0x)?0{64}$/)])
      if (["address", "from", "to"].includes(name)) expect(leaf).toBe(`0x${"0".repeat(40)}`)
    }
    expect([kind, found.some(([, leaf]) => String(leaf).endsWith("_00000000000000000000000000"))]).toEqual([kind, true])
  }
})
