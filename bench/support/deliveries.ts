/** What the benchmarks of deliveries share: a service with a webhook to a fast receiver, and transactions to feed. */
import * as fs from "node:fs"
import * as path from "node:path"
import { announced, custody, environment, folder, start } from "./servers.ts"

export const now = () => performance.timeOrigin + performance.now()

const records = [
  { type: "network", name: "ethereum", kind: "mainnet" },
  { type: "asset", id: "ethereum/native", symbol: "ETH", name: "Ether", decimals: 18, network: "ethereum" },
  { type: "organization", id: "org_bench", name: "Bench", networks: ["ethereum"] },
  { type: "entity", id: "entity_bench", organizationId: "org_bench", name: "Bench" },
  {
    type: "vault",
    id: "vault_bench",
    entityId: "entity_bench",
    label: "Bench",
    networks: ["ethereum"],
    createdAt: "2020-01-01T00:00:00Z"
  },
  {
    type: "user",
    id: "user_bench",
    organizationId: "org_bench",
    email: "bench@example.com",
    name: "Bench",
    status: "active",
    organizationRole: "owner",
    vaultRoles: [{ vaultId: "vault_bench", role: "developer" }]
  }
]

let made = 0

/** Confirmed transactions, each another one. */
export const transactions = (count: number): ReadonlyArray<{ readonly hash: string; readonly line: string }> =>
  Array.from({ length: count }, () => {
    const hash = `0x${(++made).toString(16).padStart(64, "0")}`
    const record = {
      type: "transaction",
      vaultId: "vault_bench",
      hash,
      network: "ethereum",
      status: "confirmed",
      direction: "inbound",
      asset: "ethereum/native",
      amount: "1.5",
      from: "0x52908400098527886e0f7030069857d2e4169ee7",
      to: "0x8617e340b3d01fa5f11f306f4090fd50e238070d",
      timestamp: "2026-01-01T00:00:00Z"
    }
    return { hash, line: JSON.stringify(record) }
  })

const jsonLine = <A>(line: string): A | undefined => (line.startsWith("{") ? JSON.parse(line) : undefined)

/** A fast receiver in a process of its own. */
export const receiver = async () => {
  const { control, port } = await start(
    "bench/support/receiver.ts",
    [folder],
    environment(),
    jsonLine<{ readonly port: number; readonly control: number }>
  )
  const ask = async <A>(target: string): Promise<A> => (await (await fetch(`http://127.0.0.1:${control}${target}`)).json()) as A
  return {
    url: `https://localhost:${port}/hook`,
    port,
    /** When it saw each transaction since the last time it was asked, in epoch milliseconds. */
    seen: () => ask<ReadonlyArray<readonly [string, number]>>("/seen"),
    /** Waits until it has seen so many. */
    reaches: async (count: number, seconds = 120) => {
      for (const end = Date.now() + seconds * 1_000; (await ask<number>("/count")) < count; await Bun.sleep(50))
        if (Date.now() > end) throw new Error(`the receiver saw fewer than ${count} within ${seconds} s`)
    }
  }
}
export type Receiver = Awaited<ReturnType<typeof receiver>>

/** Settings by which the service delivers to the receiver. */
export const delivering = ({ port }: Receiver) =>
  environment({ WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8", WEBHOOK_ALLOW_PORTS: String(port), WEBHOOK_EXTRA_CA: path.join(folder, "ca.pem") })

/** A service with an organization, a key of its owner and, where there is a receiver, a webhook to it. */
export const service = async (env: Record<string, string>, roles: string, webhookUrl?: string) => {
  const process = await start("src/main.ts", ["start", "--roles", roles], env, announced)
  const file = path.join(folder, "records.ndjson")
  fs.writeFileSync(file, records.map((record) => JSON.stringify(record)).join("\n"))
  await custody(["load", file, "--no-events"], env)
  const { secret: key }: { readonly secret: string } = JSON.parse(
    await custody(["keys", "create", "--user", "user_bench", "--scopes", "vault:read,webhook:read,webhook:manage", "--all-vaults"], env)
  )
  if (webhookUrl !== undefined) {
    const body = {
      url: webhookUrl,
      entityIds: ["entity_bench"],
      eventKinds: ["transaction.confirmed"],
      notificationEmail: "bench@example.com"
    }
    const answer = await fetch(`http://127.0.0.1:${process.port}/v1/webhooks`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    if (answer.status !== 201) throw new Error(await answer.text())
  }
  const token = fs.readFileSync(path.join(folder, "data", "platform-token"), "utf8").trim()
  return {
    ...process,
    key,
    /** Feeds records; returns when the request began and when it was answered, in epoch milliseconds. */
    feed: async (lines: ReadonlyArray<string>) => {
      const begun = now()
      const answer = await fetch(`http://127.0.0.1:${process.platformPort}/platform/v1/records`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/x-ndjson" },
        body: lines.join("\n")
      })
      if (answer.status !== 200) throw new Error(await answer.text())
      return { begun, answered: now() }
    }
  }
}

/** The value at a share of sorted numbers. */
export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) / 10
}
