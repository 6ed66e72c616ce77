/**
 * Seals statements: each vault has a statement for every day from `STATEMENT_HISTORY` before it was first recorded here,
 * sealed `STATEMENT_DELAY` after the day. A day that late records changed is compared with its statement, and gets
 * another revision if they differ. Each statement is one transaction that extends the vault's chain, so a process may be
 * killed anywhere and another one continues; concurrent sealers of one vault take turns at its chain. C-6.
 */
import { SqlClient } from "@effect/sql"
import { Duration, Effect, Metric } from "effect"
import { SigningKeys } from "../crypto/SigningKeys.ts"
import { Settings } from "../settings/Settings.ts"
import { hashOf, type Sealed, type StatementLine } from "./Statement.ts"
import { dayAfter, sameAccount, statementLines } from "./statementLines.ts"

/** Vaults per query, and vaults sealed concurrently. */
const PAGE = 100,
  CONCURRENCY = 4

interface Chain {
  readonly firstDate: string
  readonly nextDate: string
  readonly reviseFrom: string | null
  readonly lastHash: string | null
}

/** The result of a pass. `failed` vaults are retried by the next one. */
export interface SealResult {
  readonly sealed: number
  readonly revised: number
  readonly failed: number
}

const counted = Metric.counter("custody_statements_total", {
  description: "Statements by outcome: sealed, revised, or failed, which counts vaults and is tried again"
})
const outcomes = ["sealed", "revised", "failed"] as const

