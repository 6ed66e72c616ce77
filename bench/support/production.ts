/**
 * The service as in production, on this machine: a Postgres server of its own, a Temporal server with 512 history shards on
 * another Postgres server, and the service's processes by role. Needs Go; the first run builds Temporal, which takes minutes.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import pg from "pg"
import { PostgresServer } from "../../test/support/postgres.ts"
import * as Temporal from "../../tools/temporalServer.ts"
import { cpuMs } from "./cpu.ts"
import { announced, atEnd, custody, folder, start } from "./servers.ts"

export const roles = ["api", "dispatcher", "worker"] as const
export type Role = (typeof roles)[number]

/** Everything that uses CPU, disk or WAL. */
export const components = [...roles, "postgres", "temporal", "temporalPostgres"] as const
export type Component = (typeof components)[number]
export type Cpu = { readonly [component in Component]: number }

const databases = ["temporal", "temporal_visibility"]

const postgres = async (name: string) => {
  const server = new PostgresServer(path.join(folder, name))
  fs.mkdirSync(server.folder, { recursive: true })
  atEnd(() => server.stop())
  await server.start()
  return server
}

/** A client of a database that ends with the benchmark. */
const clientOf = async (server: PostgresServer, database: string): Promise<pg.Client> => {
  const url = new URL(server.url)
  url.pathname = `/${database}`
  const client = new pg.Client({ connectionString: url.toString() })
  client.on("error", () => {})
  await client.connect()
  atEnd(() => client.end())
  return client
}

/** Starts the servers, with `env` for processes of the service, and applies the migrations. */
export const production = async (env: Record<string, string>) => {
  const built = await Temporal.build()
  const ours = await postgres("postgres-of-the-service")
  const temporals = await postgres("postgres-of-temporal")
  await Temporal.setUp(built, new URL(temporals.url))
  const dynamicConfig = path.resolve(import.meta.dir, "../../deploy/temporal/dynamicconfig.yaml")
  const temporal = await Temporal.start(built, new URL(temporals.url), folder, dynamicConfig)
  atEnd(temporal.close)
  const client = await clientOf(ours, "custody")
  const temporalClients = await Promise.all(databases.map((name) => clientOf(temporals, name)))
  const token = randomBytes(18).toString("hex")
  const settings = {
    ...env,
    DATABASE_URL: ours.url,
    TEMPORAL_ADDRESS: temporal.address,
    MASTER_KEY: randomBytes(32).toString("base64"),
    PLATFORM_TOKEN: token
  }
  await custody(["migrate"], settings)

  const running: { readonly [role in Role]: Array<{ readonly pid: number; readonly port: number; readonly platformPort: number }> } = {
    api: [],
    dispatcher: [],
    worker: []
  }
  const sizeOf = async (clients: ReadonlyArray<pg.Client>) => {
    let size = 0
    for (const one of clients) size += Number((await one.query("SELECT pg_database_size(current_database()) AS size")).rows[0]?.size)
    return size
  }
  const walOf = async (one: pg.Client | undefined) =>
    Number((await one?.query("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes"))?.rows[0]?.bytes)
  return {
    settings,
    token,
    client,
    temporalAddress: temporal.address,
    processes: running,
    /** Starts processes of a role until there are this many. */
    grow: async (role: Role, count: number) => {
      while (running[role].length < count) {
        const { platformPort, port, process } = await start("src/main.ts", ["start", "--roles", role, "--no-migrate"], settings, announced)
        running[role].push({ pid: process.pid ?? 0, port, platformPort })
      }
    },
    /** CPU milliseconds of each component so far. */
    cpu: (): Cpu => {
      const [api = 0, dispatcher = 0, worker = 0] = roles.map((role) => cpuMs(running[role].map(({ pid }) => pid)))
      const [postgresMs, temporalMs, temporalPostgres] = [cpuMs([ours.pid]), cpuMs([temporal.pid()]), cpuMs([temporals.pid])]
      return { api, dispatcher, worker, postgres: postgresMs, temporal: temporalMs, temporalPostgres }
    },
    /** Bytes of WAL written and of databases on disk so far, of the service and of Temporal. */
    bytes: async () => ({
      wal: await walOf(client),
      disk: await sizeOf([client]),
      temporalWal: await walOf(temporalClients[0]),
      temporalDisk: await sizeOf(temporalClients)
    })
  }
}
export type Production = Awaited<ReturnType<typeof production>>
