/** Assets and networks in API responses. Spec: Asset, Network. */
import { Schema } from "effect"

/** An asset that the service supports. */
export const Asset = Schema.Struct({
  id: Schema.String.annotations({ description: "Asset identifier", examples: ["ethereum/native"] }),
  symbol: Schema.String.annotations({ description: "Ticker; not a unique identifier", examples: ["ETH"] }),
  name: Schema.String.annotations({ description: "Full name", examples: ["Ether"] }),
  decimals: Schema.Int.annotations({
    description: "Decimal places of the smallest unit",
    jsonSchema: { type: "integer", minimum: 0, maximum: 78, examples: [18] }
  }),
  network: Schema.String.annotations({ description: "Friendly network name", examples: ["ethereum"] })
}).annotations({ identifier: "Asset", title: "Asset" })

/** A network. */
export const Network = Schema.Struct({
  name: Schema.String.annotations({ description: "Friendly name", examples: ["ethereum"] }),
  kind: Schema.Literal("mainnet", "testnet").annotations({ description: "Whether its assets have value" })
}).annotations({ identifier: "Network", title: "Network" })
