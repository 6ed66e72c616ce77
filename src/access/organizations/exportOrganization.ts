/**
 * Exports everything of an organization to an NDJSON file, from one consistent snapshot: custody data as records that
 * `custody load` reads, and every other table's rows as `{"table": …, "row": …}`. Secrets are left out. The file can only be read
 * by its owner, and has its name only once it is complete. Decision D-56.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs/promises"
import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Data, Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { OPERATOR, record } from "../audit/AuditTrail.ts"
import { recordsOf } from "./exportedRecords.ts"
import { auditLog, deletedTables, UnknownOrganization } from "./organizationTables.ts"

/** Rows that are read at a time. */
const PART = 500

/** The file cannot be written. */
export class NotWritten extends Data.TaggedError("NotWritten")<{ readonly message: string }> {}

/** What was exported: the file's records, and its other rows by table. */
export interface Exported {
  readonly organizationId: string
  readonly file: string
  readonly records: number
  readonly rows: Readonly<Record<string, number>>
}

/** Tables whose rows are exported. */
const exported = [...deletedTables, auditLog].filter(({ exported = "rows" }) => exported === "rows")

/** Secrets by table, which no export contains. */
const secrets = Object.fromEntries(exported.flatMap(({ secret, table }) => (secret === undefined ? [] : [[table, secret]])))

/** A file under a temporary name, which is removed with the scope unless it was completed. */
const writing = (file: string) => {
  const temporary = `${file}.${randomBytes(4).toString("hex")}.part`
  const failed = (error: unknown) =>
    new NotWritten({ message: `${file} cannot be written: ${error instanceof Error ? error.message : String(error)}.` })
  const attempt = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: failed })
  return Effect.map(
    Effect.acquireRelease(
      attempt(async () => {
        // Otherwise only the rename would fail, after everything was read.
        if ((await fs.stat(file).catch(() => undefined))?.isDirectory() === true) throw new Error("it is a folder")
        return await fs.open(temporary, "wx", 0o600)
      }),
      (handle) => Effect.promise(() => handle.close().then(() => fs.rm(temporary, { force: true })))
    ),
    (handle) => ({
      write: (lines: ReadonlyArray<string>) => attempt(() => handle.appendFile(lines.map((line) => `${line}\n`).join(""))),
      complete: attempt(async () => {
        await handle.sync()
        await fs.rename(temporary, file)
      })
    })
  )
}

const decodeLines = decodeRows(Schema.Struct({ line: Schema.String })),
  decodeDeleting = decodeRows(Schema.Struct({ deleting: Schema.Boolean }))

/** Writes the file. Fails with {@link UnknownOrganization} or {@link NotWritten}, and leaves nothing behind then. */
export const exportOrganization = (organizationId: string, file: string, onProgress: (lines: number) => void) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows: Record<string, number> = {}
    let records = 0,
      lines = 0

    const snapshot = sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`
        const [found] = yield* decodeDeleting(
          sql`SELECT deleting_at IS NOT NULL AS deleting FROM organizations WHERE id = ${organizationId}`
        )
        if (found === undefined) return yield* new UnknownOrganization({ organizationId })
        if (found.deleting)
          return yield* new NotWritten({ message: `${organizationId} is being deleted, so its export would not be complete.` })
        const out = yield* writing(file)
        const head = { organizationId, exportedAt: new Date().toISOString(), secrets }
        yield* out.write([JSON.stringify({ table: "export", row: head })])

        /** Writes the lines that a statement selects; returns how many. */
        const write = Effect.fnUntraced(function* (select: Statement.Fragment) {
          yield* sql`DECLARE exported NO SCROLL CURSOR FOR ${select}`
          let count = 0
          for (;;) {
            const part = yield* decodeLines(sql`FETCH ${sql.literal(String(PART))} FROM exported`)
            yield* out.write(part.map(({ line }) => line))
            count += part.length
            lines += part.length
            onProgress(lines)
            if (part.length < PART) break
          }
          yield* sql`CLOSE exported`
          return count
        })

        for (const select of recordsOf(sql, organizationId)) records += yield* write(select)
        for (const { of, secret = [], table } of exported)
          rows[table] = yield* write(sql`
            SELECT '{"table":' || to_json(${table}::text) || ',"row":' || (to_jsonb(t) - ${secret}::text[])::text || '}' AS line
            FROM ${sql(table)} t WHERE ${of(sql, organizationId)}`)
        return out
      })
    )
    const out = yield* snapshot
    // Before the file has its name: no complete file is without an entry.
    yield* record(sql, [
      { organizationId, actor: OPERATOR, action: "organization.exported", target: { type: "organization", id: organizationId } }
    ])
    yield* out.complete
    return {
      organizationId,
      file,
      records,
      rows: Object.fromEntries(Object.entries(rows).filter(([, count]) => count > 0))
    } satisfies Exported
  }).pipe(Effect.scoped)
