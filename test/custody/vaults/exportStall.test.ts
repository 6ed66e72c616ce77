/** Exports to clients that stop reading, and of keys whose access ends: cut off, and everything is released. C-6. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as net from "node:net"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import pg from "pg"
import { AccessChecks } from "../../../src/access/credentials/AccessChecks.ts"
import { Exports } from "../../../src/custody/vaults/Exports.ts"
import { TransactionExport } from "../../../src/custody/vaults/TransactionExport.ts"
import { listen } from "../../../src/http/listener.ts"
import { RequestContext } from "../../../src/http/RequestContext.ts"
import * as Database from "../../../src/runtime/database/Database.ts"
import { Snapshots } from "../../../src/runtime/database/Snapshots.ts"
import { useApi } from "../../support/api.ts"
import { fillVault } from "../../support/bigVault.ts"
import { principalOf } from "../../support/principal.ts"
import { until } from "../../support/receiver.ts"
import { smallest, user, vault } from "../../support/records.ts"
import { settingsOf } from "../../support/servers.ts"

const app = useApi()
let owner = principalOf({ keyId: null, scopes: new Set(["vault:read"]), isOwner: true })

beforeAll(async () => {
  const records = [...smallest(), vault("vault_big", "entity_a"), user("user_a", "org_a", ["vault_big"], { organizationRole: "owner" })]
  await app.feed(records, { "x-record-events": "none" })
  // More than fits into the buffers of a connection.
  await fillVault(app, "vault_big")
  owner = { ...owner, keyId: (await app.key("user_a")).key.id }
})

/** Connections of the exports' pool that hold a transaction. */
const held = async () => {
  const [row] = await app.sql(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'custody-export' AND datname = current_database() AND state <> 'idle'"
  )
  return row?.["n"]
}

/** Serves exports of the vault with this layer; `allowed` collects the seconds that its connections may be idle. */
const serve = async (layer: typeof Exports.layer, allowed: Array<number>) => {
  const scope = await Effect.runPromise(Scope.make())
  const url = Redacted.make(app.databaseUrl)
  const served = Effect.gen(function* () {
    const exports = yield* TransactionExport
    return yield* listen(
      { name: "test", portSetting: "PORT", host: "127.0.0.1", port: 0, trustedProxies: [], maxBody: 1_024 },
      Effect.gen(function* () {
        const context = yield* RequestContext
        const { allowIdle } = context
        context.allowIdle = (seconds) => {
          allowed.push(seconds)
          allowIdle(seconds)
        }
        return yield* exports.start(owner, exports.ofVault("vault_big", {}), { format: "ndjson", amounts: "plain" })
      }).pipe(Effect.catchAll(() => Effect.succeed(HttpServerResponse.empty({ status: 500 }))))
    )
  })
  const services = TransactionExport.layer.pipe(
    Layer.provide(layer),
    Layer.provide(AccessChecks.layer),
    Layer.provide(Snapshots.layer(url)),
    Layer.provide(Database.layer(url, Database.pools.command)),
    Layer.provide(settingsOf(app.env["DATA_DIR"] ?? "", Object.entries(app.env)))
  )
  const { port } = await Effect.runPromise(
    Effect.flatMap(Layer.build(services), (context) => Effect.provide(served, context)).pipe(Scope.extend(scope))
  )
  return { port, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** A client that reads the beginning of a file and then nothing. */
const stalled = (port: number) =>
  new Promise<net.Socket>((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
    socket.once("error", reject)
    socket.once("data", (data) => {
      socket.pause()
      if (String(data).startsWith("HTTP/1.1 200")) resolve(socket)
      else reject(new Error(String(data)))
    })
  })

describe("an export whose client stalls", () => {
  test("is cut off after a minute, and its connection is released", async () => {
    // A minute, and up to 4 s until the listener looks.
    const minute: Array<number> = []
    const usual = await serve(Exports.layer, minute)
    const one = await stalled(usual.port)
    expect(minute).toEqual([64])
    one.destroy()
    await until("the release", async () => (await held()) === 0, 30)
    await usual.close()

    // The same with a shorter time.
    const impatient = await serve(Exports.Default(8, 4_000), [])
    const since = performance.now()
    const two = await stalled(impatient.port)
    const closed = new Promise((resolve) => two.once("close", resolve))
    await until("the release", async () => (await held()) === 0)
    expect(performance.now() - since).toBeGreaterThan(3_000)
    // What was sent before is still there to be read; then the connection is closed, without the file's end.
    let last = ""
    two.on("data", (data: Buffer) => {
      last = data.subarray(-5).toString("latin1")
    })
    two.on("error", () => {})
    two.resume()
    await closed
    expect(last).not.toEndWith("0\r\n\r\n")
    await impatient.close()
  })
})

describe("an export whose access is checked while it runs", () => {
  /** Reads a stalled file to its end or its break. */
  const rest = async (socket: net.Socket) => {
    let last = "",
      bytes = 0
    socket.on("data", (data: Buffer) => {
      bytes += data.length
      last = data.subarray(-5).toString("latin1")
    })
    socket.on("error", () => {})
    const ended = new Promise<void>((resolve) => {
      socket.once("close", () => resolve())
      socket.on("data", () => last.endsWith("0\r\n\r\n") && resolve())
    })
    socket.resume()
    await ended
    return { bytes, complete: last.endsWith("0\r\n\r\n") }
  }

  test("goes on after a check that found Postgres unavailable", async () => {
    const served = await serve(Exports.Default(60, 0), [])
    const socket = await stalled(served.port)
    const other = new pg.Client({ connectionString: app.databaseUrl })
    await other.connect()
    let read: ReturnType<typeof rest>
    try {
      await other.query("BEGIN; LOCK TABLE api_keys")
      read = rest(socket)
      await until("a check that loses its connection", async () => {
        const ended = await app.sql(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE application_name = 'custody-command' AND datname = current_database() AND wait_event_type = 'Lock'`
        )
        return ended.length > 0
      })
    } finally {
      await other.end()
    }
    expect((await read).complete).toBe(true)
    socket.destroy()
    await served.close()
  })

  const roles = (vaults: ReadonlyArray<string>) => app.feed([user("user_a", "org_a", vaults, { organizationRole: "owner" })])
  const of = (allowlist: ReadonlyArray<string> | null) =>
    app.sql("UPDATE api_keys SET vault_ids = $2 WHERE id = $1", [owner.keyId, allowlist])
  for (const [loss, lose, restore] of [
    ["its reader loses the role on the vault", () => roles([]), () => roles(["vault_big"])],
    ["its key is limited to other vaults", () => of(["vault_a"]), () => of(null)],
    [
      "its key is revoked",
      () => app.sql("UPDATE api_keys SET revoked_at = now(), revoked_reason = 'revoked' WHERE id = $1", [owner.keyId]),
      async () => {}
    ]
  ] as const)
    test(`breaks off if ${loss}`, async () => {
      const served = await serve(Exports.Default(60, 0), [])
      const socket = await stalled(served.port)
      await lose()
      const { bytes, complete } = await rest(socket)
      await restore()
      expect([bytes < 36_000_000, complete]).toEqual([true, false])
      await until("the release", async () => (await held()) === 0, 30)
      await served.close()
    })
})
