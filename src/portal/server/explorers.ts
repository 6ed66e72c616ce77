/**
 * Block explorers by network, for the portal's links of hashes and addresses. The operator adds or replaces some with
 * `PORTAL_EXPLORERS`, or turns all of them off. The service never calls them.
 */
import type { Explorer, Explorers } from "../../runtime/settings/portalLook.ts"

const etherscan = (origin: string): Explorer => ({ transaction: `${origin}/tx/{hash}`, address: `${origin}/address/{address}` })

const known: Readonly<Record<string, Explorer>> = {
  arbitrum: etherscan("https://arbiscan.io"),
  avalanche: etherscan("https://snowtrace.io"),
  base: etherscan("https://basescan.org"),
  bitcoin: etherscan("https://mempool.space"),
  "bitcoin-testnet4": etherscan("https://mempool.space/testnet4"),
  bsc: etherscan("https://bscscan.com"),
  ethereum: etherscan("https://etherscan.io"),
  "ethereum-sepolia": etherscan("https://sepolia.etherscan.io"),
  optimism: etherscan("https://optimistic.etherscan.io"),
  polygon: etherscan("https://polygonscan.com"),
  solana: { transaction: "https://solscan.io/tx/{hash}", address: "https://solscan.io/account/{address}" },
  stellar: {
    transaction: "https://stellar.expert/explorer/public/tx/{hash}",
    address: "https://stellar.expert/explorer/public/account/{address}"
  },
  tron: { transaction: "https://tronscan.org/#/transaction/{hash}", address: "https://tronscan.org/#/address/{address}" }
}

/** Every explorer of a deployment, by network. */
export const explorersOf = (setting: Explorers): Readonly<Record<string, Explorer>> => (setting === "off" ? {} : { ...known, ...setting })
