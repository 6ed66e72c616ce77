/**
 * Verifies statements with the published keys: that a statement's lines match its hash, that the service signed that hash,
 * and that a vault's statements form one unbroken chain. It uses Web Crypto and no Node.js module, so it also runs in
 * browsers (Ed25519 and a secure context: Chrome 137, Firefox 129, Safari 17 or newer). C-6.
 */
import type { Statement } from "./generated/custody.ts"
import type { SigningKeySet } from "./generated/webhooks.ts"
import { hex, isObject, sha256, signedClaims, utf8 } from "./signedClaims.ts"

/** The result of verifying one statement. */
export type StatementVerification =
  /** The lines are those signed by the key with this id. */
  { readonly valid: true; readonly kid: string } | { readonly valid: false; readonly difference: string }

/** The result of verifying a chain: the number of statements, the hash before the first, and the hash of the last. */
export type ChainVerification =
  | { readonly valid: true; readonly statements: number; readonly previousHash: string | null; readonly hash: string | null }
  | { readonly valid: false; readonly difference: string }

/** The client operations that {@link verifyStatements} calls. */
export interface StatementsReader {
  readonly getSigningKeys: () => Promise<SigningKeySet>
  readonly listStatements: (vaultId: string, query: { readonly limit: number }) => AsyncIterable<Statement>
  readonly getStatement: (vaultId: string, date: string, query: { readonly revision: number }) => Promise<Statement>
}

const differs = (difference: string) => ({ valid: false, difference }) as const

/** JSON by RFC 8785: no spaces, names in the order of their UTF-16 code units. */
const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
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
export const statementHash = async ({ hash: _, jws: __, ...sealed }: Statement): Promise<string> => {
  return hex(await sha256(utf8(canonicalJson(sealed))))
}

/**
 * Whether a statement is what the service sealed: its fields match its hash, and one of the published keys
 * (`getSigningKeys`, `/v1/jwks.json`) signed that hash for this vault, day and revision. Fetch the keys over a connection
 * that you trust, or keep them. With `issuer`, the signature must name it. Rejects if Web Crypto has no Ed25519.
 */
export const verifyStatement = async (
  statement: Statement,
  { keys }: SigningKeySet,
  { issuer }: { readonly issuer?: string | undefined } = {}
): Promise<StatementVerification> => {
  const { date, hash, jws, revision, vaultId } = statement
  const which = `the statement of ${date}, revision ${revision}`
  if ((await statementHash(statement)) !== hash) return differs(`${which} has a different hash from the one it states`)
  const found = await signedClaims(jws, keys)
  if (found === undefined) return differs(`${which} is not signed by a published key`)
  const expected = { vaultId, date, revision, hash, ...(issuer === undefined ? {} : { iss: issuer }) }
  const { claims, kid } = found
  return isObject(claims) && Object.entries(expected).every(([name, value]) => claims[name] === value)
    ? { valid: true, kid }
    : differs(`the signature of ${which} is for different content`)
}

/**
 * Whether statements of a vault, with all their revisions and in any order, are valid and together form one unbroken
 * chain. They may begin later than the vault's chain: `previousHash` of the result is null if they begin with it, and
 * otherwise the hash of the preceding statement, which you should know already.
 */
export const verifyStatementChain = async (statements: ReadonlyArray<Statement>, keys: SigningKeySet): Promise<ChainVerification> => {
  const byPrevious = new Map<string | null, Statement>()
  for (const one of statements) {
    const found = await verifyStatement(one, keys)
    if (!found.valid) return found
    if (one.vaultId !== statements[0]?.vaultId) return differs(`there are statements of ${one.vaultId} and of another vault`)
    const other = byPrevious.get(one.previousHash)
    if (other !== undefined && other.hash !== one.hash)
      return differs(`the statements of ${other.date} and ${one.date} both follow the same statement`)
    byPrevious.set(one.previousHash, one)
  }
  const hashes = new Set(statements.map(({ hash }) => hash))
  const [begins, ...others] = [...byPrevious.values()].filter(({ previousHash }) => previousHash === null || !hashes.has(previousHash))
  const gap = others[0]
  if (gap !== undefined) return differs(`the statement that the one of ${gap.date}, revision ${gap.revision}, follows is missing`)
  let last = begins,
    count = 0
  for (let next = begins; next !== undefined; next = byPrevious.get(next.hash), count++) last = next
  return { valid: true, statements: count, previousHash: begins?.previousHash ?? null, hash: last?.hash ?? null }
}

/** How many times a vault's statements are read at most, if some are sealed in the meantime. */
const READS = 3

/**
 * Verifies everything that was ever sealed for a vault: reads all its statements with all revisions, and the keys, and
 * verifies each one and their chain from its beginning. Proves that no sealed statement was changed, left out or added.
 */
export const verifyStatements = async (custody: StatementsReader, vaultId: string): Promise<ChainVerification> => {
  const keys = await custody.getSigningKeys()
  for (let read = 1; ; read++) {
    const all: Array<Statement> = []
    for await (const newest of custody.listStatements(vaultId, { limit: 100 })) {
      for (let revision = 1; revision < newest.revision; revision++)
        all.push(await custody.getStatement(vaultId, newest.date, { revision }))
      all.push(newest)
    }
    const found = await verifyStatementChain(all, keys)
    if (found.valid && found.previousHash === null) return found
    // A day or revision sealed between two pages leaves a gap that is absent when the list is read again.
    if (read === READS)
      return found.valid ? differs(`the statement with the hash ${found.previousHash}, which the first one follows, is missing`) : found
  }
}
