/**
 * Decision D-58: lists of custody data from a real streaming replica, which lags, disappears, hangs and returns. What may be
 * old is at most five seconds old; revocations, roles, cursors and a key's own changes are never old.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { cli, type Process, useApp } from "../../support/app.ts"
import { fillVault } from "../../support/bigVault.ts"
import { PostgresServer } from "../../support/postgres.ts"
import { until } from "../../support/receiver.ts"
import { asset, balance, smallest, transaction, user, vault } from "../../support/records.ts"
import { query, Replica } from "../../support/replica.ts"
import { create } from "../../support/webhookFixtures.ts"

const primary = new PostgresServer()
const replica = new Replica(primary)
const app = useApp([])
let key = "",
  second: Process

/** Reads so far, by server and reason, of one process or of the first. */
const counts = async (of: Process | undefined = app.main) => {
  const text = await (await fetch(`${of?.platformUrl}/metrics`)).text()
  const found = [...text.matchAll(/^custody_list_reads_total\{(.*)\} (\d+)$/gm)].map(
    ([, labels = "", count]) => [/reason="(\w+)"/.exec(labels)?.[1] ?? "", Number(count)] as const
  )
  return Object.fromEntries(found) as { readonly [reason: string]: number | undefined }
}
/** The reasons whose count grew while `use` ran. */
const during = async (use: () => Promise<unknown>): Promise<ReadonlyArray<string>> => {
  const before = await counts()
  await use()
  return Object.entries(await counts()).flatMap(([reason, count]) => ((count ?? 0) > (before[reason] ?? 0) ? [reason] : []))
}
const list = (path = "/v1/vaults/vault_a/transactions", secret = key) => app.get(path, secret)
const hashes = async (secret = key) => (await list(undefined, secret)).json.data.map((row: { hash: string }) => row.hash)
/** Waits until lists come from the replica. */
const fromReplica = (secret = key) =>
  until("a read from the replica", async () => (await during(() => list(undefined, secret))).includes("replica") || undefined)
const pause = () => query(replica.url, "SELECT pg_wal_replay_pause()")
const resume = () => query(replica.url, "SELECT pg_wal_replay_resume()")
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers field by field
const ready = async (of: Process | undefined = app.main): Promise<{ status: number; json: any }> => {
  const response = await fetch(`${of?.platformUrl}/health/ready`)
  return { status: response.status, json: await response.json() }
}

