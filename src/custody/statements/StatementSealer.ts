/**
 * Seals statements: each vault has a statement for every day from `STATEMENT_HISTORY` before it was first recorded here,
 * sealed `STATEMENT_DELAY` after the day, by the clock of Postgres or of this process, whichever is behind. A day that late records changed is compared with its statement, and gets
 * another revision if they differ. Each statement is announced by an event. Each step is one transaction that extends the
 * vault's chain by a few days, so a process may be killed anywhere and another one continues. A step holds the
 * organization's event stream, as the ledger does: what a statement counts, and what was recorded late, is exact, and
 * concurrent sealers take turns. C-6, C-10.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Metric, Schema } from "effect"
import * as EventLog from "../../events/log/EventLog.ts"
import { SigningKeys } from "../../runtime/crypto/SigningKeys.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { transaction } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { dayAfter, later } from "../../values/Day.ts"
import { type Because, StatementLine } from "../../values/Statement.ts"
import { hashOf, type Sealed } from "./hashOf.ts"
import { becauseOf, lateChanges, takeChanges } from "./lateChanges.ts"
import { changedAssets, statementLines } from "./statementLines.ts"

/** Vaults per query, and vaults sealed concurrently. */
const PAGE = 100,
  CONCURRENCY = 4
/** Most days per step, and how long a step may take for the next one to be larger, in ms. A vault's first has one day. */
const MOST_DAYS = 32,
  QUICK = 100

const DueVault = Schema.Struct({
  id: Schema.String,
  organizationId: Schema.String,
  /** The day that its chain begins at. */
  start: Schema.String
})
type DueVault = typeof DueVault.Type
const decodeVaults = decodeRows(DueVault)

const Chain = Schema.Struct({
  entityId: Schema.String,
  firstDate: Schema.String,
  nextDate: Schema.String,
  /** The earliest sealed day that late records changed. */
  reviseFrom: Schema.NullOr(Schema.String),
  lastHash: Schema.NullOr(Schema.String)
})
type Chain = typeof Chain.Type
const decodeChains = decodeRows(Chain)

const decodeNewest = decodeRows(
  Schema.Struct({ date: Schema.String, revision: Schema.Number, assets: Schema.parseJson(Schema.Array(StatementLine)) })
)

interface NewStatement {
  readonly date: string
  readonly revision: number
  readonly assets: ReadonlyArray<StatementLine>
  /** What changed it; null for a first revision. */
  readonly because: Because | null
}

const counted = Metric.counter("custody_statements_total", {
  description: "Statements by outcome: sealed or revised; failed counts vaults whose sealing failed and is retried"
})
const outcomes = ["sealed", "revised", "failed"] as const

/** The days from one to the day before another, at most `most`. */
const daysFrom = (from: string, before: string, most: number): ReadonlyArray<string> =>
  Array.from({ length: most }, (_, day) => dayAfter(from, day)).filter((date) => date < before)

