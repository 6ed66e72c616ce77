/** Rows of statements are decoded, and a mismatch names its column and no value. Services that tests start decode hot rows, too. */
import { describe, expect, test } from "bun:test"
import { Cause, Effect, Exit, Option, Schema } from "effect"
import { decodeRows, UnexpectedRow } from "../../../src/runtime/database/decodeRows.ts"

const decode = decodeRows(Schema.Struct({ id: Schema.String, count: Schema.NullOr(Schema.Number) }))

/** What `castRows` makes of a row that does not fit, in a process that runs this first. */
const castIn = async (first = ""): Promise<string> => {
  const program = `
    import { Effect, Schema } from "effect"
    import { castRows, decodeAllRows } from "./src/runtime/database/decodeRows.ts"
    ${first}
    const exit = await Effect.runPromiseExit(castRows(Schema.Struct({ id: Schema.String }))(Effect.succeed([{ id: 1 }])))
    console.log(exit._tag)`
  const child = Bun.spawn([process.execPath, "-e", program], {
    cwd: `${import.meta.dir}/../../..`,
    stdout: "pipe",
    stderr: "inherit"
  })
  return (await new Response(child.stdout).text()).trim()
}

describe("rows of statements", () => {
  test("have the columns of their schema", async () => {
    expect(
      await Effect.runPromise(
        decode(
          Effect.succeed([
            { id: "a", count: 1, more: true },
            { id: "b", count: null }
          ])
        )
      )
    ).toEqual([
      { id: "a", count: 1 },
      { id: "b", count: null }
    ])
  })

  test("that do not fit are a defect, which names the column and no value", async () => {
    const exit = await Effect.runPromiseExit(
      decode(
        Effect.succeed([
          { id: "a", count: 1 },
          { id: "b", count: "secret" }
        ])
      )
    )
    const defect = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.dieOption(exit.cause)) : undefined
    expect(defect).toBeInstanceOf(UnexpectedRow)
    expect(String(defect)).toContain("1.count")
    expect(JSON.stringify(defect) + String(defect)).not.toContain("secret")
  })

  test("of frequent statements are decoded in tests only, not in production", async () => {
    expect(await castIn()).toBe("Success")
    expect(await castIn("decodeAllRows()")).toBe("Failure")
  })
})
