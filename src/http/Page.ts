/**
 * Pagination: every list has the same shape, parameters and cursors. A page is queried with one row more than `limit`, so
 * `nextCursor` is null exactly on the last page. Pages before it may be short, because a page is bounded by its size, too; in a
 * list whose search is bounded they may be empty. A cursor is the sort key of the last row, encrypted and bound to the list, its
 * path ids and its filters. It grants no access: access is evaluated again for each page. Spec: Common rules 2. Decisions D-1,
 * D-2, D-3.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Schema } from "effect"
import { MasterKey } from "../runtime/crypto/MasterKey.ts"
import { currentReading } from "../runtime/database/replica/Reading.ts"
import { type Problem, problem } from "./Problem.ts"

/** Default `limit`. Spec: Limits. */
const DEFAULT_LIMIT = 100
/** Largest `limit`. */
export const MAX_LIMIT = 500

const Limit = Schema.transform(
  Schema.String.pipe(
    Schema.filter(
      (text) =>
        (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_LIMIT) || `must be a whole number from 1 to ${MAX_LIMIT}`
    )
  ).annotations({ jsonSchema: { type: "integer", minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT } }),
  Schema.Number,
  { strict: true, decode: Number, encode: String }
).annotations({
  description: `Page size; ${DEFAULT_LIMIT} by default. A page may be shorter: it has at most about 1 MiB, and only a null \`nextCursor\` means the end`
})

/** The query parameters that every list takes. */
export const PageParams = {
  limit: Schema.optionalWith(Limit, { default: () => DEFAULT_LIMIT }),
  cursor: Schema.optional(
    Schema.String.annotations({
      jsonSchema: { type: "string", maxLength: 256, description: "`nextCursor` of the previous page, with the same filters" }
    })
  )
}

/** The shape of every list response. */
export const Page = <A, I, R>(item: Schema.Schema<A, I, R>, identifier: string) =>
  Schema.Struct({
    data: Schema.Array(item),
    pagination: Schema.Struct({
      limit: Schema.Int.annotations({
        description: "Page size",
        jsonSchema: { type: "integer", minimum: 1, maximum: MAX_LIMIT, examples: [DEFAULT_LIMIT] }
      }),
      nextCursor: Schema.NullOr(Schema.String).annotations({ description: "Cursor of the next page; null on the last page" })
    }).annotations({ identifier: "Pagination" })
  }).annotations({ identifier })

/** A sort key: the last row's values of the columns that order the list, as text. */
export type Key = ReadonlyArray<string>

/** What a cursor is bound to: the list's name, its path ids and its filters. */
export interface Of {
  readonly list: string
  readonly path?: ReadonlyArray<string>
  readonly filters?: Readonly<Record<string, unknown>>
}

/** One page of rows, not yet encoded. */
export interface PageOf<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly limit: number
  readonly nextCursor: string | null
}

/** Rows of a bounded search, or up to a size. There may be fewer than were asked for although the list goes on. */
export interface Searched<Row> {
  readonly rows: ReadonlyArray<Row>
  /** The sort key of the last row that was looked at, if there may be more; null at the end of the list. */
  readonly place: Key | null
}

/** Rows up to a size (upToBytes.ts), each with the number of rows `behind` it. */
export const upToLast = <Row extends { readonly behind: number }>(rows: ReadonlyArray<Row>, keyOf: (row: Row) => Key): Searched<Row> => {
  const last = rows.at(-1)
  return { rows, place: last === undefined || last.behind === 0 ? null : keyOf(last) }
}

interface PageRequest<Row, E, R> {
  readonly of: Of
  readonly limit: number
  readonly cursor: string | undefined
  /** Number of values in the sort key. */
  readonly keyLength: number
  /** At most `take` rows after the key, in the list's order: all that there are, or what a bounded search found. */
  readonly fetch: (after: Key | null, take: number) => Effect.Effect<ReadonlyArray<Row> | Searched<Row>, E, R>
  readonly keyOf: (row: Row) => Key
}

