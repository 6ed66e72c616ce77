/** Calls that the embedded servers have received: requests to Temporal's frontend, and transactions of Postgres. */
import * as fs from "node:fs"
import type pg from "pg"
import { descendant } from "./cpu.ts"

/** The loopback ports on which a process listens, from Linux's /proc. */
const portsOf = (pid: number): ReadonlyArray<number> => {
  const sockets = new Set(
    fs.readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(fs.readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        return []
      }
    })
  )
  const LISTENS = "0A"
  return fs
    .readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([, local = "", , state, , , , , , inode = ""]) =>
      state === LISTENS && sockets.has(inode) ? [Number.parseInt(local.split(":")[1] ?? "", 16)] : []
    )
}

const textOf = async (port: number): Promise<string> => {
  try {
    return await (await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(2_000) })).text()
  } catch {
    return ""
  }
}

/** Counts calls of a running service, by its process; `client` is one of its database. Transactions of the client itself count as well. */
export const callsOfService = async (pid: number, client: pg.Client) => {
  const texts = await Promise.all(portsOf(descendant(pid, "temporal")).map(async (port) => [port, await textOf(port)] as const))
  const [port] = texts.find(([, text]) => text.includes("service_requests")) ?? []
  if (port === undefined) throw new Error("Temporal serves no metrics")
  return async () => {
    const counts = (await textOf(port)).matchAll(/^service_requests\{[^}]*service_name="frontend"[^}]*\} (\S+)$/gm)
    const { rows } = await client.query<{ count: number }>(
      "SELECT (xact_commit + xact_rollback)::int AS count FROM pg_stat_database WHERE datname = current_database()"
    )
    return { temporal: [...counts].reduce((sum, [, count]) => sum + Number(count), 0), postgres: rows[0]?.count ?? 0 }
  }
}
