/**
 * What Linux's table of TCP connections says of peers. The other end of a connection is all that a response knows of it, and Bun
 * tells neither what a client has acknowledged nor offers TCP_USER_TIMEOUT. Elsewhere the table is empty.
 */
import { readFile } from "node:fs/promises"
import ipaddr from "ipaddr.js"
import * as Format from "../runtime/settings/Format.ts"

/** The other end of a connection. */
export interface Peer {
  readonly address: string
  readonly port: number
}

export const nameOf = ({ address, port }: Peer): string => `${Format.address(address)?.toString()} ${port}`

/** An address of the table: words of four bytes in the byte order of the machine. */
const addressOf = (hex: string): string => ipaddr.fromByteArray([...Buffer.from(hex, "hex").swap32()]).toString()

/** The names of the peers whose connection has these properties: the columns `tx_queue:rx_queue`, `tr:tm->when` and `retrnsmt`. */
const peersWhose = async (is: (queues: string, timer: string, retransmissions: string) => boolean): Promise<ReadonlySet<string>> => {
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/self/net/${name}`, "utf8").catch(() => "")))
  const names = tables.flatMap((table) =>
    table.split("\n").flatMap((line) => {
      // Most connections wait for nothing.
      if (line.includes(" 00000000:00000000 00:")) return []
      const [, , peer = "", , queues = "", timer = "", retransmissions = ""] = line.trim().split(/\s+/)
      if (!is(queues, timer, retransmissions)) return []
      const [address = "", port = ""] = peer.split(":")
      return nameOf({ address: addressOf(address), port: Number.parseInt(port, 16) })
    })
  )
  return new Set(names)
}

/** Retransmissions in a row after which a peer has vanished: 13 seconds on a fast connection, a minute on a slow one. */
const RETRANSMISSIONS = 6
/** The kernel's number of the timer that retransmits; the others wait for a reader that is slow, or for nothing. */
const RETRANSMITS = "01"

/**
 * The peers that acknowledge nothing any more. A client that vanished without a FIN would keep its connection for about 16 minutes:
 * TCP sends no keep-alive probes while sent data waits for an acknowledgment, and every write of the service counts as activity.
 * C-1.
 */
export const vanishedPeers = () =>
  peersWhose((_, timer, retransmissions) => timer.startsWith(RETRANSMITS) && Number.parseInt(retransmissions, 16) >= RETRANSMISSIONS)

/** The peers that have not acknowledged all that was sent to them, of open connections and of closed ones. */
export const unreadPeers = () => peersWhose((queues) => /^[0-9A-F]{8}:/.test(queues) && !queues.startsWith("00000000:"))
