/**
 * Verifies statements with the published keys: that a statement's lines match its hash and add up, that the service signed
 * that hash, and that a vault's statements are one unbroken chain with every day and revision. C-6, C-9.
 */
import { isCustodyError, NotVerifiable } from "./errors.ts"
import type { Statement } from "./generated/custody.ts"
import type { SigningKeySet } from "./generated/webhooks.ts"
import { hex, isObject, type KeyOptions, type PublishedKeys, sha256, signedClaims, trustedKeys, utf8 } from "./signedClaims.ts"
import { contentFault, isDay, missingDay, openingFault } from "./statementContent.ts"

/** The result of verifying one statement. */
export type StatementVerification =
  /** The lines are those signed by the key with this id. */
  { readonly valid: true; readonly kid: string } | { readonly valid: false; readonly difference: string }

/** The result of verifying a chain: the number of statements, the hash before the first, and the hash of the last. */
export type ChainVerification =
  | { readonly valid: true; readonly statements: number; readonly previousHash: string | null; readonly hash: string | null }
  | { readonly valid: false; readonly difference: string }

/** The result of {@link verifyStatements}: that of a chain, and `days`, the newest revision of each day, in order. */
export type VaultVerification =
  | (Extract<ChainVerification, { valid: true }> & { readonly days: ReadonlyArray<Statement> })
  | Extract<ChainVerification, { valid: false }>

/** The client operations that {@link verifyStatements} calls. */
export interface StatementsReader {
  readonly getSigningKeys: () => Promise<SigningKeySet>
  readonly listStatements: (vaultId: string, query: { readonly limit: number }) => AsyncIterable<Statement>
  readonly getStatement: (vaultId: string, date: string, query: { readonly revision: number }) => Promise<Statement>
}

/** What the statements of a vault must contain beyond being complete in themselves. */
export interface StatementsOptions extends KeyOptions {
  /** The day, as `YYYY-MM-DD`, that the newest statement must be of, or later. */
  readonly until?: string | undefined
  /** The hash that an earlier verification ended with: the chain must contain it. */
  readonly hash?: string | undefined
}

const differs = (difference: string) => ({ valid: false, difference }) as const
const nameOf = ({ date, revision }: Statement) => `the statement of ${date}, revision ${revision}`

