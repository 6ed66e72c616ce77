/** Readers of the settings for the portal's look. */
import { Either } from "effect"
import * as Format from "./Format.ts"

/** URL templates of a block explorer for one network, with `{hash}` and `{address}`. */
export interface Explorer {
  readonly transaction: string
  readonly address: string
}

/** The value of `PORTAL_EXPLORERS`: templates by network in addition to the known ones, or none at all. */
export type Explorers = "off" | Readonly<Record<string, Explorer>>

const expected = "off, or network=https://…/{hash}|https://…/{address}, comma-separated"

const page = (text: string | undefined, mark: string): text is string =>
  text?.includes(mark) === true && /^https:\/\//.test(text) && URL.canParse(text)

/** `off`, or `network=transaction page|address page` for each network. */
export const explorers = (value: string): Format.Read<Explorers> => {
  if (value.trim() === "off") return Either.right("off")
  const one = (text: string): Format.Read<readonly [string, Explorer]> => {
    const [, network, transaction, address] = /^([a-z0-9-]+)=([^|]+)\|([^|]+)$/.exec(text.trim()) ?? []
    return network !== undefined && page(transaction, "{hash}") && page(address, "{address}")
      ? Either.right([network, { transaction, address }])
      : Either.left(expected)
  }
  return Either.map(Format.list(value, one), (entries) => Object.fromEntries(entries))
}

/** A color such as `#2452c7`. */
export const color = (value: string): Format.Read<string> =>
  /^#[0-9a-f]{6}$/i.test(value.trim()) ? Either.right(value.trim().toLowerCase()) : Either.left("a color such as #2452c7")
