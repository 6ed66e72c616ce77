/**
 * Seals statements: each vault has a statement for every day from `STATEMENT_HISTORY` before it was first recorded here,
 * sealed `STATEMENT_DELAY` after the day. A day that late records changed is compared with its statement, and gets
 * another revision if they differ. Each step is one transaction that extends the vault's chain by a few days, so a process
 * may be killed anywhere and another one continues; concurrent sealers of one vault take turns at its chain. C-6.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Metric, Schema } from "effect"
import { SigningKeys } from "../../runtime/crypto/SigningKeys.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { hashOf, type Sealed, type StatementLine } from "./Statement.ts"
import { dayAfter, sameAccount, statementLines } from "./statementLines.ts"

/** Vaults per query, and vaults sealed concurrently. */
const PAGE = 100,
  CONCURRENCY = 4
/** Most days per step, and how long a step may take for the next one to be larger, in ms. A vault's first has one day. */
const MOST_DAYS = 32,
  QUICK = 250

const DueVault = Schema.Struct({
  id: Schema.String,
  /** The day that its chain begins at. */
  start: Schema.String,
  hasChain: Schema.Boolean,
  /** Whether late records were noted. */
  hasNote: Schema.Boolean
})
type DueVault = typeof DueVault.Type
const decodeVaults = decodeRows(DueVault)

const Chain = Schema.Struct({
  firstDate: Schema.String,
  nextDate: Schema.String,
  reviseFrom: Schema.NullOr(Schema.String),
  lastHash: Schema.NullOr(Schema.String)
})
type Chain = typeof Chain.Type
const decodeChains = decodeRows(Chain)

const decodeNewest = decodeRows(Schema.Struct({ date: Schema.String, revision: Schema.Number, assets: Schema.String }))

interface NewStatement {
  readonly date: string
  readonly revision: number
  readonly assets: ReadonlyArray<StatementLine>
}

/** The result of a pass. `failed` vaults are retried by the next one. */
export interface SealResult {
  readonly sealed: number
  readonly revised: number
  readonly failed: number
}

const counted = Metric.counter("custody_statements_total", {
  description: "Statements by outcome: sealed or revised; failed counts vaults whose sealing failed and is retried"
})
const outcomes = ["sealed", "revised", "failed"] as const

const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** The later of two days. */
const later = (...days: readonly [string, string]): string => days.toSorted().at(-1) ?? ""

/** The days from one to the day before another, at most `most`. */
const daysFrom = (from: string, before: string, most: number): ReadonlyArray<string> =>
  Array.from({ length: most }, (_, day) => dayAfter(from, day)).filter((date) => date < before)