/** JSON by RFC 8785: no spaces, names in the order of their UTF-16 code units. */
const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
  // As JSON, `Infinity` would be `null`.
  if (typeof value === "number") return String(value)
  if (!isObject(value)) return JSON.stringify(value)
  const fields = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`)
  return `{${fields.join(",")}}`
}

/**
 * The hash of a statement, in hex: SHA-256 of its RFC 8785 JSON without `hash` and `jws`. Fields that later versions add
 * are part of it.
 */
export const statementHash = async ({ hash: _, jws: __, ...sealed }: Statement): Promise<string> =>
  hex(await sha256(utf8(canonicalJson(sealed))))

/**
 * Whether a statement is what the service sealed: its fields match its hash, one of the published keys (`getSigningKeys`,
 * `/v1/jwks.json`) signed that hash for this vault, day and revision, and its lines add up. Fetch the keys over a
 * connection that you trust, or keep them. With `issuer`, the signature must name it. Rejects if Web Crypto has no Ed25519.
 */
export const verifyStatement = async (
  statement: Statement,
  { keys }: PublishedKeys,
  { issuer }: { readonly issuer?: string | undefined } = {}
): Promise<StatementVerification> => {
  const { date, hash, jws, revision, vaultId } = statement
  const which = nameOf(statement)
  if ((await statementHash(statement)) !== hash) return differs(`${which} has a different hash from the one it states`)
  const found = await signedClaims(jws, keys)
  if (found === undefined) return differs(`${which} is not signed by a published key`)
  const expected = { vaultId, date, revision, hash, ...(issuer === undefined ? {} : { iss: issuer }) }
  const { claims, kid } = found
  if (!isObject(claims) || Object.entries(expected).some(([name, value]) => claims[name] !== value))
    return differs(`the signature of ${which} is for different content`)
  const fault = contentFault(statement)
  return fault === undefined ? { valid: true, kid } : differs(fault)
}

/** Whether valid statements of a vault form one unbroken chain. */
const linked = (statements: ReadonlyArray<Statement>): ChainVerification => {
  const byPrevious = new Map<string | null, Statement>()
  const byRevision = new Map<string, Statement>()
  for (const one of statements) {
    const same = byRevision.get(nameOf(one))
    if (same !== undefined && same.hash !== one.hash) return differs(`${nameOf(one)} was sealed twice`)
    byRevision.set(nameOf(one), one)
    const other = byPrevious.get(one.previousHash)
    if (other !== undefined && other.hash !== one.hash)
      return differs(`the statements of ${other.date} and ${one.date} both follow the same statement`)
    byPrevious.set(one.previousHash, one)
  }
  const hashes = new Set(statements.map(({ hash }) => hash))
  const [begins, ...others] = [...byPrevious.values()].filter(({ previousHash }) => previousHash === null || !hashes.has(previousHash))
  const gap = others.find(({ previousHash }) => previousHash !== null) ?? begins
  if (others.length > 0 && gap !== undefined)
    return differs(`the statement that the one of ${gap.date}, revision ${gap.revision}, follows is missing`)
  let last = begins,
    count = 0
  for (let next = begins; next !== undefined; next = byPrevious.get(next.hash), count++) last = next
  return { valid: true, statements: count, previousHash: begins?.previousHash ?? null, hash: last?.hash ?? null }
}

/**
 * Whether statements of a vault, with all their revisions and in any order, are valid and together form one unbroken
 * chain. They may begin later than the vault's chain: `previousHash` of the result is null if they begin with it, and
 * otherwise the hash of the preceding statement, which you should know already.
 */
export const verifyStatementChain = async (statements: ReadonlyArray<Statement>, keys: PublishedKeys): Promise<ChainVerification> => {
  for (const one of statements) {
    const found = await verifyStatement(one, keys)
    if (!found.valid) return found
    if (one.vaultId !== statements[0]?.vaultId) return differs(`there are statements of ${one.vaultId} and of another vault`)
  }
  return linked(statements)
}

/** The newest statement of each day in order, and every revision; or why what was read is not what was asked for. */
const readAll = async (custody: StatementsReader, vaultId: string, keys: PublishedKeys) => {
  const newest: Array<Statement> = []
  const all: Array<Statement> = []
  const days = new Set<string>()
  /** Why a statement is not this revision of this day of the vault. */
  const faultOf = async (one: Statement, date: string, revision: number): Promise<string | undefined> => {
    if (one.vaultId !== vaultId) return `${nameOf(one)}, is of ${one.vaultId} and not of ${vaultId}`
    if (one.date !== date || one.revision !== revision)
      return `for the statement of ${date}, revision ${revision}, the one of ${one.date}, revision ${one.revision}, was returned`
    const found = await verifyStatement(one, keys)
    if (!found.valid) return found.difference
    all.push(one)
    return undefined
  }
  for await (const one of custody.listStatements(vaultId, { limit: 100 })) {
    const { date } = one
    if (days.has(date)) return `the statement of ${date} is listed twice`
    days.add(date)
    const fault = await faultOf(one, date, one.revision)
    if (fault !== undefined) return fault
    newest.push(one)
    for (let revision = 1; revision < one.revision; revision++) {
      const earlier = await custody.getStatement(vaultId, date, { revision }).catch((error: unknown) => {
        if (isCustodyError(error, "not_found")) return undefined
        throw error
      })
      const fault = earlier === undefined ? `revision ${revision} of ${date} is missing` : await faultOf(earlier, date, revision)
      if (fault !== undefined) return fault
    }
  }
  return { newest: newest.toSorted((a, b) => (a.date < b.date ? -1 : 1)), all }
}

/** Why the newest statements of days, in order, with this chain of all revisions are not everything up to the last one. */
const wholeFault = (newest: ReadonlyArray<Statement>, chain: ChainVerification): string | undefined => {
  const day = missingDay(newest)
  if (day !== undefined) return `the statement of ${day} is missing`
  if (!chain.valid) return chain.difference
  if (chain.previousHash !== null)
    return `the statement that the first one, of ${newest[0]?.date}, follows is missing: ${chain.previousHash}`
  return newest
    .slice(1)
    .map((one, at) => openingFault(newest[at] ?? one, one))
    .find((fault) => fault !== undefined)
}

/** Why statements are not those that the caller knows of. */
const expectationFault = (newest: ReadonlyArray<Statement>, all: ReadonlyArray<Statement>, { hash, until }: StatementsOptions) => {
  if (hash !== undefined && !all.some((one) => one.hash === hash)) return `the chain does not contain the stored hash ${hash}`
  const last = newest.at(-1)?.date
  if (until === undefined || (last !== undefined && last >= until)) return undefined
  return last === undefined ? `there is no statement of ${until}` : `the newest statement is of ${last}, and not of ${until}`
}

/** How often statements are read at most while more are sealed, and how long to wait in between, in ms. */
const READS = 3,
  BETWEEN = 1_000

/**
 * Verifies everything that was ever sealed for a vault: reads all its statements with all revisions, and the keys, and
 * verifies each one, that the days follow each other without gaps and each opens with the closing of the one before, and
 * their chain from its beginning. Proves that no sealed statement was changed, left out or added, except at the end: that
 * is what `until` and `hash` are for. Rejects with {@link NotVerifiable} if an option is not valid.
 */
export const verifyStatements = async (
  custody: StatementsReader,
  vaultId: string,
  options: StatementsOptions = {}
): Promise<VaultVerification> => {
  const { hash, keys: pinned, until } = options
  if (until !== undefined && !isDay(until)) throw new NotVerifiable(`${until} is not a day such as 2026-03-31.`)
  if (hash !== undefined && !/^[0-9a-f]{64}$/.test(hash)) throw new NotVerifiable("The stored hash is not a SHA-256 in hex.")
  const keys = await trustedKeys(custody, pinned)
  let before: string | undefined
  for (let read = 1; ; read++) {
    const found = await readAll(custody, vaultId, keys)
    if (typeof found === "string") return differs(found)
    const { all, newest } = found
    const chain = linked(all)
    const difference = wholeFault(newest, chain) ?? expectationFault(newest, all, options)
    if (difference === undefined) return chain.valid ? { ...chain, days: newest } : chain
    // Days and revisions that were sealed meanwhile may be missing, or not join yet: they are there when the list is read again.
    const now = all.map((one) => one.hash).join()
    if (read === READS || now === before) return differs(difference)
    before = now
    await new Promise((resolve) => setTimeout(resolve, BETWEEN))
  }
}
