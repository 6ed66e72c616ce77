/**
 * What Linux's table of TCP connections says of peers. The other end of a connection is all that a response knows of it, and Bun
 * tells neither what a client has acknowledged nor offers TCP_USER_TIMEOUT. Elsewhere the table is empty.
 */
import * as fs from "node:fs"
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

/** A connection's other end, and the columns `tx_queue:rx_queue`, `tr:tm->when` and `retrnsmt`. */
interface Row {
  readonly peer: string
  readonly queues: string
  readonly timer: string
  readonly retransmissions: string
}

const read = (table: string): string => {
  try {
    return fs.readFileSync(`/proc/self/net/${table}`, "utf8")
  } catch {
    return ""
  }
}

/** The connections that wait for something, as far as they are of interest: 2 ms of work for a thousand connections. */
const rows = (isOf: (row: Row) => boolean): ReadonlyArray<Row> =>
  ["tcp", "tcp6"].flatMap((table) =>
    read(table)
      .split("\n")
      .flatMap((line) => {
        // Most connections wait for nothing.
        if (line.includes(" 00000000:00000000 00:")) return []
        const [, , peer = "", , queues = "", timer = "", retransmissions = ""] = line.trim().split(/\s+/)
        const row = { peer, queues, timer, retransmissions }
        if (!isOf(row)) return []
        const [address = "", port = ""] = peer.split(":")
        return { ...row, peer: nameOf({ address: addressOf(address), port: Number.parseInt(port, 16) }) }
      })
  )

/** Retransmissions in a row after which a peer has vanished: 13 seconds on a fast connection, a minute on a slow one. */
const RETRANSMISSIONS = 6
/** The kernel's number of the timer that retransmits; the others wait for a reader that is slow, or for nothing. */
const RETRANSMITS = "01"

/**
 * The names of the peers that acknowledge nothing any more. A client that vanished without a FIN would keep its connection for about 16 minutes:
 * TCP sends no keep-alive probes while sent data waits for an acknowledgment, and every write of the service counts as activity.
 * C-1.
 */
export const vanishedPeers = (): ReadonlySet<string> => {
  const vanished = rows(
    ({ retransmissions, timer }) => timer.startsWith(RETRANSMITS) && Number.parseInt(retransmissions, 16) >= RETRANSMISSIONS
  )
  return new Set(vanished.map(({ peer }) => peer))
}

/** Bytes that peers have not acknowledged, by their names, of open connections and of closed ones, on any port of this machine. */
export const unacknowledged = (): ReadonlyMap<string, number> => {
  const waiting = rows(({ queues }) => /^[0-9A-F]{8}:/.test(queues) && !queues.startsWith("00000000:"))
  const bytes = new Map<string, number>()
  for (const { peer, queues } of waiting) bytes.set(peer, (bytes.get(peer) ?? 0) + Number.parseInt(queues, 16))
  return bytes
}