const contextOf = ({ filters = {}, list, path = [] }: Of): string =>
  JSON.stringify([
    list,
    path,
    Object.entries(filters)
      .filter(([, value]) => value !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
  ])

const invalidCursor = () =>
  problem("invalid_cursor", "The cursor was not returned by this list with these filters.", {
    fields: [{ in: "query", field: "cursor", code: "invalid_cursor", detail: "must be the nextCursor of this list with the same filters" }]
  })

const isKey = (value: unknown, length: number): value is Key =>
  Array.isArray(value) && value.length === length && value.every((part) => typeof part === "string")

/** The first byte of a cursor's content that has a position of the write-ahead log, and the length of the position in bytes. */
const MARK = 0x40,
  POSITION = 6

/** The sort key of a cursor, and the position that the list's first page had seen, if it may have come from a replica. */
interface Opened {
  readonly key: Key
  readonly seen: number | undefined
}

/** The typed pagination layer: encrypts and decrypts cursors, and cuts pages. */
export class Pages extends Effect.Service<Pages>()("custody/Pages", {
  effect: Effect.map(MasterKey, (master) => {
    const open = (context: string, cursor: string, length: number): Opened | undefined => {
      if (cursor.length > 256) return undefined
      const sealed = Buffer.from(cursor, "base64url")
      // The base64 decoder ignores unknown characters and spare bits; only the exact text that was issued is a valid
      // cursor.
      if (sealed.toString("base64url") !== cursor) return undefined
      const plain = master.open("cursor", sealed, context)
      const marked = plain?.[0] === MARK
      const key: unknown = plain === undefined ? undefined : JSON.parse(plain.toString("utf8", marked ? 1 + POSITION : 0))
      return isKey(key, length) ? { key, seen: marked ? plain?.readUIntBE(1, POSITION) : undefined } : undefined
    }
    const seal = (context: string, key: Key, seen: number | undefined) => {
      const mark = Buffer.alloc(seen === undefined ? 0 : 1 + POSITION, MARK)
      // In binary, because the longest key leaves only a few bytes.
      if (seen !== undefined) mark.writeUIntBE(seen, 1, POSITION)
      return master.seal("cursor", Buffer.concat([mark, Buffer.from(JSON.stringify(key))]), context).toString("base64url")
    }

    return {
      /** One page. Fails with `invalid_cursor` for a cursor that this list did not issue with these filters. */
      cut: <Row, E, R>(ask: PageRequest<Row, E, R>): Effect.Effect<PageOf<Row>, E | Problem<"invalid_cursor">, R> =>
        Effect.flatMap(currentReading, (reading): Effect.Effect<PageOf<Row>, E | Problem<"invalid_cursor">, R> => {
          const opened = ask.cursor === undefined ? null : open(contextOf(ask.of), ask.cursor, ask.keyLength)
          if (opened === undefined) return Effect.fail(invalidCursor())
          // This page sees everything that earlier pages saw. Decision D-58.
          if (opened !== null && reading !== undefined)
            reading.needs = Math.max(reading.needs, opened.seen ?? reading.begun ?? reading.needs)
          return Effect.map(ask.fetch(opened?.key ?? null, ask.limit + 1), (found): PageOf<Row> => {
            const { place, rows } = "rows" in found ? found : { rows: found, place: null }
            const last = rows[ask.limit - 1]
            const next = rows.length > ask.limit && last !== undefined ? ask.keyOf(last) : place
            return {
              rows: rows.slice(0, ask.limit),
              limit: ask.limit,
              nextCursor: next === null ? null : seal(contextOf(ask.of), next, reading?.seen)
            }
          })
        })
    }
  })
}) {
  static readonly layer = this.Default
}

/** A page as a response, with each row mapped by `toItem`. */
export const answer = <Row, Item>(page: PageOf<Row>, toItem: (row: Row) => Item) => ({
  data: page.rows.map(toItem),
  pagination: { limit: page.limit, nextCursor: page.nextCursor }
})

/** A row as JSON text with these fields, in their order. The fields of `texts` are JSON text already, or null. */
export const jsonOfRow = <Name extends string>(
  names: ReadonlyArray<Name>,
  row: Readonly<Record<Name, unknown>>,
  texts: { readonly [_ in Name]?: string | null }
): string => `{${names.map((name) => `"${name}":${name in texts ? texts[name] : JSON.stringify(row[name])}`).join(",")}}`

/** JSON text as a response. */
export const jsonText = (text: string) => HttpServerResponse.raw(text, { contentType: "application/json" })

/** A page of rows whose JSON text is made or stored already, as a response. */
export const answerJson = <Row>(page: PageOf<Row>, jsonOf: (row: Row) => string) => {
  let data = ""
  for (const row of page.rows) data += data === "" ? jsonOf(row) : `,${jsonOf(row)}`
  return jsonText(
    `{"data":[${data}],"pagination":{"limit":${page.limit},"nextCursor":${page.nextCursor === null ? "null" : `"${page.nextCursor}"`}}}`
  )
}
