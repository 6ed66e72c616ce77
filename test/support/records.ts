/** Custody records as the platform feeds them, with everything that a test does not care about filled in. */
import * as Id from "../../src/values/Id.ts"
import type { Record } from "./app.ts"

type Fields = { readonly [field: string]: unknown }

export const network = (name: string, kind = "mainnet"): Record => ({ type: "network", name, kind })

export const asset = (id: string, fields: Fields = {}): Record => ({
  type: "asset",
  id,
  symbol: id.endsWith("/native") ? "COIN" : "TOKEN",
  name: `Asset ${id}`,
  decimals: 18,
  network: id.split("/")[0],
  ...fields
})

export const organization = (id: string, networks: ReadonlyArray<string>): Record => ({ type: "organization", id, name: id, networks })

export const entity = (id: string, organizationId: string, fields: Fields = {}): Record => ({
  type: "entity",
  id,
  organizationId,
  name: id,
  ...fields
})

export const vault = (id: string, entityId: string, fields: Fields = {}): Record => ({
  type: "vault",
  id,
  entityId,
  label: id,
  networks: ["ethereum"],
  createdAt: "2024-01-01T00:00:00.000Z",
  ...fields
})

/** A user with the Developer role on `vaults`. */
export const user = (id: string, organizationId: string, vaults: ReadonlyArray<string>, fields: Fields = {}): Record => ({
  type: "user",
  id,
  organizationId,
  email: `${id}@example.com`,
  name: id,
  status: "active",
  organizationRole: "member",
  vaultRoles: vaults.map((vaultId) => ({ vaultId, role: "developer" })),
  ...fields
})

/** `0x` and the number in as many hex digits as a hash has. */
export const hash = (number: number): string => `0x${number.toString(16).padStart(64, "0")}`

export const ALICE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
  BOB = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"

export const transaction = (vaultId: string, number: number, fields: Fields = {}): Record => ({
  type: "transaction",
  vaultId,
  hash: hash(number),
  network: "ethereum",
  index: 0,
  status: "confirmed",
  direction: "inbound",
  asset: "ethereum/native",
  amount: "1",
  from: ALICE,
  to: BOB,
  timestamp: "2024-06-01T12:00:00.000Z",
  ...fields
})

/** The id of {@link transaction} with these arguments and no other fields. */
export const transactionId = (vaultId: string, number: number): string => Id.ofKey("tx", "ethereum", hash(number), "0", vaultId, "inbound")

export const address = (vaultId: string, text: string, fields: Fields = {}): Record => ({
  type: "address",
  vaultId,
  address: text,
  network: "ethereum",
  assetType: "native",
  ...fields
})

export const balance = (vaultId: string, assetId: string, amount: string): Record => ({ type: "balance", vaultId, asset: assetId, amount })

/** One organization `org_a` with an entity, a vault `vault_a` on ethereum with its native asset, and an owner `user_a`. */
export const smallest = (): ReadonlyArray<Record> => [
  network("ethereum"),
  asset("ethereum/native", { symbol: "ETH", name: "Ether" }),
  organization("org_a", ["ethereum"]),
  entity("entity_a", "org_a"),
  vault("vault_a", "entity_a"),
  user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" })
]
