/** The IP allowlist of a key. Spec: Authentication 6. Decision D-11. */
import { Either } from "effect"
import type { IPv4, IPv6 } from "ipaddr.js"
import * as Format from "../../runtime/settings/Format.ts"

/** Whether an allowlist of CIDRs allows an address: an empty one allows all; an unknown address only passes an empty one. */
export const allowsAddress = (allowlist: ReadonlyArray<string>, client: IPv4 | IPv6 | undefined): boolean => {
  if (allowlist.length === 0) return true
  if (client === undefined) return false
  return Format.holds(
    allowlist.flatMap((text) => Either.match(Format.cidr(text), { onLeft: () => [], onRight: (one) => [one] })),
    client
  )
}