export class StatementSealer extends Effect.Service<StatementSealer>()("custody/StatementSealer", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const signing = yield* SigningKeys
    const { statementDelay, statementHistory } = yield* Settings
    const history = Duration.toSeconds(statementHistory)

    /** The last day that is due. */
    const lastDue = () => dayAfter(dayOf(Date.now() - Duration.toMillis(statementDelay)), -1)

    const startOf = sql.literal("v.recorded_at - history.span")
    const spans = sql`(SELECT ${history}::float8 * interval '1 second' AS span) history`

    /** Vaults with statements to seal or compare, by id. */
    const dueVaults = (after: string) =>
      decodeVaults(sql`
      SELECT v.id, (${startOf})::date::text AS start, c.vault_id IS NOT NULL AS "hasChain", n.vault_id IS NOT NULL AS "hasNote"
      FROM ${spans} CROSS JOIN vaults v LEFT JOIN statement_chains c ON c.vault_id = v.id LEFT JOIN statement_changes n ON n.vault_id = v.id
      WHERE v.id > ${after} AND (
        (c.vault_id IS NULL AND (${startOf})::date <= ${lastDue()}::date) OR c.next_date <= ${lastDue()}::date OR c.revise_from IS NOT NULL
        OR c.first_date > (${startOf})::date OR n.vault_id IS NOT NULL)
      ORDER BY v.id LIMIT ${PAGE}`)

    /** The vault's chain, locked, and begun if it is new. */
    const lock = Effect.fnUntraced(function* ({ hasChain, id, start }: DueVault) {
      if (!hasChain)
        yield* sql`INSERT INTO statement_chains (vault_id, first_date, next_date) VALUES (${id}, ${start}::date, ${start}::date) ON CONFLICT (vault_id) DO NOTHING`
      const [chain] = yield* decodeChains(sql`
        SELECT first_date::text AS "firstDate", next_date::text AS "nextDate", revise_from::text AS "reviseFrom", last_hash AS "lastHash"
        FROM statement_chains WHERE vault_id = ${id} FOR UPDATE`)
      return chain
    })

    /**
     * Notes late changes in the chain, in a short transaction, because recording a late change waits for it. The chain
     * is locked before the note is taken: a concurrent sealer of the day may not have seen the noted change.
     */
    const takeNote = (vault: DueVault) =>
      sql.withTransaction(
        Effect.zipRight(
          lock(vault),
          sql`
            WITH note AS (DELETE FROM statement_changes WHERE vault_id = ${vault.id} RETURNING from_date)
            UPDATE statement_chains c SET revise_from = least(c.revise_from, greatest(note.from_date, c.first_date)) FROM note
            WHERE c.vault_id = ${vault.id} AND c.next_date > note.from_date AND c.next_date > c.first_date`
        )
      )

    /** Appends statements to the chain, in this order, and stores the chain. */
    const append = Effect.fnUntraced(function* (vaultId: string, chain: Chain, statements: ReadonlyArray<NewStatement>) {
      let { lastHash } = chain
      const rows: Array<Sealed & { readonly hash: string; readonly jws: string }> = []
      for (const { assets, date, revision } of statements) {
        const sealed: Sealed = { vaultId, date, revision, sealedAt: new Date().toISOString(), previousHash: lastHash, assets }
        const hash = hashOf(sealed)
        rows.push({ ...sealed, hash, jws: yield* signing.sign({ iss: signing.issuer, vaultId, date, revision, hash }) })
        lastHash = hash
      }
      const column = <A>(of: (row: (typeof rows)[number]) => A) => rows.map(of)
      yield* sql`
        WITH appended AS (
          INSERT INTO statements (vault_id, date, revision, sealed_at, previous_hash, hash, assets, jws)
          SELECT ${vaultId}, * FROM unnest(${column(({ date }) => date)}::date[], ${column(({ revision }) => revision)}::integer[],
            ${column(({ sealedAt }) => sealedAt)}::timestamptz[], ${column(({ previousHash }) => previousHash)}::text[],
            ${column(({ hash }) => hash)}::text[], ${column(({ assets }) => JSON.stringify(assets))}::text[], ${column(({ jws }) => jws)}::text[])
        )
        UPDATE statement_chains SET first_date = ${chain.firstDate}::date, next_date = ${chain.nextDate}::date,
          revise_from = ${chain.reviseFrom}::date, last_hash = ${lastHash} WHERE vault_id = ${vaultId}`
    })

    /** Compares sealed days with the ledger. Returns how many got another revision, and the chain after it. */
    const revise = Effect.fnUntraced(function* (vaultId: string, from: string, chain: Chain, most: number) {
      const days = daysFrom(from, chain.nextDate, most)
      const newest = yield* decodeNewest(sql`
        SELECT DISTINCT ON (s.date) s.date::text AS date, s.revision, s.assets FROM statements s
        WHERE s.vault_id = ${vaultId} AND s.date >= ${from}::date AND s.date < ${dayAfter(from, days.length)}::date
        ORDER BY s.date, s.revision DESC`)
      const lines = yield* statementLines(sql, vaultId, from, days.length)
      const revisions = newest
        .map(({ assets, date, revision }) => ({ date, revision: revision + 1, before: JSON.parse(assets), assets: lines.get(date) ?? [] }))
        .filter(({ assets, before }) => !sameAccount(before, assets))
      const next = dayAfter(from, days.length)
      const after = { ...chain, reviseFrom: next < chain.nextDate ? next : null }
      yield* append(vaultId, after, revisions)
      return { chain: after, sealed: 0, revised: revisions.length }
    })

    /** Seals days for the first time. Returns how many, and the chain after it. */
    const sealDays = Effect.fnUntraced(function* (vaultId: string, days: ReadonlyArray<string>, chain: Chain) {
      const [first = "", last = first] = [days[0], days.at(-1)]
      const lines = yield* statementLines(sql, vaultId, first, days.length)
      const statements = days.map((date) => ({ date, revision: 1, assets: lines.get(date) ?? [] }))
      const earlier = last < chain.firstDate
      const after = earlier ? { ...chain, firstDate: first } : { ...chain, nextDate: dayAfter(last) }
      yield* append(vaultId, after, earlier ? statements.reverse() : statements)
      return { chain: after, sealed: days.length, revised: 0 }
    })

    /** One step of a vault's chain: the days to compare, then those before its beginning, then those that are due. */
    const step = (vault: DueVault, most: number) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const nothing = { sealed: 0, revised: 0, isDone: true }
          const chain = yield* lock(vault)
          if (chain === undefined) return nothing
          const due = dayAfter(lastDue())
          const nextOf = (of: Chain) => {
            if (of.reviseFrom !== null) return revise(vault.id, of.reviseFrom, of, most)
            if (vault.start < of.firstDate) {
              return sealDays(vault.id, daysFrom(later(dayAfter(of.firstDate, -most), vault.start), of.firstDate, most), of)
            }
            return of.nextDate < due ? sealDays(vault.id, daysFrom(of.nextDate, due, most), of) : undefined
          }
          const doing = nextOf(chain)
          if (doing === undefined) return nothing
          const { chain: after, revised, sealed } = yield* doing
          return { sealed, revised, isDone: nextOf(after) === undefined }
        })
      )

    /** Seals a vault's due statements. Stops at the deadline, or after one step; `done`: whether nothing is left to do. */
    const sealVault = (vault: DueVault, until: number, atLeastOne: boolean) =>
      Effect.suspend(() => {
        const result = { sealed: 0, revised: 0, failed: 0, done: false }
        return Effect.gen(function* () {
          const mayStart = atLeastOne || Date.now() < until
          if (mayStart && vault.hasNote) yield* takeNote(vault)
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
        // The key is published before anything is signed, and outside the transactions, which may be rolled back.
        yield* signing.jwks
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
