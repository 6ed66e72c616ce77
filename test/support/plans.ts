/**
 * The cost of list pages, from the plans of their statements (explain.ts): rows read and memory pages touched. A test of
 * plans tries every filter of a list, alone and in pairs, also with values that match nothing.
 */

import { expect } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { long } from "../faults/Rig.ts"
import { type App, useApp } from "./app.ts"

/** Rows of a page. */
export const LIMIT = 20

interface Cost {
  readonly asked: number
  readonly answered: number
  readonly text: string
  readonly plan: string
  readonly rows: number
  readonly buffers: number
  readonly error?: string
}

/** The values to try of each filter. */
export interface Filters {
  readonly [name: string]: ReadonlyArray<string>
}

/** Limits of each statement of a page. */
export interface Bounds {
  readonly rows: number
  readonly buffers: number
}

/** Every choice of at most two of the filters, with none, one or two values each; of at most one if there are to be no pairs. */
const choices = (filters: Filters, pairwise: boolean) => {
  const single = Object.entries(filters).flatMap(([name, values]) => values.map((value) => ({ [name]: value })))
  const pairs = single.flatMap((one, index) =>
    single.slice(index + 1).flatMap((other) => (Object.keys(one)[0] === Object.keys(other)[0] ? [] : [{ ...one, ...other }]))
  )
  return [{}, ...single, ...(pairwise ? pairs : [])]
}

/** Fails if a statement of a page exceeds the limits. */
export const expectWithin = (costs: ReadonlyArray<Cost>, bounds: Bounds, page: string): void => {
  for (const { buffers, error, plan, rows, text } of costs) {
    expect([page, error]).toEqual([page, undefined])
    if (rows > bounds.rows || buffers > bounds.buffers)
      throw new Error(`${page} looked at ${rows} rows and ${buffers} buffers by ${plan}: ${text}`)
  }
}

/** Keeps Postgres from analyzing tables, as it does once a minute: plans and statistics stay as they are until a test analyzes. */
export const withoutAutovacuum = (app: App) =>
  app.sql(`DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
      EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', name);
    END LOOP; END $$`)

/** Analyzes tables while they lack the rows with a condition, and has statements planned by these statistics, which are stale afterwards. */
export const planWithout = async (app: App, missing: { readonly [table: string]: string }, plan: () => Promise<void>): Promise<void> => {
  for (const [table, condition] of Object.entries(missing)) {
    await app.sql(`CREATE TABLE missing_${table} AS SELECT * FROM ${table} WHERE ${condition}`)
    await app.insert(`DELETE FROM ${table} WHERE ${condition}`)
    await app.sql(`VACUUM ANALYZE ${table}`)
  }
  await plan()
  for (const table of Object.keys(missing))
    await app.insert(`INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM missing_${table}; DROP TABLE missing_${table}`)
}

/** The service for a test of plans, and how to ask for pages of it. */
export const explained = (): {
  readonly app: App
  /** The cost of each statement since the last call. */
  readonly costs: () => Promise<ReadonlyArray<Cost>>
  /** A page, and the cost of each of its statements. */
  readonly pageOf: (
    list: string,
    query: { readonly [name: string]: string },
    secret: string
  ) => Promise<{ readonly rows: number; readonly cursor: string | null; readonly costs: ReadonlyArray<Cost> }>
  /**
   * Asks for the first two pages of any choice of filters: Postgres plans their statements by what the tables contain, and keeps the
   * plans.
   */
  readonly plan: (list: string, filters: Filters, secret: string, pairwise?: boolean) => Promise<void>
  /**
   * Fails when a statement of the first two pages of any choice of filters looked at more than the bounds. Without `pairwise`,
   * pairs of filters are tried in the long run only.
   */
  readonly expectBounded: (list: string, filters: Filters, secret: string, bounds: Bounds, pairwise?: boolean) => Promise<void>
} => {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "custody-explain-")), "plans")
  const app = useApp(["api"], { EXPLAIN_TO: file })
  /** Where in the file the next look begins. */
  let read = 0

  /** The costs measured since the last call, once all are written. */
  const costs = async (): Promise<ReadonlyArray<Cost>> => {
    const found: Array<Cost> = []
    for (;;) {
      const text = fs.existsSync(file) ? await Bun.file(file).slice(read).text() : ""
      const whole = text.slice(0, text.lastIndexOf("\n") + 1)
      read += Buffer.byteLength(whole)
      for (const line of whole.split("\n")) if (line !== "") found.push(JSON.parse(line))
      const last = found.at(-1)
      if (last !== undefined && last.answered === last.asked) return found
      await Bun.sleep(1)
    }
  }

  const pageOf = async (list: string, query: { readonly [name: string]: string }, secret: string) => {
    const answer = await app.get(`${list}?${new URLSearchParams(query)}`, secret)
    expect([list, query, answer.status, answer.text.slice(0, 200)]).toEqual([list, query, 200, expect.any(String)])
    return { rows: answer.json.data.length, cursor: answer.json.pagination?.nextCursor ?? null, costs: await costs() }
  }

  const plan = async (list: string, filters: Filters, secret: string, pairwise = true) => {
    for (const choice of choices(filters, pairwise || long)) {
      const query = { limit: String(LIMIT), ...choice }
      const { cursor } = await pageOf(list, query, secret)
      if (cursor !== null) await pageOf(list, { ...query, cursor }, secret)
    }
  }

  const expectBounded = async (list: string, filters: Filters, secret: string, bounds: Bounds, pairwise = true) => {
    for (const choice of choices(filters, pairwise || long)) {
      const query = { limit: String(LIMIT), ...choice }
      const first = await pageOf(list, query, secret)
      const second = first.cursor === null ? [] : (await pageOf(list, { ...query, cursor: first.cursor }, secret)).costs
      // The cost of statements that are not prepared would be unknown.
      expect([query, first.costs.length > 1]).toEqual([query, true])
      expectWithin([...first.costs, ...second], bounds, JSON.stringify(query))
    }
  }
  return { app, costs, pageOf, plan, expectBounded }
}
