/**
 * `bun run topology`: runs the service of docker-compose.yml on this machine without Docker: a Temporal server on
 * Postgres with 512 history shards, the image's files, and migrate, api and worker as separate processes with the compose
 * file's commands and settings. It feeds records and expects signed deliveries, even while the worker is replaced. Then it
 * runs two of each process with a read replica, and kills one of each (twoOfEach.ts), and the end-to-end test against the
 * same servers. Needs Go; the first run builds Temporal, which takes minutes.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Client, Connection } from "@temporalio/client"
import { Webhook } from "standardwebhooks"
import { documentText } from "../test/support/document.ts"
import { PostgresServer } from "../test/support/postgres.ts"
import { Receiver, receiverEnv, until } from "../test/support/receiver.ts"
import { smallest, transaction } from "../test/support/records.ts"
import { POSTGRES, TEMPORAL, TEMPORAL_UI } from "../test/support/servers.ts"
import { buildImage } from "./image.ts"
import * as Temporal from "./temporalServer.ts"
import { twoOfEach } from "./twoOfEach.ts"

const root = path.resolve(import.meta.dir, "..")
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-topology-"))
const closers: Array<() => unknown> = [() => fs.rmSync(folder, { recursive: true, force: true })]

/** Runs a step and prints its duration. */
const step = async <A>(what: string, work: () => Promise<A>): Promise<A> => {
  const startedAt = performance.now()
  const value = await work()
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${what}`)
  return value
}

const must = (what: string, holds: boolean) => {
  if (!holds) throw new Error(`expected: ${what}`)
}

/** A Postgres server: one for the service, and one for Temporal. */
const postgres = async (): Promise<PostgresServer> => {
  const server = new PostgresServer()
  closers.push(() => server.close())
  await server.start()
  return server
}

const databaseOf = (server: URL, name: string): string => {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.toString()
}

interface Service {
  readonly command: ReadonlyArray<string>
  readonly environment: Readonly<Record<string, string>>
}
const compose = Bun.YAML.parse(documentText("docker-compose.yml")) as { readonly services: Readonly<Record<string, Service>> }

/** A setting of the compose file, with the operator's value. */
const interpolated = (value: string, given: Readonly<Record<string, string>>) =>
  value.replaceAll(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_, name: string, how: string | undefined, rest: string) => given[name] ?? (how === "-" ? rest : "")
  )

/** Runs a service of the compose file from the image's files, on loopback and free ports. */
const runner = (image: Awaited<ReturnType<typeof buildImage>>, changed: Readonly<Record<string, string>>) => (name: string) => {
  const { command, environment } = compose.services[name] ?? { command: [], environment: {} }
  const given = { MASTER_KEY: changed.MASTER_KEY ?? "", PLATFORM_TOKEN: changed.PLATFORM_TOKEN ?? "" }
  const settings = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, interpolated(value, given)]))
  const dataDir = path.join(folder, `data-${name}-${randomBytes(4).toString("hex")}`)
  const child = Bun.spawn([process.execPath, "src/main.ts", ...command], {
    cwd: image.workdir,
    env: { PATH: process.env.PATH ?? "", ...image.env, ...settings, ...changed, DATA_DIR: dataDir },
    stdout: "ignore",
    stderr: "pipe"
  })
  let output = ""
  const read = async () => {
    for await (const chunk of child.stderr) output += new TextDecoder().decode(chunk)
  }
  void read()
  closers.push(async () => {
    if (child.exitCode === null) child.kill("SIGTERM")
    await child.exited
  })
  const ready = () =>
    until(
      `${name} is ready`,
      () => {
        if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}:\n${output}`)
        const line = output.split("\n").find((one) => one.includes('"message":"ready"'))
        return line === undefined ? undefined : (JSON.parse(line) as { readonly api?: string; readonly platform?: string })
      },
      90
    )
  return { child, ready, output: () => output }
}

