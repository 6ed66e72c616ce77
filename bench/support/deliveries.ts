/** Shared parts of the delivery benchmarks: a service with a webhook to a fast receiver, and transactions to feed. */
import * as fs from "node:fs"
import * as path from "node:path"
import type pg from "pg"
import { announced, custody, environment, folder, start } from "./servers.ts"
import { hashOf, reserve, transactionLine } from "./transactions.ts"

export const now = () => performance.timeOrigin + performance.now()

/**
 * An organization `org_NAME` with one entity, vault and user, an owner, of the same name; and a vault `vault_NAME_quiet`
 * of a separate entity, which no webhook covers.
 */
const organization = (name: string) => [
  { type: "organization", id: `org_${name}`, name, networks: ["ethereum"] },
  ...[name, `${name}_quiet`].flatMap((each) => [
    { type: "entity", id: `entity_${each}`, organizationId: `org_${name}`, name: each },
    {
      type: "vault",
      id: `vault_${each}`,
      entityId: `entity_${each}`,
      label: each,
      networks: ["ethereum"],
      createdAt: "2020-01-01T00:00:00Z"
    }
  ]),
  {
    type: "user",
    id: `user_${name}`,
    organizationId: `org_${name}`,
    email: `${name}@example.com`,
    name,
    status: "active",
    organizationRole: "owner",
    vaultRoles: [{ vaultId: `vault_${name}`, role: "developer" }]
  }
]

const catalog = [
  { type: "network", name: "ethereum", kind: "mainnet" },
  { type: "asset", id: "ethereum/native", symbol: "ETH", name: "Ether", decimals: 18, network: "ethereum" }
]

/** Confirmed transactions, all different. */
export const transactions = (count: number, vaultId = "vault_bench"): ReadonlyArray<{ readonly hash: string; readonly line: string }> => {
  const first = reserve(count)
  return Array.from({ length: count }, (_, index) => ({ hash: hashOf(first + index), line: transactionLine(first + index, vaultId) }))
}

const jsonLine = <A>(line: string): A | undefined => (line.startsWith("{") ? JSON.parse(line) : undefined)

/** A fast receiver in a separate process. */
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
    /** When it saw each transaction since the last call, in epoch milliseconds. */
    seen: () => ask<ReadonlyArray<readonly [string, number]>>("/seen"),
    /** Waits until it has seen this many. */
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

/** Records of the catalog and of organizations, loaded without events. */
const loadRecords = async (env: Record<string, string>, records: ReadonlyArray<object>) => {
  const file = path.join(folder, "records.ndjson")
  fs.writeFileSync(file, records.map((record) => JSON.stringify(record)).join("\n"))
  await custody(["load", file, "--no-events"], env)
}

/** A new organization in the same service, with a key of its owner. */
export const organizationWithKey = async (env: Record<string, string>, name: string): Promise<string> => {
  await loadRecords(env, [...catalog, ...organization(name)])
  const scopes = "vault:read,webhook:read,webhook:manage"
  const { secret }: { readonly secret: string } = JSON.parse(
    await custody(["keys", "create", "--user", `user_${name}`, "--scopes", scopes, "--all-vaults"], env)
  )
  return secret
}

/** A request to the public API with a JSON body. Fails unless the response is 2xx. */
export const ask = async (port: number, key: string, method: string, target: string, body: unknown) => {
  const answer = await fetch(`http://127.0.0.1:${port}${target}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  if (!answer.ok) throw new Error(`${method} ${target}: ${await answer.text()}`)
  return (await answer.json()) as { readonly id: string }
}

/** A webhook of the organization's entity for confirmed transactions. */
export const webhook = (port: number, key: string, name: string, url: string) =>
  ask(port, key, "POST", "/v1/webhooks", {
    url,
    entityIds: [`entity_${name}`],
    eventKinds: ["transaction.confirmed"],
    notificationEmail: "bench@example.com"
  })

/** Feeds records; returns the times of the request and of the response, in epoch milliseconds. */
export const feed = async (platformPort: number, token: string, lines: ReadonlyArray<string>, headers: Record<string, string> = {}) => {
  const begun = now()
  const answer = await fetch(`http://127.0.0.1:${platformPort}/platform/v1/records`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/x-ndjson", ...headers },
    body: lines.join("\n")
  })
  if (answer.status !== 200) throw new Error(await answer.text())
  return { begun, answered: now() }
}

/** A service with an organization, a key of its owner and, with a receiver, a webhook to it. `bunArgs` are options of its runtime. */
export const service = async (env: Record<string, string>, roles: string, webhookUrl?: string, bunArgs?: ReadonlyArray<string>) => {
  const process = await start("src/main.ts", ["start", "--roles", roles], env, announced, bunArgs)
  const key = await organizationWithKey(env, "bench")
  if (webhookUrl !== undefined) await webhook(process.port, key, "bench", webhookUrl)
  const token = fs.readFileSync(path.join(folder, "data", "platform-token"), "utf8").trim()
  return {
    ...process,
    key,
    /** The address for single records. */
    target: { port: process.platformPort, path: "/platform/v1/records", token },
    feed: (lines: ReadonlyArray<string>) => feed(process.platformPort, token, lines)
  }
}
export type Service = Awaited<ReturnType<typeof service>>

/** Waits until the service reports that no event waits for dispatch. */
export const dispatched = async ({ platformPort }: Pick<Service, "platformPort">) => {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${platformPort}/health/ready`)
    const { oldestUndispatchedSeconds } = (await answer.json()) as { readonly oldestUndispatchedSeconds: number | null }
    if (oldestUndispatchedSeconds === 0) return
    await Bun.sleep(100)
  }
}

/** Waits until no delivery waits for an attempt or in a queue, and a little longer, so that the workflows have ended too. */
export const settled = async (client: pg.Client) => {
  for (;;) {
    const { rows } = await client.query("SELECT 1 FROM deliveries WHERE status IN ('PENDING', 'RETRYING', 'HELD') LIMIT 1")
    if (rows.length === 0) break
    await Bun.sleep(50)
  }
  await Bun.sleep(1_500)
}

/** The value at a share of sorted numbers. */
export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) / 10
}
