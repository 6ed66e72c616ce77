/**
 * Names of networks and assets, and the forms in which chains write addresses and hashes. EVM contract addresses are
 * lower case in asset ids and EIP-55 in address fields; filters match either. Spec: Asset identifier format. Decision
 * D-16.
 */

import { keccak_256 } from "@noble/hashes/sha3.js"
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js"
import { Schema } from "effect"
import { LRUCache } from "lru-cache"

const word = "[a-z0-9]+(?:-[a-z0-9]+)*"

/** `ethereum`, `ethereum-sepolia`, `bitcoin-testnet4`. */
export const NetworkName = Schema.String.pipe(Schema.maxLength(64), Schema.pattern(new RegExp(`^${word}$`))).annotations({
  message: () => "must be a network name such as ethereum or bitcoin-testnet4"
})

/** `native`, `erc20`, `spl` … */
export const TokenType = Schema.String.pipe(Schema.maxLength(32), Schema.pattern(new RegExp(`^${word}$`))).annotations({
  message: () => "must be a token type such as native or erc20"
})

/** Longest asset identifier: a cursor holds one, and a cursor has at most 256 characters. Decision D-3. */
const MAX_ASSET_ID = 150
// Any printable character except the two that JSON escapes.
const assetForm = new RegExp(`^(${word})/(${word})(?::([!#-[\\]-~]+))?$`)
const evmAddress = /^0x[0-9a-fA-F]{40}$/
const evmHash = /^0x[0-9a-fA-F]{64}$/

/** The parts of `{network}/{tokenType}[:{address}]`, the address as in asset ids. */
export interface AssetId {
  readonly id: string
  readonly network: string
  readonly tokenType: string
  readonly address: string | null
}

/** Parses an asset identifier, with an EVM contract in either letter case; undefined if it is invalid. */
export const parseAssetId = (text: string): AssetId | undefined => {
  const [, network, tokenType, raw] = assetForm.exec(text) ?? []
  if (network === undefined || tokenType === undefined || (tokenType === "native") !== (raw === undefined)) return undefined
  if (text.length > MAX_ASSET_ID) return undefined
  const address = raw === undefined ? null : evmAddress.test(raw) ? raw.toLowerCase() : raw
  return { id: `${network}/${tokenType}${address === null ? "" : `:${address}`}`, network, tokenType, address }
}

/** An asset identifier; an EVM contract becomes lower case. */
export const AssetIdInput = Schema.transform(
  Schema.String.pipe(
    Schema.filter((text) => parseAssetId(text) !== undefined || "must be an asset id such as ethereum/native or ethereum/erc20:0x…", {
      jsonSchema: { maxLength: MAX_ASSET_ID, pattern: `^${word}/(?:native|${word}:[!#-[\\]-~]+)$` }
    })
  ),
  Schema.String,
  { strict: true, decode: (text) => parseAssetId(text)?.id ?? text, encode: (id) => id }
)

/** An address as its chain writes it: EIP-55 for EVM addresses, any other unchanged. */
export const address = (text: string): string => (evmAddress.test(text) ? checksums.memo(text.slice(2).toLowerCase()) : text)

const withChecksum = (hex: string): string => {
  const hash = bytesToHex(keccak_256(utf8ToBytes(hex)))
  let out = "0x"
  for (let index = 0; index < hex.length; index++) {
    const char = hex.charAt(index)
    out += Number.parseInt(hash.charAt(index), 16) >= 8 ? char.toUpperCase() : char
  }
  return out
}

/** Addresses repeat within a feed. */
const checksums = new LRUCache<string, string>({ max: 50_000, memoMethod: withChecksum })

/** A transaction hash as its chain writes it: lower case for EVM hashes, any other unchanged. */
export const hash = (text: string): string => (evmHash.test(text) ? text.toLowerCase() : text)

const printable = (maximum: number, what: string) =>
  Schema.String.pipe(Schema.pattern(new RegExp(`^[!-~]{1,${maximum}}$`))).annotations({
    message: () => `must be ${what}: 1 to ${maximum} printable characters without spaces`
  })

/** An address in a record. */
export const AddressInput = Schema.transform(printable(256, "an address"), Schema.String, {
  strict: true,
  decode: address,
  encode: (_) => _
})

/** A transaction hash in a record or a filter. */
export const HashInput = Schema.transform(printable(256, "a transaction hash"), Schema.String, {
  strict: true,
  decode: hash,
  encode: (_) => _
})
