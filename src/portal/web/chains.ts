/** Display names of networks and token types. */

const networks: Readonly<Record<string, string>> = {
  bsc: "BNB Smart Chain",
  "xrp-ledger": "XRP Ledger",
  xrpl: "XRP Ledger",
  ton: "TON",
  near: "NEAR",
  zksync: "zkSync",
  op: "OP Mainnet"
}
const words: Readonly<Record<string, string>> = { testnet3: "Testnet 3", testnet4: "Testnet 4", bsc: "BNB Smart Chain" }

/** `ethereum-sepolia` as “Ethereum Sepolia”. */
export const networkName = (network: string): string =>
  networks[network] ??
  network
    .split("-")
    .map((word) => words[word] ?? word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ")

const tokenTypes: Readonly<Record<string, string>> = {
  native: "Native",
  erc20: "ERC-20",
  spl: "SPL",
  spl2022: "Token-2022",
  trc20: "TRC-20",
  trc10: "TRC-10",
  sep41: "SEP-41",
  "xrpl-iou": "XRPL IOU",
  tep74: "Jetton",
  asa: "ASA",
  nep141: "NEP-141",
  fa2: "FA2"
}
/** `erc20` as “ERC-20”. */
export const tokenType = (type: string): string => tokenTypes[type] ?? type

/** The parts of an asset's id: network, type of token, and its address where it has one. */
export const assetParts = (asset: string): { readonly network: string; readonly type: string; readonly address: string | undefined } => {
  const [network = "", rest = ""] = [asset.slice(0, asset.indexOf("/")), asset.slice(asset.indexOf("/") + 1)]
  const colon = rest.indexOf(":")
  return { network, type: colon < 0 ? rest : rest.slice(0, colon), address: colon < 0 ? undefined : rest.slice(colon + 1) }
}

/** An id, hash or address without its middle. */
export const short = (text: string, head = 8, tail = 6): string =>
  text.length <= head + tail + 3 ? text : `${text.slice(0, head)}…${text.slice(-tail)}`
