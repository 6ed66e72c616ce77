/**
 * The demo's data: real transactions of public chains in the vaults of two fictional organizations (data/README.md). Most
 * of it is loaded as history. Each vault's newest transactions, some addresses and some balances are held back and fed
 * while the demo runs. A second run continues where the first stopped, because known records do nothing.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Data, Effect, Either } from "effect"
import { type Record, type RecordOf, type RecordType, readLine } from "../ledger/Record.ts"

const FILE = path.resolve(import.meta.dir, "../../data/real-custody.ndjson")

/** Something that the demo needs is missing; `message` says what. */
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
  const tokens = of(lines, "balance").filter(({ record }) => !record.asset.endsWith("/native"))
  const transactions: ReadonlyArray<Line> = inTurns(lastOfEach(ours(of(lines, "transaction")), 60))
  const others: ReadonlyArray<Line> = inTurns<Line>([
    inTurns(lastOfEach(ours(of(lines, "address")), 10)),
    inTurns(lastOfEach(ours(tokens), 10))
  ])
  const kept = new Set([...transactions, ...others])
  return {
    /** The history, in an order in which each record comes after those that it refers to. */
    history: lines.filter((line) => !kept.has(line)).map(({ source }) => source),
    /** The records fed while the demo runs. */
    transactions: transactions.map(({ source }) => source),
    others: others.map(({ source }) => source),
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