const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

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
    const dueVaults = (after: string) => sql<{ id: string }>`
      SELECT v.id FROM ${spans} CROSS JOIN vaults v LEFT JOIN statement_chains c ON c.vault_id = v.id
      WHERE v.id > ${after} AND (
        (c.vault_id IS NULL AND (${startOf})::date <= ${lastDue()}::date) OR c.next_date <= ${lastDue()}::date OR c.revise_from IS NOT NULL
        OR c.first_date > (${startOf})::date OR EXISTS (SELECT 1 FROM statement_changes s WHERE s.vault_id = v.id))
      ORDER BY v.id LIMIT ${PAGE}`

    const lock = (vaultId: string) =>
      Effect.map(
        sql<Chain>`
          SELECT first_date::text AS "firstDate", next_date::text AS "nextDate", revise_from::text AS "reviseFrom", last_hash AS "lastHash"
          FROM statement_chains WHERE vault_id = ${vaultId} FOR UPDATE`,
        ([chain]) => chain
      )

    /** The vault's chain, created if it is new, with late changes noted in it; and the day at which it begins. */
    const prepare = (vaultId: string) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const [vault] = yield* sql<{
            start: string
          }>`SELECT (${startOf})::date::text AS start FROM ${spans} CROSS JOIN vaults v WHERE v.id = ${vaultId}`
          const start = vault?.start ?? dayOf(Date.now())
          yield* sql`
            INSERT INTO statement_chains (vault_id, first_date, next_date) VALUES (${vaultId}, ${start}::date, ${start}::date) ON CONFLICT (vault_id) DO NOTHING`
          // Before the note is taken: a concurrent sealer of the day may not have seen the noted change.
          yield* lock(vaultId)
          const [change] = yield* sql<{
            from: string
          }>`DELETE FROM statement_changes WHERE vault_id = ${vaultId} RETURNING from_date::text AS from`
          if (change !== undefined) {
            yield* sql`
              UPDATE statement_chains SET revise_from = least(revise_from, greatest(${change.from}::date, first_date))
              WHERE vault_id = ${vaultId} AND next_date > ${change.from}::date AND next_date > first_date`
          }
          return start
        })
      )

    const insert = Effect.fnUntraced(function* (
      vaultId: string,
      date: string,
      revision: number,
      { lastHash }: Chain,
      assets: ReadonlyArray<StatementLine>
    ) {
      const sealed: Sealed = { vaultId, date, revision, sealedAt: new Date().toISOString(), previousHash: lastHash, assets }
      const hash = hashOf(sealed)
      const jws = yield* signing.sign({ iss: signing.issuer, vaultId, date, revision, hash })
      yield* sql`
        INSERT INTO statements (vault_id, date, revision, sealed_at, previous_hash, hash, assets, jws)
        VALUES (${vaultId}, ${date}::date, ${revision}, ${sealed.sealedAt}::timestamptz, ${lastHash}, ${hash}, ${JSON.stringify(assets)}, ${jws})`
      yield* sql`UPDATE statement_chains SET last_hash = ${hash} WHERE vault_id = ${vaultId}`
    })

    /** Compares one sealed day with the ledger. Returns whether it got another revision. */
    const revise = Effect.fnUntraced(function* (vaultId: string, date: string, chain: Chain) {
      const [newest] = yield* sql<{ revision: number; assets: string }>`
        SELECT revision, assets FROM statements WHERE vault_id = ${vaultId} AND date = ${date}::date ORDER BY revision DESC LIMIT 1`
      const lines = yield* statementLines(sql, vaultId, date)
      const differs = newest !== undefined && !sameAccount(JSON.parse(newest.assets), lines)
      if (differs) yield* insert(vaultId, date, newest.revision + 1, chain, lines)
      const next = dayAfter(date)
      yield* sql`UPDATE statement_chains SET revise_from = ${next < chain.nextDate ? next : null}::date WHERE vault_id = ${vaultId}`
      return differs
    })

    /** One step of a vault's chain: the day that comes first of those to compare, those before its beginning, and those that are due. */
    const step = (vaultId: string, start: string) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const chain = yield* lock(vaultId)
          if (chain === undefined) return "done" as const
          if (chain.reviseFrom !== null) return (yield* revise(vaultId, chain.reviseFrom, chain)) ? ("revised" as const) : ("same" as const)
          const earlier = start < chain.firstDate,
            date = earlier ? dayAfter(chain.firstDate, -1) : chain.nextDate
          if (!earlier && date > lastDue()) return "done" as const
          yield* insert(vaultId, date, 1, chain, yield* statementLines(sql, vaultId, date))
          yield* earlier
            ? sql`UPDATE statement_chains SET first_date = ${date}::date WHERE vault_id = ${vaultId}`
            : sql`UPDATE statement_chains SET next_date = ${dayAfter(date)}::date WHERE vault_id = ${vaultId}`
          return "sealed" as const
        })
      )

    /** Seals a vault's due statements. Stops at the deadline; `done` says whether everything is done. */
    const sealVault = (vaultId: string, until: number) =>
      Effect.suspend(() => {
        const result = { sealed: 0, revised: 0, failed: 0, done: false }
        return Effect.gen(function* () {
          if (Date.now() >= until) return
          const start = yield* prepare(vaultId)
          while (Date.now() < until) {
            const one = yield* step(vaultId, start)
            if (one === "done") {
              result.done = true
              return
            }
            if (one !== "same") result[one]++
          }
        }).pipe(
          Effect.catchAllCause((cause) => {
            Object.assign(result, { failed: 1, done: true })
            return Effect.annotateLogs(Effect.logError("a vault's statements could not be sealed, and are tried again", cause), { vaultId })
          }),
          Effect.map(() => result)
        )
      })

    return {
      /**
       * Seals due statements of the vaults after an id, for at most so many milliseconds. Returns what it did, and the
       * vault to continue after; null if every vault was checked.
       */
      seal: Effect.fn("StatementSealer.seal")(function* (after: string, millis: number) {
        // The key is published before anything is signed, and outside the transactions, which may be rolled back.
        yield* signing.jwks
        const until = Date.now() + millis
        const total = { sealed: 0, revised: 0, failed: 0 }
        for (let last = after; ; ) {
          const vaults = yield* dueVaults(last)
          const results = yield* Effect.forEach(vaults, ({ id }) => Effect.map(sealVault(id, until), (result) => ({ ...result, id })), {
            concurrency: CONCURRENCY
          })
          for (const name of outcomes) {
            const count = results.reduce((sum, one) => sum + one[name], 0)
            total[name] += count
            yield* Metric.incrementBy(Metric.tagged(counted, "outcome", name), count)
          }
          // A vault that was cut short is the first of the next part; those after it that are done cost that part nothing.
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
