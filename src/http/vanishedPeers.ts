/**
 * Peers that acknowledge nothing any more, from Linux's table of TCP connections. A client that vanished without a FIN
 * would keep its connection for about 16 minutes: TCP sends no keep-alive probes while sent data waits for an
 * acknowledgment, every write of the service counts as activity, and Bun does not offer TCP_USER_TIMEOUT. C-1.
 */
import { readFile } from "node:fs/promises"
import ipaddr from "ipaddr.js"
import * as Format from "../runtime/settings/Format.ts"

/** The other end of a connection. */
export interface Peer {
  readonly address: string
  readonly port: number
}

/** Retransmissions in a row after which a peer has vanished: 13 seconds on a fast connection, a minute on a slow one. */
const RETRANSMISSIONS = 6
/** The kernel's number of the timer that retransmits; the others wait for a reader that is slow, or for nothing. */
const RETRANSMITS = "01"

export const nameOf = ({ address, port }: Peer): string => `${Format.address(address)?.toString()} ${port}`

/** An address of the table: words of four bytes in the byte order of the machine. */
const addressOf = (hex: string): string => ipaddr.fromByteArray([...Buffer.from(hex, "hex").swap32()]).toString()

/** The names of the peers that have vanished; none where the system has no such table. */
export const vanishedPeers = async (): Promise<ReadonlySet<string>> => {
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/self/net/${name}`, "utf8").catch(() => "")))
  const names = tables.flatMap((table) =>
    table.split("\n").flatMap((line) => {
      const [, , peer = "", , , timer = "", retransmissions = ""] = line.trim().split(/\s+/)
      if (!timer.startsWith(RETRANSMITS) || Number.parseInt(retransmissions, 16) < RETRANSMISSIONS) return []
      const [address = "", port = ""] = peer.split(":")
      return nameOf({ address: addressOf(address), port: Number.parseInt(port, 16) })
    })
  )
  return new Set(names)
}
