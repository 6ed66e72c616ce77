/**
 * The demo's data: real transactions of public chains in the vaults of two fictional organizations (data/README.md). Most
 * of it is loaded as history, with balances that follow from the transactions. Each vault's newest transactions, some
 * addresses and the last balances of some tokens are held back and fed while the demo runs. A second run continues where the
 * first stopped, because known records have no effect. Afterwards transfers of native assets are repeated (newTransaction.ts).
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Data, Effect, Either } from "effect"
import { type Record, type RecordOf, type RecordType, readLine } from "../../custody/ledger/Record.ts"
import { balancesOf } from "./demoBalances.ts"

const FILE = path.resolve(import.meta.dir, "../../../data/real-custody.ndjson")

/** The demo cannot run or go on; `message` is the reason. */
export class DemoFailed extends Data.TaggedError("DemoFailed")<{ readonly message: string }> {}

/** A record with its original line, which is what is fed. */
interface Line<R extends Record = Record> {
  readonly source: string
  readonly record: R
}

const of = <T extends RecordType>(lines: ReadonlyArray<Line>, type: T): ReadonlyArray<Line<RecordOf<T>>> =>
  lines.filter((line): line is Line<RecordOf<T>> => line.record.type === type)

/** The first item of each list, then the second of each, and so on. */
const inTurns = <A>(lists: ReadonlyArray<ReadonlyArray<A>>): ReadonlyArray<A> =>
  Array.from({ length: Math.max(0, ...lists.map(({ length }) => length)) }).flatMap((_, turn) =>
    lists.flatMap((list) => (turn < list.length ? list.slice(turn, turn + 1) : []))
  )

/** The last records of each vault, at most `most` and a third. */
const lastOfEach = <R extends Record & { readonly vaultId: string }>(lines: ReadonlyArray<Line<R>>, most: number) =>
  [...Map.groupBy(lines, ({ record }) => record.vaultId).values()].map((list) => list.slice(-Math.min(most, Math.floor(list.length / 3))))

const first = <A>(list: ReadonlyArray<A>, what: string): A => {
  const [one] = list
  if (one === undefined) throw new Error(`there is no ${what}`)
  return one
}

const prepare = (text: string) => {
  const lines = text
    .split("\n")
    .filter((source) => source !== "")
    .map((source, index): Line => {
      const read = readLine(source, index + 1)
      if (Either.isLeft(read)) throw new Error(`line ${index + 1} does not fit`)
      return { source, record: read.right }
    })
  const organization = first(of(lines, "organization"), "organization").record
  const entities = of(lines, "entity").filter(({ record }) => record.organizationId === organization.id)
  const entityIds = entities.map(({ record }) => record.id)
  const vaults = of(lines, "vault").filter(({ record }) => entityIds.includes(record.entityId))
  const vaultIds = vaults.map(({ record }) => record.id)
  const users = of(lines, "user")
    .map(({ record }) => record)
    .filter(({ organizationId, status }) => organizationId === organization.id && status === "active")
  const owner = first(
    users.filter(({ organizationRole }) => organizationRole === "owner"),
    "owner"
  )
  const developer = first(
    users.filter(({ organizationRole, vaultRoles }) => organizationRole !== "owner" && vaultRoles.length > 0),
    "developer"
  )

  const ours = <R extends Record & { readonly vaultId: string }>(list: ReadonlyArray<Line<R>>) =>
    list.filter(({ record }) => vaultIds.includes(record.vaultId))
  const createdAt = new Map(of(lines, "vault").map(({ record }) => [record.id, record.createdAt]))
  const all = of(lines, "transaction").map(({ record }) => record)
  const assets = balancesOf(all, (vaultId) => createdAt.get(vaultId) ?? "")
  const tokens = assets
    .filter((records) => records.length > 1 && !records[0]?.asset.endsWith("/native"))
    .flatMap((records) => records.slice(-1))
    .map((record): Line<RecordOf<"balance">> => {
      // Without a time it is the balance of the moment at which it is fed.
      const { occurredAt: _, ...present } = record
      return { record, source: JSON.stringify(present) }
    })
  const times = all.map(({ timestamp }) => timestamp).toSorted()
  const lastDay = (times.at(-1) ?? "").slice(0, 10)
  const week = new Date(Date.parse(lastDay) - 6 * 86_400_000).toISOString().slice(0, 10)
  const ofLastDay = ours(of(lines, "transaction")).filter(({ record }) => record.timestamp.startsWith(lastDay))
  const [[busiest] = [""]] = [...Map.groupBy(ofLastDay, ({ record }) => record.vaultId)].toSorted(([, a], [, b]) => b.length - a.length)
  const transactions: ReadonlyArray<Line> = inTurns(
    lastOfEach(ours(of(lines, "transaction").filter(({ record }) => record.timestamp < week)), 60)
  )
  const others: ReadonlyArray<Line> = inTurns<Line>([
    inTurns(lastOfEach(ours(of(lines, "address")), 10)),
    inTurns(lastOfEach(ours(tokens), 10))
  ])
  const kept = new Set<Line>([...transactions, ...others])
  const keptRecords = new Set([...kept].map(({ record }) => record))
  return {
    /** The history, in an order in which each record comes after those that it refers to. */
    history: lines.filter((line) => !kept.has(line) && line.record.type !== "balance").map(({ source }) => source),
    /** The balances after each transaction, oldest first of each asset. */
    balances: assets
      .flat()
      .filter((record) => !keptRecords.has(record))
      .map((record) => JSON.stringify(record)),
    /** The year of the first transaction. */
    since: (times[0] ?? "").slice(0, 4),
    /** The first and last day of the last week with transactions, as `YYYY-MM-DD`, and the vault with most on that day. */
    lastWeek: { from: week, to: lastDay, vaultId: busiest },
    /** The records fed while the demo runs. */
    transactions: transactions.map(({ source }) => source),
    others: others.map(({ source }) => source),
    /** What may be repeated when every transaction was fed. */
    transfers: transactions.flatMap(({ record }) => (record.type === "transaction" && record.asset.endsWith("/native") ? [record] : [])),
    /** A vault to rename when everything else was fed. */
    renamed: first(vaults, "vault").record,
    symbols: new Map(of(lines, "asset").map(({ record }) => [record.id, record.symbol])),
    labels: new Map(of(lines, "vault").map(({ record }) => [record.id, record.label])),
    organizations: of(lines, "organization").length,
    organizationId: organization.id,
    entityIds,
    vaultIds,
    ownerId: owner.id,
    developerId: developer.id,
    developerVaultId: first(developer.vaultRoles, "role").vaultId
  }
}

export type DemoData = ReturnType<typeof prepare>

/** Reads the data files of the repository. */
export const read = Effect.try({
  try: () => prepare(fs.readFileSync(FILE, "utf8")),
  catch: (error) =>
    new DemoFailed({ message: `The demo's data, ${FILE}, cannot be used: ${error instanceof Error ? error.message : error}.` })
})