beforeAll(async () => {
  await primary.start()
  app.databaseUrl = primary.url
  app.env = { ...app.env, DATABASE_URL: primary.url }
  // The migrations, before the copy.
  expect((await cli(["migrate"], app.env)).code).toBe(0)
  await replica.start()
  app.env = { ...app.env, DATABASE_READ_URL: replica.url }
  app.main = await app.start(["api"])
  second = await app.start(["api"])
  await app.feed([...smallest(), user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" }), transaction("vault_a", 1)])
  key = (await app.key("user_a")).secret
})

afterAll(async () => {
  await replica.stop()
  await primary.close()
})

describe("lists of custody data", () => {
  test("come from the replica: vaults, balances and their history, transactions, addresses, assets, networks and exports", async () => {
    await app.feed([balance("vault_a", "ethereum/native", "7")])
    const paths = [
      "/v1/vaults",
      "/v1/vaults/vault_a",
      "/v1/vaults/vault_a/balances",
      "/v1/vaults/vault_a/balance-history?asset=ethereum/native",
      "/v1/vaults/vault_a/transactions",
      "/v1/vaults/vault_a/addresses",
      "/v1/vaults/vault_a/transactions/export?format=ndjson",
      "/v1/assets",
      "/v1/networks"
    ]
    // The replica replays the record a moment after it was fed.
    for (const path of paths)
      await until(
        `${path} from the replica`,
        async () => (await during(async () => expect([path, (await list(path)).status]).toEqual([path, 200]))).join() === "replica"
      )
    // A vault that nobody knows is unknown there, too.
    expect((await list("/v1/vaults/vault_none/transactions")).status).toBe(404)
  })

  test("everything else comes from the primary, even with a replica that stands still", async () => {
    await pause()
    try {
      await create(app, key)
      const [{ id }] = (await list("/v1/webhooks")).json.data
      expect((await list(`/v1/webhooks/${id}`)).json.id).toBe(id)
      await app.feed([transaction("vault_a", 2)])
      expect((await list("/v1/webhook-events")).text).toContain("2".padStart(64, "0"))
      expect((await list("/v1/event-feed?limit=500")).text).toContain("2".padStart(64, "0"))
      expect((await list("/v1/audit-log")).json.data[0].target.id).toBe(id)
    } finally {
      await resume()
    }
  })

  test("are at most as old as the replica where a change has no event", async () => {
    /** The reasons of a read while the replica is paused, and how many transactions it shows more than before. */
    const paused = async (number: number) => {
      await fromReplica()
      const before = (await hashes()).length
      await pause()
      try {
        await app.feed([transaction("vault_a", number)], { "x-record-events": "none" })
        let more = 0
        const reasons = await during(async () => {
          more = (await hashes()).length - before
        })
        return [...reasons, more]
      } finally {
        await resume()
        await until("the replica to follow", async () => (await hashes()).length === before + 1 || undefined)
      }
    }
    let seen = await paused(3)
    // After a pause of the machine of five seconds, the replica is too old.
    for (let again = 0; seen[0] === "lagging" && again < 5; again++) seen = await paused(41 + again)
    expect(seen).toEqual(["replica", 0])
  })
})

describe("reads that are never old", () => {
  test("a revoked key gets 401 at once", async () => {
    const { key: made, secret } = await app.key("user_a")
    await fromReplica(secret)
    await pause()
    try {
      expect((await list(undefined, secret)).status).toBe(200)
      await app.sql("UPDATE api_keys SET revoked_at = now(), revoked_reason = 'user_deactivated' WHERE id = $1", [made.id])
      expect((await list(undefined, secret)).status).toBe(401)
    } finally {
      await resume()
    }
  })

  test("what an event is about is found as soon as its record is acknowledged", async () => {
    await fromReplica()
    await pause()
    try {
      await app.feed([transaction("vault_a", 4), balance("vault_a", "ethereum/native", "8")])
      for (const base of [app.main?.baseUrl, second.baseUrl]) {
        const get = async (name: string) =>
          await (await fetch(`${base}/v1/vaults/vault_a/${name}`, { headers: { authorization: `Bearer ${key}` } })).text()
        expect(await get("transactions")).toContain("4".padStart(64, "0"))
        expect(await get("balances")).toContain('"amount":"8"')
      }
      // Too old after five seconds, on a busy machine.
      expect(["newer", "lagging"]).toContain((await during(() => list())).join())
    } finally {
      await resume()
    }
    await fromReplica()
  })

  test("an event that a failover lost does not stand for another one of its number", async () => {
    await app.feed([transaction("vault_a", 5)])
    await fromReplica()
    await pause()
    try {
      for (const table of ["events", "event_outbox"])
        await app.sql(`DELETE FROM ${table} WHERE position = (SELECT position FROM event_streams)`)
      await app.sql("UPDATE event_streams SET position = position - 1")
      await app.feed([transaction("vault_a", 6)])
      expect(await hashes()).toContain(`0x${"6".padStart(64, "0")}`)
      // Too old after five seconds, on a busy machine.
      expect(["newer", "lagging"]).toContain((await during(() => list())).join())
    } finally {
      await resume()
    }
    await fromReplica()
  })

  test("an organization with events all the time still reads from a replica that keeps up", async () => {
    const reasons = await during(async () => {
      for (let number = 100; number < 130; number++) {
        await app.feed([transaction("vault_a", number)])
        expect(await hashes()).toContain(`0x${number.toString(16).padStart(64, "0")}`)
      }
    })
    expect(reasons).toContain("replica")
  })

  test("a role change hides or shows the vault at once, in every process", async () => {
    await app.feed([vault("vault_r", "entity_a"), user("user_r", "org_a", ["vault_r"])])
    const { secret } = await app.key("user_r")
    await fromReplica(secret)
    const elsewhere = (path: string, _key?: string) => fetch(`${second.baseUrl}${path}`, { headers: { authorization: `Bearer ${secret}` } })
    await until("a read from the replica by the other process", async () => {
      await elsewhere("/v1/vaults")
      return (await counts(second))["replica"]
    })
    await pause()
    try {
      await app.feed([user("user_r", "org_a", ["vault_a"])])
      for (const get of [list, elsewhere]) {
        expect((await get("/v1/vaults/vault_r/balances", secret)).status).toBe(404)
        expect((await get("/v1/vaults/vault_r/transactions/export?format=csv", secret)).status).toBe(404)
        expect((await get("/v1/vaults/vault_a/transactions", secret)).status).toBe(200)
      }
      expect((await list("/v1/vaults", secret)).json.data.map(({ id }: { id: string }) => id)).toEqual(["vault_a"])
      expect(await (await elsewhere("/v1/vaults")).json()).toMatchObject({ data: [{ id: "vault_a" }] })
    } finally {
      await resume()
    }
    await fromReplica(secret)
    expect((await list("/v1/vaults/vault_r", secret)).status).toBe(404)
  })

  test("the next page never comes from a replica older than the first one", async () => {
    await app.feed([...[1, 2, 3].map((day) => transaction("vault_a", 10 + day, { timestamp: `2024-02-0${day}T00:00:00.000Z` }))])
    await fromReplica()
    await pause()
    try {
      // On its second page.
      await app.feed([transaction("vault_a", 20, { timestamp: "2023-01-01T00:00:00.000Z" })], { "x-record-events": "none" })
      const path = "/v1/vaults/vault_a/transactions?limit=20"
      // The role that this process sees for the first time needs the primary.
      await app.feed([user("user_c", "org_a", ["vault_a"])])
      const { secret } = await app.key("user_c")
      const first = await app.get(path, secret)
      const all: Array<string> = first.json.data.map(({ hash }: { hash: string }) => hash)
      for (let cursor = first.json.pagination.nextCursor, turn = 0; cursor !== null; turn++) {
        const base = turn % 2 === 0 ? second.baseUrl : app.main?.baseUrl
        // biome-ignore lint/suspicious/noExplicitAny: tests look into answers field by field
        const page: any = await (await fetch(`${base}${path}&cursor=${cursor}`, { headers: { authorization: `Bearer ${key}` } })).json()
        all.push(...page.data.map(({ hash }: { hash: string }) => hash))
        cursor = page.pagination.nextCursor
      }
      expect(all.filter((hash) => hash.endsWith("14"))).toHaveLength(1)
    } finally {
      await resume()
    }
    // A list that began on the replica continues there.
    await until("a list from the replica", async () => {
      await fromReplica()
      return (await during(() => app.pages("/v1/vaults/vault_a/transactions", key, 2))).join() === "replica" || undefined
    })
  })

  test("an asset's cursor still fits into 256 characters", async () => {
    // As long as ids of assets may be.
    await app.feed(["a", "b", "c"].map((end) => asset(`ethereum/spl:${"x".repeat(136)}${end}`)))
    // An asset has no event, so reads may be as old as the replica.
    const pages = await until("the assets from the replica", async () => {
      // biome-ignore lint/suspicious/noExplicitAny: tests look into answers field by field
      let read: ReadonlyArray<any> = []
      const reasons = await during(async () => {
        read = await app.pages("/v1/assets", key, 1)
      })
      return read.some(({ data: [{ id }] }) => id.length === 150) && !reasons.some((reason) => reason !== "replica") ? read : undefined
    })
    for (const { pagination } of pages) expect((pagination.nextCursor ?? "").length).toBeLessThanOrEqual(256)
  })
})

describe("a replica", () => {
  test("that lags for more than 5 seconds is left until it has caught up", async () => {
    await fromReplica()
    expect((await ready()).json.dependencies.replica).toBe("ok")
    await pause()
    try {
      await app.feed([transaction("vault_a", 30)], { "x-record-events": "none" })
      const begun = performance.now()
      await until("the new transaction", async () => (await hashes()).some((hash: string) => hash.endsWith("1e")) || undefined)
      // At most five seconds and a look old.
      expect(performance.now() - begun).toBeLessThan(25_000)
      expect(await during(() => list())).toEqual(["lagging"])
      const { json, status } = await ready()
      expect([status, json.ready, json.dependencies.replica]).toEqual([
        200,
        true,
        "The read replica is not used. It is more than 5 s behind"
      ])
      expect(json.replicaLagSeconds).toBeGreaterThan(5)
      const metrics = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
      expect(Number(/^custody_replica_lag_seconds (.*)$/m.exec(metrics)?.[1])).toBeGreaterThan(5)
      expect(metrics).toContain('custody_dependency_up{dependency="replica"} 0')
      const findings = JSON.parse((await cli(["doctor", "--json"], app.env)).stdout).findings
      expect(findings.find(({ subject }: { subject: string }) => subject === "Read replica").says).toContain("more than 5 s behind")
    } finally {
      await resume()
    }
    await fromReplica()
    expect((await ready()).json.dependencies.replica).toBe("ok")
  })

  test("that receives nothing because its primary is idle does not count as lagging", async () => {
    await fromReplica()
    // Nothing writes for longer than a replica may lag.
    const begun = performance.now()
    await until("7 seconds without a write", async () => performance.now() - begun > 7_000 || undefined)
    await until("a read from the replica", async () => {
      const { dependencies } = (await ready()).json
      return (dependencies.replica === "ok" && (await during(() => list())).join() === "replica") || undefined
    })
    const findings = JSON.parse((await cli(["doctor", "--json"], app.env)).stdout).findings
    expect(findings.find(({ subject }: { subject: string }) => subject === "Read replica")).toMatchObject({ state: "well" })
  })

  test("that hangs or is stopped fails no read, and delays none beyond 12 seconds", async () => {
    const failures: Array<string> = []
    app.patient = false
    let running = true,
      slowest = 0
    const readers = Array.from({ length: 4 }, async () => {
      while (running) {
        const begun = performance.now()
        const { status, text } = await list()
        if (status !== 200) failures.push(`${status} ${text}`)
        slowest = Math.max(slowest, performance.now() - begun)
      }
    })
    try {
      await fromReplica()
      replica.signal("SIGSTOP")
      await until("the primary to answer", async () => (await counts())["absent"])
      replica.signal("SIGCONT")
      await fromReplica()
      await replica.stop()
      const state = await until("the loss", async () => {
        const { json, status } = await ready()
        return json.dependencies.replica === "ok" ? undefined : ([status, json.ready, json.dependencies.replica] as const)
      })
      expect(state).toEqual([200, true, "The read replica is not used. It cannot be reached"])
      const findings = JSON.parse((await cli(["doctor", "--json"], app.env)).stdout).findings
      expect(findings.find(({ subject }: { subject: string }) => subject === "Read replica").says).toContain("cannot be reached")
      // Written while it was gone.
      await app.feed([transaction("vault_a", 40)])
      expect((await hashes()).some((hash: string) => hash.endsWith("28"))).toBe(true)
      await replica.start()
      await fromReplica()
      expect((await hashes()).some((hash: string) => hash.endsWith("28"))).toBe(true)
    } finally {
      running = false
      await Promise.all(readers)
      app.patient = true
    }
    expect(failures).toEqual([])
    expect(slowest).toBeLessThan(12_000)
  })

  test("that is not a standby of this primary is reported and not used", async () => {
    const wrong = await app.start(["api"], { DATABASE_READ_URL: primary.url })
    await until("a look at it", async () => (await ready(wrong)).json.dependencies.replica?.includes("not a standby"))
    const answer = await fetch(`${wrong.baseUrl}/v1/vaults`, { headers: { authorization: `Bearer ${key}` } })
    expect(answer.status).toBe(200)
    expect(Object.keys(await counts(wrong))).toEqual(["absent"])
    const findings = JSON.parse((await cli(["doctor", "--json"], { ...app.env, DATABASE_READ_URL: primary.url })).stdout).findings
    expect(findings.find(({ subject }: { subject: string }) => subject === "Read replica").says).toContain("not a standby")
    await wrong.end()
  })
})

describe("an export from a replica", () => {
  test("that the replica cancels ends with a broken connection, never as a shorter file", async () => {
    await fillVault(app, "vault_a")
    const count = "SELECT count(*)::int AS n FROM transactions WHERE vault_id = 'vault_a'"
    const expected = Number((await app.sql(count))[0]?.["n"])
    await until("the rows on the replica", async () => Number((await query(replica.url, count))[0]?.["n"]) === expected)
    await fromReplica()
    // The replica cancels what conflicts with recovery at once.
    await query(replica.url, "ALTER SYSTEM SET max_standby_streaming_delay = 0", "SELECT pg_reload_conf()")
    await query(replica.url, "ALTER SYSTEM SET hot_standby_feedback = off", "SELECT pg_reload_conf()")
    const response = await fetch(`${app.main?.baseUrl}/v1/vaults/vault_a/transactions/export?format=ndjson`, {
      headers: { authorization: `Bearer ${key}` }
    })
    expect(response.status).toBe(200)
    const reader = response.body?.getReader()
    const first = await reader?.read()
    let text = new TextDecoder().decode(first?.value)
    // Rows that the snapshot sees are removed.
    await app.sql("DELETE FROM transactions WHERE hash LIKE 'big%'")
    await app.sql("VACUUM (TRUNCATE false) transactions")
    let broken = false
    try {
      for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) text += new TextDecoder().decode(part.value)
    } catch {
      broken = true
    }
    expect([broken, text.trimEnd().split("\n").length]).toEqual([true, expect.any(Number)])
    expect(text.split("\n").length).toBeLessThan(expected)
    // The next one is whole.
    await fromReplica()
    const again = await list("/v1/vaults/vault_a/transactions/export?format=ndjson")
    expect(again.text.trimEnd().split("\n").length).toBe(
      Number((await app.sql("SELECT count(*)::int AS n FROM transactions WHERE vault_id = 'vault_a'"))[0]?.["n"])
    )
  })
})
