import { describe, expect, test } from "bun:test"
import { Either, Schema } from "effect"
import fc from "fast-check"
import { AssetIdInput, address, hash, NetworkName, parseAssetId } from "../../src/values/ChainNames.ts"

const word = fc.stringMatching(/^[a-z0-9]{1,8}(-[a-z0-9]{1,6}){0,2}$/)
const evm = fc.stringMatching(/^0x[0-9a-fA-F]{40}$/)
const printable = fc.stringMatching(/^[!-~]{1,60}$/)
/** Valid text after the colon of an asset id: anything printable but " and \\. */
const contractText = fc.stringMatching(/^[!#-[\]-~]{1,60}$/)

describe("Asset identifier format: {network}/{tokenType}[:{address}]", () => {
  test("a native asset has no address, and every other asset has one", () => {
    fc.assert(
      fc.property(word, word, contractText, (network, tokenType, contract) => {
        const type = tokenType === "native" ? "erc20" : tokenType
        expect(parseAssetId(`${network}/native`)).toEqual({ id: `${network}/native`, network, tokenType: "native", address: null })
        expect(parseAssetId(`${network}/${type}:${contract}`)).toMatchObject({ network, tokenType: type })
        expect(parseAssetId(`${network}/${type}`)).toBeUndefined()
        expect(parseAssetId(`${network}/native:${contract}`)).toBeUndefined()
      })
    )
  })

  test("an EVM contract is lower-case inside an asset id, whatever its case in the input", () => {
    fc.assert(
      fc.property(word, evm, (network, contract) => {
        const id = `${network}/erc20:${contract.toLowerCase()}`
        for (const written of [contract, contract.toLowerCase(), `0x${contract.slice(2).toUpperCase()}`]) {
          expect(parseAssetId(`${network}/erc20:${written}`)?.id).toBe(id)
        }
      })
    )
  })

  test("an address that is not EVM keeps its case", () => {
    fc.assert(
      fc.property(word, contractText, (network, contract) => {
        fc.pre(!/^0x[0-9a-fA-F]{40}$/.test(contract))
        expect(parseAssetId(`${network}/spl:${contract}`)?.address).toBe(contract)
      })
    )
  })

  test("a parsed asset id parses to itself", () => {
    fc.assert(
      fc.property(fc.oneof(fc.tuple(word, evm), fc.tuple(word, contractText)), ([network, contract]) => {
        const id = parseAssetId(`${network}/erc20:${contract}`)?.id ?? ""
        expect(parseAssetId(id)?.id).toBe(id)
      })
    )
  })

  test("an asset id is short enough to fit into a cursor", () => {
    expect(parseAssetId(`ethereum/spl:${"x".repeat(137)}`)?.id).toHaveLength(150)
    expect(parseAssetId(`ethereum/spl:${"x".repeat(138)}`)).toBeUndefined()
  })

  test("other text is not an asset id", () => {
    for (const bad of [
      "",
      "/",
      "ethereum",
      "ethereum/",
      "/native",
      "Ethereum/native",
      "ethereum/Native",
      "ethereum//native",
      "ethereum/erc20:",
      "ethereum/erc20:a b",
      'ethereum/erc20:a"b',
      "ethereum/erc20:a\\b",
      "ethereum/erc20:\u0000",
      "ethereum/erc20:é",
      " ethereum/native",
      "ethereum/native\n",
      "-ethereum/native",
      "ethereum-/native"
    ]) {
      expect(parseAssetId(bad)).toBeUndefined()
      expect(Either.isLeft(Schema.decodeUnknownEither(AssetIdInput)(bad))).toBe(true)
    }
  })
})

describe("addresses and hashes", () => {
  test("EVM addresses are written in EIP-55, from either letter case (the EIP's examples)", () => {
    for (const known of [
      "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
      "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
      "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
      "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
      "0x52908400098527886E0F7030069857D2E4169EE7",
      "0xde709f2102306220921060314715629080e2fb77"
    ]) {
      expect(address(known.toLowerCase())).toBe(known)
      expect(address(`0x${known.slice(2).toUpperCase()}`)).toBe(known)
      expect(address(known)).toBe(known)
    }
  })

  test("EIP-55 changes only letter case, and every other address is unchanged", () => {
    fc.assert(
      fc.property(evm, printable, (contract, other) => {
        expect(address(contract).toLowerCase()).toBe(contract.toLowerCase())
        fc.pre(!/^0x[0-9a-fA-F]{40}$/.test(other))
        expect(address(other)).toBe(other)
      })
    )
  })

  test("EVM hashes are lower-case, and every other hash is unchanged", () => {
    expect(hash(`0x${"AB".repeat(32)}`)).toBe(`0x${"ab".repeat(32)}`)
    expect(hash("5UfDuX7hXbM9sxJ8Qz")).toBe("5UfDuX7hXbM9sxJ8Qz")
    expect(hash("AB".repeat(32))).toBe("AB".repeat(32))
  })

  test("network names are lower-case words joined by hyphens", () => {
    const is = Schema.is(NetworkName)
    for (const good of ["ethereum", "ethereum-sepolia", "bitcoin-testnet4", "a", "0"]) expect(is(good)).toBe(true)
    for (const bad of ["", "Ethereum", "eth_sepolia", "-a", "a-", "a--b", "a b", "é", "a".repeat(65), "a\n"]) expect(is(bad)).toBe(false)
  })
})
