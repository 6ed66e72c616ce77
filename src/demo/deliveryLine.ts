/** One request that the receiver got, as a row of the demo's table. */
import { Option, Schema } from "effect"
import { cut, left, right } from "../terminal/text.ts"
import type { Delivery } from "./Client.ts"
import type { DemoData } from "./demoData.ts"
import type { Received } from "./Receiver.ts"
import type { Screen } from "./Screen.ts"

/** What the demo shows of an envelope's data; each kind has some of it. */
const Envelope = Schema.parseJson(
  Schema.Struct({
    kind: Schema.String,
    data: Schema.Struct({
      vaultId: Schema.optional(Schema.String),
      transaction: Schema.optional(Schema.Struct({ asset: Schema.String, amount: Schema.String, direction: Schema.String })),
      balance: Schema.optional(Schema.Struct({ symbol: Schema.String, amount: Schema.String })),
      depositAddress: Schema.optional(Schema.Struct({ address: Schema.String, network: Schema.String })),
      vault: Schema.optional(Schema.Struct({ label: Schema.String })),
      webhook: Schema.optional(Schema.Struct({ previousSecretExpiresAt: Schema.optional(Schema.String) }))
    })
  })
)
type Envelope = typeof Envelope.Type

const KIND = 23,
  TIME = 8,
  TRY = 3,
  LATENCY = 8

/** Columns of the table at a width: what is wider than a small terminal shows more, not more white. */
const columnsOf = (width: number) => {
  const rest = width - 1 - (TIME + 1 + KIND + 1 + 1 + TRY + LATENCY + 2)
  const signature = 13
  const vault = width >= 110 ? 24 : 0
  return { amount: Math.min(36, rest - signature - vault), vault, signature }
}

/** Digits in groups of three before the point, as people read them; every digit stays. */
const grouped = (amount: string): string => amount.replace(/^\d+/, (whole) => whole.replaceAll(/\B(?=(\d{3})+$)/g, ","))

/** Amount and symbol, the symbol whole: of an amount that is too long the last digits give way. */
const amountOf = (sign: string, amount: string, symbol: string, columns: number): string =>
  `${cut(`${sign} ${grouped(amount)}`, columns - Math.min(10, Bun.stringWidth(symbol)) - 1)} ${cut(symbol, 10)}`

const contentOf = ({ data }: Envelope, symbols: DemoData["symbols"], columns: number): string => {
  const { balance, depositAddress, transaction, vault, webhook } = data
  if (transaction !== undefined) {
    const symbol = symbols.get(transaction.asset) ?? transaction.asset
    return amountOf(transaction.direction === "inbound" ? "+" : "−", transaction.amount, symbol, columns)
  }
  if (balance !== undefined) return amountOf("=", balance.amount, balance.symbol, columns)
  if (depositAddress !== undefined) {
    const { address } = depositAddress
    return columns >= Bun.stringWidth(address) + 2 ? `@ ${address}` : `@ ${address.slice(0, 6)}…${address.slice(-4)}`
  }
  if (webhook?.previousSecretExpiresAt !== undefined) return `old until ${webhook.previousSecretExpiresAt.slice(5, 16).replace("T", " ")}`
  return vault === undefined ? "" : `“${vault.label}”`
}

const verdict = ({ signed, status }: Received, { good, bad }: Screen["style"]): string => {
  if (!signed.includes(true)) return bad("✗ signature")
  if (status !== 200) return bad(`✗ ${status} → retry`)
  if (signed.length === 1) return good("✓ verified")
  return good(signed.map((by, index) => `${by ? "✓" : "✗"} ${index === 0 ? "new" : "old"}`).join(" "))
}

/** The table's head. */
export const head = (screen: Screen): string => {
  const { amount, signature, vault } = columnsOf(screen.columns())
  return screen.style.dim(
    ` ${left("TIME", TIME)} ${left("EVENT", KIND)} ${left("CONTENT", amount)} ${vault === 0 ? "" : left("VAULT", vault)}${left("TRY", TRY)}${right("LATENCY", LATENCY)}  ${cut("SIGNATURE", signature)}`
  )
}

/** The row of a request and of the attempt that the service recorded for it. */
export const row = (screen: Screen, data: DemoData, received: Received, attempt: Delivery["attempts"][number] | undefined): string => {
  const { amount, vault } = columnsOf(screen.columns())
  const envelope = Option.getOrUndefined(Schema.decodeOption(Envelope)(received.body))
  const content = envelope === undefined ? "" : contentOf(envelope, data.symbols, amount)
  const label = data.labels.get(envelope?.data.vaultId ?? "") ?? ""
  const time = new Date().toTimeString().slice(0, TIME)
  return (
    ` ${screen.style.dim(time)} ${left(envelope?.kind ?? "?", KIND)} ${left(content, amount)} ` +
    `${vault === 0 ? "" : screen.style.dim(left(label, vault))}${left(`#${received.attempt}`, TRY)}` +
    `${right(attempt === undefined ? "?" : `${attempt.latencyMs} ms`, LATENCY)}  ${verdict(received, screen.style)}`
  )
}