const check = async (address: string, databases: URL, image: Awaited<ReturnType<typeof buildImage>>) => {
  const receiver = new Receiver()
  await receiver.open()
  closers.push(() => receiver.close())
  const env = {
    DATABASE_URL: databaseOf(databases, "custody"),
    TEMPORAL_ADDRESS: address,
    MASTER_KEY: randomBytes(32).toString("base64"),
    PLATFORM_TOKEN: randomBytes(24).toString("hex"),
    HOST: "127.0.0.1",
    PLATFORM_HOST: "127.0.0.1",
    PORT: "0",
    PLATFORM_PORT: "0",
    WEBHOOK_RETRY_SCHEDULE: "0s,2s,2s,2s",
    ...receiverEnv(receiver)
  }
  const run = runner(image, env)
  await step("migrate ends with 0", async () => must("exit code 0", (await run("migrate").child.exited) === 0))
  const [api, firstWorker] = [run("api"), run("worker")]
  const { api: base = "", platform = "" } = await step(
    "api and worker are ready",
    async () => (await Promise.all([api.ready(), firstWorker.ready()]))[0]
  )

  const feed = async (records: ReadonlyArray<unknown>) => {
    const answer = await fetch(`${platform}/platform/v1/records`, {
      method: "POST",
      body: JSON.stringify(records),
      headers: { authorization: `Bearer ${env.PLATFORM_TOKEN}`, "content-type": "application/json" }
    })
    must(`the feed answers 200, not ${answer.status}`, answer.ok)
  }
  await feed(smallest())
  const keys = Bun.spawn(
    [
      process.execPath,
      "src/main.ts",
      "keys",
      "create",
      "--user",
      "user_a",
      "--scopes",
      "vault:read,webhook:read,webhook:manage",
      "--all-vaults"
    ],
    {
      cwd: image.workdir,
      env: { PATH: process.env.PATH ?? "", ...env, DATA_DIR: path.join(folder, "data-keys") },
      stdout: "pipe"
    }
  )
  const { secret: key } = (await new Response(keys.stdout).json()) as { readonly secret: string }
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const call = async (method: string, target: string, body?: unknown) => {
    const answer = await fetch(`${base}${target}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    must(`${method} ${target} succeeds: ${answer.status}`, answer.ok)
    // biome-ignore lint/suspicious/noExplicitAny: what is not there fails the check
    return (await answer.json()) as any
  }
  const webhook = await call("POST", "/v1/webhooks", {
    url: receiver.url("/hook"),
    entityIds: ["entity_a"],
    eventKinds: ["transaction.confirmed"],
    notificationEmail: "ops@example.com"
  })
  const deliveries = async (status: string) =>
    (await call("GET", `/v1/webhooks/${webhook.id}/deliveries?status=${status}&limit=500`)).data.length as number

  await step("100 transactions are delivered, each signed", async () => {
    await feed(Array.from({ length: 100 }, (_, index) => transaction("vault_a", index + 1)))
    await until("100 deliveries", async () => (await deliveries("DELIVERED")) === 100, 60)
    const standard = new Webhook(webhook.secret)
    for (const { body, headers: sent } of receiver.to("/hook")) standard.verify(body, { ...sent })
    must("one request each", receiver.to("/hook").length === 100)
  })

  await step("a worker is replaced while 20 deliveries wait for their next attempt; the new one delivers them", async () => {
    receiver.on("/hook", () => new Response("away", { status: 503 }))
    await feed(Array.from({ length: 20 }, (_, index) => transaction("vault_a", index + 1_001)))
    await until("20 retrying", async () => (await deliveries("RETRYING")) === 20, 60)
    firstWorker.child.kill("SIGTERM")
    must("it ends with 0", (await firstWorker.child.exited) === 0)
    receiver.on("/hook", () => new Response("ok"))
    await run("worker").ready()
    await until("all delivered", async () => (await deliveries("DELIVERED")) === 120, 90)
  })

  await step("Temporal has each as Completed, found by its search attributes", async () => {
    const connection = await Connection.connect({ address })
    const { workflow } = new Client({ connection })
    const query = `(WebhookId = '${webhook.id}' OR WebhookIds = '${webhook.id}') AND ExecutionStatus = 'Completed'`
    await until(
      "120 deliveries",
      async () => {
        const found = new Set<unknown>()
        // A delivery has its own workflow, or shares that of its claim; one that was queued was sent by the webhook's drain.
        for await (const { searchAttributes, workflowId } of workflow.list({ query }))
          for (const id of searchAttributes["DeliveryIds"] ?? [workflowId]) if (String(id).startsWith("del_")) found.add(id)
        return found.size === 120
      },
      60
    )
    await connection.close()
  })

  await step("documentation and portal are served from the image's files", async () => {
    for (const page of ["/v1/docs", "/portal"]) {
      const answer = await fetch(`${base}${page}`)
      must(`${page} is a page, not ${answer.status}`, answer.ok && (await answer.text()).startsWith("<!doctype html>"))
    }
  })

  await step("custody doctor finds no fault", async () => {
    const doctor = Bun.spawn([process.execPath, "src/main.ts", "doctor"], {
      cwd: image.workdir,
      env: { PATH: process.env.PATH ?? "", ...env, DATA_DIR: path.join(folder, "data-doctor") },
      stdout: "pipe"
    })
    const said = await new Response(doctor.stdout).text()
    must(`exit code 0:\n${said}`, (await doctor.exited) === 0)
  })
}

const endToEnd = async (address: string, databases: URL) => {
  const child = Bun.spawn([process.execPath, "test", "--timeout", "60000", "test/delivery/deliveries/endToEnd.test.ts"], {
    cwd: root,
    env: { ...process.env, [POSTGRES]: databaseOf(databases, "postgres"), [TEMPORAL]: address, [TEMPORAL_UI]: "http://127.0.0.1:8233" },
    stdout: "pipe",
    stderr: "pipe"
  })
  const said = (await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])).join("")
  must(`the end-to-end test passes:\n${said}`, (await child.exited) === 0)
}

const main = async () => {
  const built = await step("Temporal server and schema tool, built by Go", Temporal.build)
  const primary = await step("Postgres of the service", postgres)
  const temporals = new URL((await step("Postgres of Temporal", postgres)).url)
  const databases = new URL(primary.url)
  const image = await step("the image's files, by the Dockerfile", () => buildImage(path.join(folder, "image")))
  await step("Temporal's schemas on Postgres", () => Temporal.setUp(built, temporals))
  const server = await step(`Temporal server with ${Temporal.SHARDS} history shards`, () =>
    Temporal.start(built, temporals, folder, path.join(root, "deploy/temporal/dynamicconfig.yaml"))
  )
  closers.push(server.close)
  await check(server.address, databases, image)
  await twoOfEach({ primary, temporal: server, sources: image.workdir, step, closers })
  await step("the end-to-end test of the suite, against the same servers", () => endToEnd(server.address, databases))
}

let code = 0
try {
  await step("all of it", main)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  code = 1
}
for (const close of closers.reverse()) await close()
process.exit(code)
