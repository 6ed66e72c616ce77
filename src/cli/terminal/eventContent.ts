/** The content of an event in a few columns of a screen. */
import { Option, Schema } from "effect"
import { cut } from "./text.ts"

/** The fields of an event's envelope that a line shows; each kind has some of them. */
const Envelope = Schema.parseJson(
  Schema.Struct({
    kind: Schema.String,
    data: Schema.Struct({
      vaultId: Schema.optional(Schema.String),
      transaction: Schema.optional(Schema.Struct({ asset: Schema.String, amount: Schema.String, direction: Schema.String })),
      balance: Schema.optional(Schema.Struct({ symbol: Schema.String, amount: Schema.String })),
      depositAddress: Schema.optional(Schema.Struct({ address: Schema.String, network: Schema.String })),
      vault: Schema.optional(Schema.Struct({ label: Schema.String })),
      webhook: Schema.optional(Schema.Struct({ previousSecretExpiresAt: Schema.optional(Schema.String) })),
      apiKey: Schema.optional(Schema.Struct({ label: Schema.String, expiresAt: Schema.String }))
    })
  })
)
export type Envelope = typeof Envelope.Type

/** The envelope in the body of a delivery; undefined if the text is not one. */
export const envelopeOf = (body: string): Envelope | undefined => Option.getOrUndefined(Schema.decodeOption(Envelope)(body))

/** Groups the digits before the point in threes; every digit stays. */
const grouped = (amount: string): string => amount.replace(/^\d+/, (whole) => whole.replaceAll(/\B(?=(\d{3})+$)/g, ","))

/** Amount and complete symbol; an amount that is too long loses its last digits. */
const amountOf = (sign: string, amount: string, symbol: string, columns: number): string =>
  `${cut(`${sign} ${grouped(amount)}`, columns - Math.min(10, Bun.stringWidth(symbol)) - 1)} ${cut(symbol, 10)}`

/** `12-05 08:00` */
const minuteOf = (at: string): string => at.slice(5, 16).replace("T", " ")

/** The content of an event in this many columns; an asset is shown by its symbol if that is known. */
export const contentOf = ({ data }: Envelope, symbols: ReadonlyMap<string, string>, columns: number): string => {
  const { apiKey, balance, depositAddress, transaction, vault, webhook } = data
  if (transaction !== undefined) {
    const symbol = symbols.get(transaction.asset) ?? transaction.asset
    return amountOf(transaction.direction === "inbound" ? "+" : "−", transaction.amount, symbol, columns)
  }
  if (balance !== undefined) return amountOf("=", balance.amount, balance.symbol, columns)
  if (depositAddress !== undefined) {
    const { address } = depositAddress
    return columns >= Bun.stringWidth(address) + 2 ? `@ ${address}` : `@ ${address.slice(0, 6)}…${address.slice(-4)}`
  }
  if (webhook?.previousSecretExpiresAt !== undefined) return `old until ${minuteOf(webhook.previousSecretExpiresAt)}`
  if (apiKey !== undefined) return cut(`until ${minuteOf(apiKey.expiresAt)} ${apiKey.label}`, columns)
  return vault === undefined ? "" : `“${vault.label}”`
}
