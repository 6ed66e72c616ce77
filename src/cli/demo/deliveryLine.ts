/** One received request as a row of the demo's table. */
import { contentOf, envelopeOf } from "../terminal/eventContent.ts"
import { cut, left, right } from "../terminal/text.ts"
import type { Delivery } from "./Client.ts"
import type { DemoData } from "./demoData.ts"
import { PLAY, type Received } from "./Receiver.ts"
import type { Screen } from "./Screen.ts"

const KIND = 23,
  TIME = 8,
  TRY = 3,
  LATENCY = 8

/** Columns of the table for a width: a wider terminal shows more content, not more space. */
const columnsOf = (width: number) => {
  const rest = width - 1 - (TIME + 1 + KIND + 1 + 1 + TRY + LATENCY + 2)
  const signature = 13
  const vault = width >= 110 ? 24 : 0
  return { amount: Math.min(36, rest - signature - vault), vault, signature }
}

const verdict = ({ path, signed, status }: Received, held: boolean, { bad, dim, good }: Screen["style"]): string => {
  if (path === PLAY) return dim("✓ unverified")
  if (!signed.includes(true)) return bad("✗ signature")
  if (status !== 200) return bad(`✗ ${status} → ${held ? "held" : "retry"}`)
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

/** The row of a request, with its attempt as its delivery recorded it. */
export const row = (screen: Screen, data: DemoData, received: Received, delivery: Delivery | undefined): string => {
  const attempt = delivery?.attempts[received.attempt - 1]
  const { amount, vault } = columnsOf(screen.columns())
  const envelope = envelopeOf(received.body)
  const content = envelope === undefined ? "" : contentOf(envelope, data.symbols, amount)
  const label = data.labels.get(envelope?.data.vaultId ?? "") ?? ""
  const time = new Date().toTimeString().slice(0, TIME)
  return (
    ` ${screen.style.dim(time)} ${left(envelope?.kind ?? "?", KIND)} ${left(content, amount)} ` +
    `${vault === 0 ? "" : screen.style.dim(left(label, vault))}${left(`#${received.attempt}`, TRY)}` +
    `${right(attempt === undefined ? "?" : `${attempt.latencyMs} ms`, LATENCY)}  ${verdict(received, delivery?.status === "HELD", screen.style)}`
  )
}
