import { describe, expect, test } from "bun:test"
import { eventSchema } from "../../src/events/log/eventSchema.ts"
import { type Kind, kinds, names } from "../../src/events/log/Kind.ts"
import { names as files, golden, pretty, read } from "../support/golden.ts"
import { broken, isNode, type Json, type Node } from "../support/jsonSchema.ts"

/** The schema of a kind as JSON. */
const schema = (kind: Kind): Node => {
  const json: Json = JSON.parse(JSON.stringify(eventSchema(kind)))
  if (!isNode(json)) throw new Error(`${kind} has no schema`)
  return json
}

const fileOf = (kind: Kind) => `${kind}.v${kinds[kind].schemaVersion}.json`

describe("versions of an event's schema", () => {
  for (const kind of names) {
    test(`${kind} version ${kinds[kind].schemaVersion} removes nothing that readers rely on`, () => {
      const now = schema(kind)
      const known = read(`events/${fileOf(kind)}`)
      if (known !== undefined) {
        const before: Node = JSON.parse(known)
        expect({ "raise schemaVersion for": broken(before, now, { before, after: now }) }).toEqual({ "raise schemaVersion for": [] })
      }
      golden(`events/${fileOf(kind)}`, pretty(now))
    })
  }

  test("every published version is still on file, and its kind still exists", () => {
    for (const file of files("events")) {
      const [, kind = "", version = ""] = /^(.+)\.v(\d+)\.json$/.exec(file) ?? []
      expect([file, names.some((name) => name === kind)]).toEqual([file, true])
      expect(Number(version)).toBeLessThanOrEqual(kinds[kind as Kind].schemaVersion)
    }
  })

  test("breaking changes are reported and compatible ones are not", () => {
    const base = {
      type: "object",
      required: ["a"],
      properties: { a: { type: "string", enum: ["x", "y"] }, b: { type: "array", items: { $ref: "#/components/schemas/B" } } },
      components: { schemas: { B: { type: "integer" } } }
    }
    const change = (edit: (copy: typeof base) => object): ReadonlyArray<string> => {
      const after = edit(structuredClone(base)) as Node
      return broken(base, after, { before: base, after })
    }
    expect(change((_) => ({ ..._, description: "new words" }))).toEqual([])
    expect(change((_) => ({ ..._, required: ["a", "b"], properties: { ..._.properties, c: { type: "string" } } }))).toEqual([])
    expect(change((_) => ({ ..._, properties: { ..._.properties, a: { type: "string", enum: ["x", "y", "z"] } } }))).toEqual([])
    expect(change((_) => ({ ..._, required: [] }))).toEqual(["/a was always there and is no longer"])
    expect(change((_) => ({ ..._, properties: { a: _.properties.a } }))).toEqual(["/b is gone"])
    expect(change((_) => ({ ..._, properties: { ..._.properties, a: { type: "string", enum: ["x"] } } }))).toEqual(['/a no longer has "y"'])
    expect(change((_) => ({ ..._, properties: { ..._.properties, a: { type: "integer", enum: ["x", "y"] } } }))).toEqual([
      '/a type was "string" and is "integer"'
    ])
    expect(change((_) => ({ ..._, components: { schemas: { B: { type: "string" } } } }))).toEqual([
      '/b/* type was "integer" and is "string"'
    ])
    expect(
      change((_) => ({ ..._, properties: { ..._.properties, a: { type: "string", enum: ["x", "y"], anyOf: [{ type: "null" }] } } }))
    ).toEqual(["/a has other alternatives"])
  })
})
