/**
 * Measures statements: with `EXPLAIN_TO`, each prepared SELECT is run again on the same connection with the same plan under
 * EXPLAIN (ANALYZE, BUFFERS), and a line for each is written to that file.
 */
import * as fs from "node:fs"
import pg from "pg"

const file = process.env["EXPLAIN_TO"] ?? ""

/** A node of a plan, as Postgres writes it. */
interface Plan {
  readonly "Node Type": string
  readonly "Index Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly "Rows Removed by Index Recheck"?: number
  readonly "Shared Hit Blocks": number
  readonly "Shared Read Blocks": number
  readonly Plans?: ReadonlyArray<Plan>
}

/** Scans of the output of other plan nodes. */
const DERIVED_SCAN = /^(CTE|Subquery|Values|WorkTable) Scan$/

/** Rows read by a plan's scans, including filtered ones. */
const rowsOf = (plan: Plan): number => {
  const below = (plan.Plans ?? []).reduce((sum, one) => sum + rowsOf(one), 0)
  const looked = plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0) + (plan["Rows Removed by Index Recheck"] ?? 0)
  const type = plan["Node Type"]
  return below + (type.includes("Scan") && !DERIVED_SCAN.test(type) ? looked * plan["Actual Loops"] : 0)
}

/** A plan in a line: its nodes with the rows that each gave. */
const shapeOf = (plan: Plan): string =>
  `${plan["Node Type"]} ${plan["Index Name"] ?? ""} ${plan["Actual Rows"]}×${plan["Actual Loops"]} (${(plan.Plans ?? []).map(shapeOf).join("; ")})`

const literal = (value: unknown): string => {
  if (value === null || value === undefined) return "NULL"
  if (Array.isArray(value)) return pg.escapeLiteral(`{${value.map((one) => `"${String(one)}"`).join(",")}}`)
  return pg.escapeLiteral(
    Buffer.isBuffer(value) ? `\\x${value.toString("hex")}` : value instanceof Date ? value.toISOString() : String(value)
  )
}

const query: (...input: ReadonlyArray<unknown>) => unknown = pg.Client.prototype.query
let asked = 0,
  answered = 0

const explaining = {
  query(this: pg.Client, ...input: ReadonlyArray<unknown>) {
    const made = Reflect.apply(query, this, input)
    const [first] = input as [{ readonly name?: string; readonly text?: string; readonly values?: ReadonlyArray<unknown> } | undefined]
    if (
      first?.name === undefined ||
      !/^\s*(SELECT|WITH)/.test(first.text ?? "") ||
      /\b(INSERT|UPDATE|DELETE)\b|FOR SHARE/.test(first.text ?? "")
    )
      return made
    asked++
    const values = (first.values ?? []).map(literal).join(", ")
    const explain = `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE ${pg.escapeIdentifier(first.name)}${values === "" ? "" : `(${values})`}`
    const done = (
      error: Error | null,
      result?: { readonly rows: ReadonlyArray<{ "QUERY PLAN": ReadonlyArray<{ readonly Plan: Plan }> }> }
    ) => {
      answered++
      const plan = result?.rows[0]?.["QUERY PLAN"][0]?.Plan
      const cost =
        plan === undefined
          ? { error: String(error) }
          : { rows: rowsOf(plan), buffers: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], plan: shapeOf(plan) }
      fs.appendFileSync(file, `${JSON.stringify({ asked, answered, text: first.text, ...cost })}\n`)
    }
    Reflect.apply(query, this, [explain, done])
    return made
  }
}
if (file !== "") Object.assign(pg.Client.prototype, explaining)
