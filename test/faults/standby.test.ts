/**
 * Servers that answer but cannot do their work: a Postgres that became a standby while connections to it were open, and a
 * Temporal server without the namespace. Both are reported, and work continues as soon as possible. Reliability F6, F9.
 */
import { describe, expect, test } from "bun:test"
import { msToTs } from "@temporalio/common/lib/time"
import { type App, useApp } from "../support/app.ts"
import { until } from "../support/receiver.ts"
import { balance, smallest, transaction } from "../support/records.ts"
import { operator } from "../support/temporal.ts"
import { create } from "../support/webhookFixtures.ts"

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers field by field
const readiness = async (app: App): Promise<any> => (await fetch(`${app.main?.platformUrl}/health/ready`)).json()

describe("a Postgres that no longer accepts writes", () => {
  const app = useApp(["api"])

  test("is reported by readiness, and abandoned as soon as another one accepts them", async () => {
    await app.feed(smallest())
    const key = (await app.key("user_a")).secret
    const name = new URL(app.databaseUrl).pathname.slice(1)
    const ready = async () => (await readiness(app)).dependencies.postgres
    await until("readiness", async () => (await ready()) === "ok")
    await app.sql(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    await app.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'custody-%' AND datname = current_database()"
    )
    await until("readiness to report it", async () => (await ready()) === "Postgres is read-only: is it a standby?")
    const refused = await until("a refusal", async () => {
      const answer = await app.records([balance("vault_a", "ethereum/native", "7")])
      return answer.status === 503 ? answer : undefined
    })
    expect(refused.json.code).toBe("service_unavailable")
    expect((await app.get("/v1/vaults", key)).status).toBe(200)
    // New connections may write; open ones stay read-only, like those to the old primary.
    await app.sql(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
    await until("the feed", async () => (await app.records([balance("vault_a", "ethereum/native", "7")])).status === 200)
    expect((await app.get("/v1/vaults/vault_a/balances", key)).json.data[0].amount).toBe("7")
    await until("readiness to report it", async () => (await ready()) === "ok")
  })
})

describe("a Temporal server without the namespace", () => {
  const namespace = `absent-${process.pid}-${Date.now()}`
  const app = useApp(["api", "dispatcher"], { TEMPORAL_NAMESPACE: namespace })

  test("is reported by readiness; events wait, visibly undispatched, until it exists", async () => {
    await app.feed(smallest())
    const key = (await app.key("user_a")).secret
    await create(app, key)
    await app.feed([transaction("vault_a", 1)])
    const ready = () => readiness(app)
    const state = await until("an event that waits", async () => {
      const now = await ready()
      return now.oldestUndispatchedSeconds > 2 && now
    })
    expect(state.dependencies.temporal).toContain("Temporal")
    const waiting = await app.sql("SELECT count(*)::int AS waiting FROM event_outbox")
    expect(waiting[0]?.["waiting"]).toBeGreaterThan(0)
    const { client, close } = await operator()
    try {
      await client.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs("1 day") })
    } finally {
      await close()
    }
    await until("the events", async () => (await ready()).oldestUndispatchedSeconds === 0)
    await until("readiness", async () => (await ready()).dependencies.temporal === "ok")
  })
})
