/**
 * Sample events: complete, valid events of every kind that tell of nothing. Their ids name nothing, amounts are 0 and
 * hashes are zeros, and `data.test` is true, so a consumer that takes one for real neither finds nor books anything. A ping
 * and `custody listen` send them; they are never recorded. C-12.
 */
import { type TransactionStatus, transactionExample } from "../../values/Vault.ts"
import { write } from "./Envelope.ts"
import { type DataOf, type Kind, kinds } from "./Kind.ts"

/** An id of this prefix that names nothing. */
const noId = (prefix: string): string => `${prefix}_${"0".repeat(26)}`
const ENTITY = noId("entity"),
  VAULT = noId("vault"),
  WEBHOOK = noId("whs"),
  API_KEY = noId("key")
const DIGEST = "0".repeat(64)
const ADDRESS = `0x${"0".repeat(40)}`
const ASSET = "ethereum/native"

type Sample<A> = (at: string) => A

const transaction =
  (status: TransactionStatus, previous: DataOf<"transaction.updated">["previous"]): Sample<DataOf<"transaction.updated">> =>
  (at) => ({
    vaultId: VAULT,
    transaction: {
      ...transactionExample,
      id: noId("tx"),
      hash: `0x${DIGEST}`,
      status,
      asset: ASSET,
      amount: "0",
      from: ADDRESS,
      to: ADDRESS,
      timestamp: at,
      blockNumber: "0",
      blockHash: `0x${DIGEST}`,
      externalId: null,
      updatedAt: at
    },
    previous
  })

const vault: Sample<DataOf<"vault.created">> = (at) => ({
  vaultId: VAULT,
  vault: { id: VAULT, entityId: ENTITY, label: "Sample", networks: ["ethereum"], createdAt: at }
})

const statement =
  (revision: number, because: DataOf<"statement.revised">["because"]): Sample<DataOf<"statement.revised">> =>
  (at) => ({
    vaultId: VAULT,
    statement: { date: at.slice(0, 10), revision, hash: DIGEST, previousHash: revision === 1 ? null : DIGEST, sealedAt: at },
    because
  })

/** The data of each kind's sample at a time. */
const samples: { readonly [K in Kind]: Sample<DataOf<K>> } = {
  "transaction.pending": transaction("pending", null),
  "transaction.confirmed": transaction("confirmed", { status: "pending" }),
  "transaction.failed": transaction("failed", { status: "pending" }),
  "transaction.replaced": transaction("replaced", { status: "pending" }),
  "transaction.dropped": transaction("dropped", { status: "pending" }),
  "transaction.reorged": transaction("pending", { status: "confirmed" }),
  "transaction.updated": transaction("confirmed", { memo: "sample" }),
  "deposit_address.created": () => ({
    vaultId: VAULT,
    depositAddress: { address: ADDRESS, network: "ethereum", assetType: "native" }
  }),
  "balance.updated": (at) => ({
    vaultId: VAULT,
    balance: { asset: ASSET, network: "ethereum", symbol: "ETH", amount: "0", asOf: at }
  }),
  "vault.created": vault,
  "vault.updated": vault,
  "statement.sealed": statement(1, null),
  "statement.revised": statement(2, { transactionIds: [noId("tx")], assets: [ASSET], more: 0 }),
  "webhook.disabled": (at) => ({
    webhookId: WEBHOOK,
    webhook: { id: WEBHOOK, status: "DISABLED", disabledReason: "FAILING", disabledAt: at }
  }),
  "webhook.secret_rotated": (at) => ({ webhookId: WEBHOOK, webhook: { id: WEBHOOK, previousSecretExpiresAt: at } }),
  "api_key.expiring": (at) => ({
    apiKeyId: API_KEY,
    apiKey: { id: API_KEY, label: "Sample", userId: noId("user"), expiresAt: at, lastUsedAt: null },
    daysBefore: 7
  })
}

/** The envelope's text of a kind's sample, with this id. */
export const sampleEvent = (id: string, kind: Kind, date: string): string => {
  const data = { ...samples[kind](date), test: true }
  return write(id, {
    kind,
    date,
    organizationId: noId("org"),
    entityId: ENTITY,
    vaultId: kinds[kind].scope === "vault" ? VAULT : null,
    data
  })
}