export class StatementSealer extends Effect.Service<StatementSealer>()("custody/StatementSealer", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const signing = yield* SigningKeys
    const { statementDelay, statementHistory } = yield* Settings
    const history = Duration.toSeconds(statementHistory),
      delay = Duration.toSeconds(statementDelay)

    // Registered at startup: an increase is visible only in a metric that was there before.
    for (const outcome of outcomes) Metric.tagged(counted, "outcome", outcome).unsafeUpdate(0, [])

    const startOf = sql.literal("v.recorded_at - history.span")
    const spans = () => sql`
      (SELECT ${history}::float8 * interval '1 second' AS span,
        (least(clock_timestamp(), ${new Date().toISOString()}::timestamptz) - ${delay}::float8 * interval '1 second')::date AS due) history`

    /** Vaults with statements to seal or compare, by id. */
    const dueVaults = (after: string) =>
      decodeVaults(sql`
      SELECT v.id, v.organization_id AS "organizationId", (${startOf})::date::text AS start
      FROM ${spans()} CROSS JOIN vaults v LEFT JOIN statement_chains c ON c.vault_id = v.id
      WHERE v.id > ${after} AND (
        (c.vault_id IS NULL AND (${startOf})::date < history.due) OR c.next_date < history.due
        OR c.first_date > (${startOf})::date OR EXISTS (SELECT 1 FROM statement_changes n WHERE n.vault_id = v.id AND n.date < history.due))
      ORDER BY v.id LIMIT ${PAGE}`)

    /** The vault's chain, empty if it has no statements; undefined if its organization is being deleted. */
    const chainOf = ({ id, start }: DueVault) =>
      Effect.map(
        decodeChains(sql`
        SELECT v.entity_id AS "entityId", coalesce(c.first_date, ${start}::date)::text AS "firstDate",
          coalesce(c.next_date, ${start}::date)::text AS "nextDate", c.last_hash AS "lastHash",
          (SELECT min(n.date) FROM statement_changes n WHERE n.vault_id = v.id)::text AS "reviseFrom"
        FROM vaults v JOIN organizations o ON o.id = v.organization_id AND o.deleting_at IS NULL
        LEFT JOIN statement_chains c ON c.vault_id = v.id WHERE v.id = ${id}`),
        ([chain]) => chain
      )

    /** Appends statements to the chain, in this order, announces them, and stores the chain. */
    const append = Effect.fnUntraced(function* (
      streams: EventLog.Streams,
      { id: vaultId, organizationId }: DueVault,
      chain: Chain,
      statements: ReadonlyArray<NewStatement>
    ) {
      const sealedAt = new Date(streams.now).toISOString()
      let { lastHash } = chain
      const rows: Array<Sealed & { readonly hash: string; readonly jws: string; readonly because: Because | null }> = []
      for (const { assets, because, date, revision } of statements) {
        const sealed: Sealed = { vaultId, date, revision, sealedAt, previousHash: lastHash, assets }
        const hash = hashOf(sealed)
        rows.push({ ...sealed, hash, because, jws: yield* signing.sign({ iss: signing.issuer, vaultId, date, revision, hash }) })
        lastHash = hash
      }
      const column = <A>(of: (row: (typeof rows)[number]) => A) => rows.map(of)
      yield* sql`
        WITH chain AS (
          INSERT INTO statement_chains (vault_id, first_date, next_date, last_hash)
          VALUES (${vaultId}, ${chain.firstDate}::date, ${chain.nextDate}::date, ${lastHash})
          ON CONFLICT (vault_id) DO UPDATE SET first_date = excluded.first_date, next_date = excluded.next_date, last_hash = excluded.last_hash
        )
        INSERT INTO statements (vault_id, date, revision, sealed_at, previous_hash, hash, assets, jws)
        SELECT ${vaultId}, * FROM unnest(${column(({ date }) => date)}::date[], ${column(({ revision }) => revision)}::integer[],
          ${column(({ sealedAt }) => sealedAt)}::timestamptz[], ${column(({ previousHash }) => previousHash)}::text[],
          ${column(({ hash }) => hash)}::text[], ${column(({ assets }) => JSON.stringify(assets))}::text[], ${column(({ jws }) => jws)}::text[])`
      const occurrences = rows.map(({ because, date, hash, previousHash, revision }) => ({
        kind: because === null ? ("statement.sealed" as const) : ("statement.revised" as const),
        date: sealedAt,
        organizationId,
        entityId: chain.entityId,
        vaultId,
        data: { vaultId, statement: { date, revision, hash, previousHash, sealedAt }, because }
      }))
      yield* EventLog.append(sql, streams, occurrences, EventLog.identify(streams, occurrences))
    })

    /** Compares sealed days with the ledger. Returns how many got another revision, and the chain after it. */
    const revise = Effect.fnUntraced(function* (streams: EventLog.Streams, vault: DueVault, chain: Chain, days: ReadonlyArray<string>) {
      const [from = chain.nextDate] = days
      const before = dayAfter(from, days.length)
      const newest = yield* decodeNewest(sql`
        SELECT DISTINCT ON (s.date) s.date::text AS date, s.revision, s.assets FROM statements s
        WHERE s.vault_id = ${vault.id} AND s.date >= ${from}::date AND s.date < ${before}::date
        ORDER BY s.date, s.revision DESC`)
      const lines = yield* statementLines(sql, vault.id, from, days.length)
      const changes = yield* lateChanges(sql, vault.id, from, before)
      const compared = newest.map(({ assets, date, revision }) => {
        const after = lines.get(date) ?? []
        return { date, revision: revision + 1, assets: after, changed: changedAssets(assets, after) }
      })
      const revisions = compared
        .filter(({ changed }) => changed.size > 0)
        .map((one) => ({ ...one, because: becauseOf(changes, one.date, one.changed) }))
      const last = compared.at(-1)?.changed ?? new Set()
      // A balance that changed the last of these days changes the next one too.
      yield* takeChanges(sql, vault.id, from, before, before < chain.nextDate ? changes.assets.filter(({ cause }) => last.has(cause)) : [])
      yield* append(streams, vault, chain, revisions)
      return { sealed: 0, revised: revisions.length }
    })

    /** Seals days for the first time. Returns how many, and the chain after it. */
    const sealDays = Effect.fnUntraced(function* (streams: EventLog.Streams, vault: DueVault, days: ReadonlyArray<string>, chain: Chain) {
      const [first = "", last = first] = [days[0], days.at(-1)]
      const lines = yield* statementLines(sql, vault.id, first, days.length)
      const statements = days.map((date) => ({ date, revision: 1, assets: lines.get(date) ?? [], because: null }))
      const earlier = last < chain.firstDate
      const after = earlier ? { ...chain, firstDate: first } : { ...chain, nextDate: dayAfter(last) }
      yield* append(streams, vault, after, earlier ? statements.reverse() : statements)
      return { sealed: days.length, revised: 0 }
    })

    /** One step of a vault's chain: the days to compare, then those before its beginning, then those that are due. */
    const step = (vault: DueVault, most: number) =>
      transaction(sql)(
        Effect.gen(function* () {
          const streams = yield* EventLog.lock(sql, [vault.organizationId])
          const chain = yield* chainOf(vault)
          if (chain === undefined || streams.of.size === 0) return { sealed: 0, revised: 0, isDone: true }
          const due = new Date(Math.min(streams.now, Date.now()) - Duration.toMillis(statementDelay)).toISOString().slice(0, 10)
          // A day that a wrong clock sealed too early is compared when it is over, not with each of its records.
          const late = chain.reviseFrom === null ? [] : daysFrom(chain.reviseFrom, due, most).filter((date) => date < chain.nextDate)
          if (late.length > 0) return { ...(yield* revise(streams, vault, chain, late)), isDone: false }
          const earlier = vault.start < chain.firstDate
          const days = earlier
            ? daysFrom(later(dayAfter(chain.firstDate, -most), vault.start), chain.firstDate, most)
            : daysFrom(chain.nextDate, due, most)
          const last = days.at(-1)
          if (last === undefined) return { sealed: 0, revised: 0, isDone: true }
          return { ...(yield* sealDays(streams, vault, days, chain)), isDone: !earlier && dayAfter(last) >= due }
        })
      )

    /** Seals a vault's due statements. Stops at the deadline, or after one step; `done`: whether nothing is left to do. */
    const sealVault = (vault: DueVault, until: number, atLeastOne: boolean) =>
      Effect.suspend(() => {
        const result = { sealed: 0, revised: 0, failed: 0, done: false }
        return Effect.gen(function* () {
          const mayStart = atLeastOne || Date.now() < until
          for (let days = 1, goesOn = mayStart; goesOn; goesOn = !result.done && Date.now() < until) {
            const [took, { isDone, revised, sealed }] = yield* Effect.timed(step(vault, days))
            result.done = isDone
            result.sealed += sealed
            result.revised += revised
            days = Duration.toMillis(took) < QUICK ? Math.min(days * 2, MOST_DAYS) : Math.max(1, Math.floor(days / 2))
          }
        }).pipe(
          Effect.catchAllCause((cause) => {
            Object.assign(result, { failed: 1, done: true })
            return Effect.annotateLogs(Effect.logError("a vault's statements could not be sealed and will be retried", cause), {
              vaultId: vault.id
            })
          }),
          Effect.map(() => result)
        )
      })

    return {
      /**
       * Seals due statements of the vaults after an id, for at most `millis` milliseconds. Returns the counts, and the vault to
       * continue after; null if every vault was checked.
       */
      seal: Effect.fn("StatementSealer.seal")(function* (after: string, millis: number) {
        const until = Date.now() + millis
        const total = { sealed: 0, revised: 0, failed: 0 }
        for (let last = after; ; ) {
          const vaults = yield* dueVaults(last)
          // Even past the deadline, a part makes some progress.
          const results = yield* Effect.forEach(
            vaults,
            (vault, index) => Effect.map(sealVault(vault, until, index === 0), (result) => ({ ...result, id: vault.id })),
            { concurrency: CONCURRENCY }
          )
          for (const name of outcomes) {
            const count = results.reduce((sum, one) => sum + one[name], 0)
            total[name] += count
            yield* Metric.incrementBy(Metric.tagged(counted, "outcome", name), count)
          }
          // A vault that was cut short is the first of the next part; later ones that are already done cost that part nothing.
          const cut = results.findIndex(({ done }) => !done)
          if (cut >= 0) return { ...total, after: results[cut - 1]?.id ?? last }
          last = results.at(-1)?.id ?? last
          if (vaults.length < PAGE) return { ...total, after: null }
        }
      }, Effect.orDie)
    }
  })
}) {
  static readonly layer = this.Default
}
