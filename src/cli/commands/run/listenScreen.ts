/**
 * The output of `custody listen`: one line per event, like the demo, or with `--json` one object per event on standard
 * output and everything else on standard error.
 */
import type { WebhookEvent } from "../../../client/index.ts"
import { contentOf, envelopeOf } from "../../terminal/eventContent.ts"
import { left, printable, right, styles } from "../../terminal/text.ts"
import { type Forwarded, isAccepted } from "./forward.ts"

const TIME = 8,
  KIND = 23,
  SEQUENCE = 9,
  STATUS = 17,
  LATENCY = 8,
  VAULT = 32
/** Columns if the output is not a terminal. */
const PLAIN_WIDTH = 100
const REDELIVERED = "redelivered "

/** What a line is about. */
export interface Shown {
  readonly event: Pick<WebhookEvent, "kind" | "payload" | "vaultIds">
  readonly resumeCursor?: string
  /** The new delivery, if somebody redelivered the event. */
  readonly redeliveredAs?: string
}

export interface ListenScreen {
  /** A message about the connection. */
  readonly note: (text: string) => void
  /** A name and its value, at the start. */
  readonly fact: (name: string, value: string) => void
  /** The header of the table. */
  readonly head: () => void
  readonly event: (shown: Shown, forwarded: Forwarded | undefined) => void
}

/** Objects for programs. */
const json: ListenScreen = {
  note: (text) => process.stderr.write(`${printable(text)}\n`),
  fact: (name, value) => process.stderr.write(`${name}: ${value}\n`),
  head: () => {},
  event: ({ event, ...more }, forwarded) => {
    process.stdout.write(`${JSON.stringify({ ...event, ...more, ...(forwarded === undefined ? {} : { forwarded }) })}\n`)
  }
}

/** Lines for people; `forwards`: whether events are posted, and the symbols of assets. */
const lines = (forwards: boolean, symbols: ReadonlyMap<string, string>): ListenScreen => {
  const out = process.stdout
  const live = out.isTTY === true && process.env.TERM !== "dumb"
  const style = styles(live && process.env.NO_COLOR === undefined)
  const line = (text: string) => out.write(`${text.trimEnd()}\n`)
  const content = () => {
    const width = Math.min(140, live ? Math.max(60, out.columns) : PLAIN_WIDTH)
    const rest = width - 1 - (TIME + 1 + KIND + 1)
    return forwards ? rest - (SEQUENCE + STATUS + LATENCY + 3) : Math.min(44, rest - VAULT - 1)
  }
  const verdict = (forwarded: Forwarded) =>
    isAccepted(forwarded)
      ? style.good(left(`✓ ${forwarded.status}`, STATUS))
      : style.bad(left(`✗ ${forwarded.status ?? forwarded.error ?? ""}`, STATUS))
  const place = ({ attempt, sequence }: Forwarded) => left(attempt === 1 ? `#${sequence}` : `#${sequence} try ${attempt}`, SEQUENCE)
  return {
    note: (text) => line(style.dim(` ${printable(text)}`)),
    fact: (name, value) => line(` ${style.bold(left(name, 11))}${value}`),
    head: () => {
      const more = forwards ? `${left("SEQ", SEQUENCE)} ${left("STATUS", STATUS)} ${right("LATENCY", LATENCY)}` : "VAULT"
      line("")
      line(style.dim(` ${left("TIME", TIME)} ${left("EVENT", KIND)} ${left("CONTENT", content())} ${more}`))
    },
    event: ({ event, redeliveredAs }, forwarded) => {
      const envelope = envelopeOf(JSON.stringify(event.payload))
      const mark = redeliveredAs === undefined ? "" : REDELIVERED
      const shown = envelope === undefined ? mark : `${mark}${contentOf(envelope, symbols, content() - mark.length)}`
      const time = new Date().toTimeString().slice(0, TIME)
      const more =
        forwarded === undefined
          ? style.dim(left(event.vaultIds?.[0] ?? "", VAULT))
          : `${place(forwarded)} ${verdict(forwarded)} ${right(`${forwarded.latencyMs} ms`, LATENCY)}`
      line(` ${style.dim(time)} ${left(event.kind, KIND)} ${left(shown, content())} ${more}`)
    }
  }
}

/** The screen for people or for programs. */
export const listenScreen = (asJson: boolean, forwards: boolean, symbols: ReadonlyMap<string, string>): ListenScreen =>
  asJson ? json : lines(forwards, symbols)
