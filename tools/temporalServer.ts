/**
 * A Temporal server on Postgres, as in production: built with Go from the released sources, its two schemas created by
 * its own tool, its four services in one process.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Connection } from "@temporalio/client"
import { Effect } from "effect"
import { portInUse } from "../src/runtime/embedded/Process.ts"
import { cache } from "../test/support/servers.ts"

const VERSION = "v1.29.1"
const MODULE = "go.temporal.io/server"

const run = async (command: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): Promise<string> => {
  const child = Bun.spawn([...command], { env: { ...process.env, ...env }, stdout: "pipe", stderr: "pipe" })
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}:\n${out}${error}`)
  return out.trim()
}

/** The server and its schema tool, built once and cached, and the directory of the schemas. */
export const build = async () => {
  const bin = path.join(cache, "temporal-server", VERSION)
  fs.mkdirSync(bin, { recursive: true })
  for (const [name, part] of [
    ["server", "cmd/server"],
    ["sql", "cmd/tools/sql"]
  ] as const) {
    if (!fs.existsSync(path.join(bin, name))) await run(["go", "install", `${MODULE}/${part}@${VERSION}`], { GOBIN: bin })
  }
  const { Dir } = JSON.parse(await run(["go", "mod", "download", "-json", `${MODULE}@${VERSION}`])) as { readonly Dir: string }
  return { server: path.join(bin, "server"), sql: path.join(bin, "sql"), schema: path.join(Dir, "schema", "postgresql", "v12") }
}

type Built = Awaited<ReturnType<typeof build>>

const databases = { temporal: "temporal", visibility: "temporal_visibility" } as const

/** Creates both databases and their schemas. */
export const setUp = async ({ schema, sql }: Built, postgres: URL): Promise<void> => {
  for (const [part, database] of Object.entries(databases)) {
    const tool = [sql, "--plugin", "postgres12", "--ep", postgres.hostname, "-p", postgres.port, "-u", postgres.username, "--db", database]
    const env = { SQL_PASSWORD: postgres.password }
    await run([...tool, "create-database"], env)
    await run([...tool, "setup-schema", "-v", "0.0"], env)
    await run([...tool, "update-schema", "-d", path.join(schema, part, "versioned")], env)
  }
}

/** A free port that fits Temporal's membership table: its column ends at 32,767, below the system's ephemeral ports. */
const smallPort = async (): Promise<number> => {
  const port = 20_000 + Math.floor(Math.random() * 12_000)
  return (await Effect.runPromise(portInUse(port))) ? smallPort() : port
}

const ports = async () => ({ grpcPort: await smallPort(), membershipPort: await smallPort(), bindOnLocalHost: true })

/** History shards, as in the compose file: chosen once for a cluster. */
export const SHARDS = 512

/**
 * Starts the server on its databases and waits until it has the namespace `default`. `dynamicConfig` is a file of dynamic
 * settings.
 */
export const start = async ({ server }: Built, postgres: URL, folder: string, dynamicConfig: string) => {
  const store = (databaseName: string) => ({
    sql: {
      pluginName: "postgres12",
      databaseName,
      connectAddr: postgres.host,
      connectProtocol: "tcp",
      user: postgres.username,
      password: postgres.password,
      maxConns: 20,
      maxIdleConns: 20,
      maxConnLifetime: "1h"
    }
  })
  const services = {
    frontend: { rpc: await ports() },
    history: { rpc: await ports() },
    matching: { rpc: await ports() },
    worker: { rpc: await ports() }
  }
  const address = `127.0.0.1:${services.frontend.rpc.grpcPort}`
  const config = {
    log: { stdout: true, level: "warn" },
    persistence: {
      defaultStore: "default",
      visibilityStore: "visibility",
      numHistoryShards: SHARDS,
      datastores: { default: store(databases.temporal), visibility: store(databases.visibility) }
    },
    global: { membership: { maxJoinDuration: "30s", broadcastAddress: "127.0.0.1" } },
    services,
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: "active",
      currentClusterName: "active",
      clusterInformation: { active: { enabled: true, initialFailoverVersion: 1, rpcName: "frontend", rpcAddress: address } }
    },
    dcRedirectionPolicy: { policy: "noop" },
    publicClient: { hostPort: address },
    dynamicConfigClient: { filepath: dynamicConfig, pollInterval: "60s" }
  }
  fs.mkdirSync(path.join(folder, "config"), { recursive: true })
  // JSON is valid YAML.
  fs.writeFileSync(path.join(folder, "config", "production.yaml"), JSON.stringify(config, null, 2), { mode: 0o600 })
  const log = fs.openSync(path.join(folder, "temporal.log"), "a")
  const launch = async () => {
    const child = Bun.spawn([server, "--root", folder, "--config", "config", "--env", "production", "--allow-no-auth", "start"], {
      stdout: log,
      stderr: log
    })
    const deadline = Date.now() + 90_000
    for (;;) {
      try {
        if (child.exitCode !== null) throw new Error("it ended")
        const connection = await Connection.connect({ address, connectTimeout: "2s" })
        const { workflowService } = connection
        await workflowService
          .registerNamespace({ namespace: "default", workflowExecutionRetentionPeriod: { seconds: 259_200 as never } })
          .catch((error: { readonly code?: number }) => {
            if (error.code !== 6) throw error
          })
        await workflowService.listWorkflowExecutions({ namespace: "default" })
        await connection.close()
        return child
      } catch (error) {
        if (Date.now() > deadline || child.exitCode !== null) {
          throw new Error(`Temporal did not start: ${error}\n${fs.readFileSync(path.join(folder, "temporal.log"), "utf8").slice(-3_000)}`)
        }
        await Bun.sleep(500)
      }
    }
  }
  let child = await launch()
  return {
    address,
    pid: () => child.pid,
    /** Kills it at once, and starts it again at the same address. */
    crash: async () => {
      child.kill("SIGKILL")
      await child.exited
      child = await launch()
    },
    close: async () => {
      child.kill("SIGTERM")
      await child.exited
    }
  }
}
