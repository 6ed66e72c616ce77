/**
 * The demo: the whole service on this machine with real data, and a consumer. It starts the same layers as `custody
 * start` and uses the service as its users would: records over the platform listener, webhooks over the API, deliveries
 * to an HTTPS endpoint. What can fail: a port in use, a Temporal server that cannot be downloaded; both have a message.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Config, Deferred, Duration, Effect, Fiber, Layer, Option, Redacted, Schema } from "effect"
import { ApiKeys } from "../../access/keys/ApiKeys.ts"
import { type Addresses, start, temporal } from "../../app/App.ts"
import { commandDatabase, databaseUrl } from "../../app/Base.ts"
import { platformToken } from "../../app/platform/platformToken.ts"
import { StatementSealer } from "../../custody/statements/StatementSealer.ts"
import { pages } from "../../portal/server/builtPages.ts"
import { Invitations } from "../../portal/signIn/Invitations.ts"
import { masterKeyLayer } from "../../runtime/crypto/MasterKey.ts"
import { SigningKeys } from "../../runtime/crypto/SigningKeys.ts"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import * as Format from "../../runtime/settings/Format.ts"
import { roles } from "../../runtime/settings/roles.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import type { Values } from "../../runtime/settings/table.ts"
import * as Log from "../../runtime/telemetry/Log.ts"
import { bundle } from "../../runtime/temporal/bundle.ts"
import { span } from "../terminal/text.ts"
import * as Client from "./Client.ts"
import { DemoFile } from "./DemoFile.ts"
import { type DemoData, read } from "./demoData.ts"
import { ensure } from "./demoKeys.ts"
import * as panel from "./panel.ts"
import { portalLink } from "./portalLink.ts"
import { portsFree } from "./portCheck.ts"
import { LEDGER, open, PLAY, type Receiver } from "./Receiver.ts"
import { Screen } from "./Screen.ts"
import { createWebhooks, play } from "./Story.ts"

/** Short waits between attempts, to watch them; a configured schedule takes precedence. */
const quickly = [0, 2, 5, 30, 300, 3_600].map((seconds) => Duration.seconds(seconds))
/** An endpoint counts as down sooner, and is probed more often. */
const soon = Duration.seconds(1)
const often = [2, 2, 4, 8, 30].map((seconds) => Duration.seconds(seconds))

const loopback = Format.cidr("127.0.0.0/8")

/**
 * The settings of this run: the configured ones, plus what the receiver on this machine needs, and statements from the
 * beginning of the data's last week on.
 */
const demoSettings = (settings: Values, receiver: Receiver, { lastWeek }: DemoData, loadedAt: string) =>
  Effect.gen(function* () {
    const configured = (name: string) => Effect.map(Config.option(Config.nonEmptyString(name)), Option.isSome)
    const [ownSchedule, ownHistory] = [yield* configured("WEBHOOK_RETRY_SCHEDULE"), yield* configured("STATEMENT_HISTORY")]
    if (settings.webhookExtraCa !== undefined) fs.appendFileSync(receiver.caFile, `\n${fs.readFileSync(settings.webhookExtraCa, "utf8")}`)
    const demo: Values = {
      ...settings,
      webhookAllowCidrs: [...settings.webhookAllowCidrs, ...(loopback._tag === "Right" ? [loopback.right] : [])],
      webhookAllowPorts: [...settings.webhookAllowPorts, receiver.port],
      webhookExtraCa: receiver.caFile,
      ...(ownSchedule ? {} : { webhookRetrySchedule: quickly, webhookHoldAfter: soon, webhookProbeSchedule: often }),
      ...(ownHistory ? {} : { statementHistory: Duration.millis(Date.parse(loadedAt) - Date.parse(lastWeek.from)) })
    }
    return demo
  })

/** The content of an earlier run's `demo.json`; empty if it cannot be read. */
const earlierRun = (file: string): Effect.Effect<Partial<typeof DemoFile.Type>> =>
  Effect.orElseSucceed(
    Effect.flatMap(
      Effect.try(() => fs.readFileSync(file, "utf8")),
      Schema.decodeUnknown(Schema.parseJson(DemoFile))
    ),
    () => ({})
  )

/** Seals the statements that are due. The service does that, too, but a minute later. */
const sealStatements = Effect.flatMap(StatementSealer, (sealer) => sealer.seal("", Number.POSITIVE_INFINITY)).pipe(
  Effect.provide(Layer.provide(StatementSealer.layer, SigningKeys.layer)),
  Effect.provide(commandDatabase),
  Effect.provide(masterKeyLayer),
  Effect.scoped
)

const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).host : url)

/** Passes what an effect prints as errors to `onMessage`: Temporal's progress while it is downloaded or built. */
const withMessages = <A, E, R>(effect: Effect.Effect<A, E, R>, onMessage: (text: string) => void) =>
  Effect.flatMap(Effect.console, (console) =>
    Effect.withConsole(effect, { ...console, error: (...parts) => Effect.sync(() => onMessage(parts.map(String).join(" "))) })
  )

/** Everything that must run before the first delivery, step by step on the screen. */
const prepare = Effect.fnUntraced(function* (data: DemoData, loadedAt: string) {
  const screen = yield* Screen
  const dataDir = yield* DataDir
  const settings = yield* Settings
  let note = ""
  const noted = (text: string) => {
    note = text
    if (!screen.live) screen.line(`    ${text}`)
  }
  // All three start together; the screen shows them one after the other, each with its time.
  const postgresStarting = yield* Effect.forkScoped(Effect.timed(databaseUrl))
  const temporalStarting = yield* Effect.forkScoped(Effect.timed(withMessages(temporal, noted)))
  const bundling = yield* Effect.forkScoped(Effect.timed(bundle(dataDir.at("cache"))))
  // So that the first visitor of the portal does not wait.
  yield* Effect.forkScoped(Effect.ignore(pages(dataDir.at("cache"))))
  const took = ([duration]: readonly [Duration.Duration, unknown]) => duration
  yield* screen.step("Postgres", Fiber.join(postgresStarting), { took, show: ([, url]) => hostOf(Redacted.value(url)) })
  const [, servers] = yield* screen.step("Temporal", Fiber.join(temporalStarting), {
    took,
    note: () => note,
    show: ([, { address, ui }]) => `${address}, UI on ${ui}`
  })
  yield* screen.step("Workflows", Fiber.join(bundling), { took, show: () => "bundled" })
  const receiver = yield* screen.step("Receiver", open, { show: ({ url }) => `${url("")}, new certificate` })

  const demo = yield* demoSettings(settings, receiver, data, loadedAt)
  const ready = yield* Deferred.make<Addresses>()
  const service = yield* start(roles, { migrate: true, onReady: (where) => Deferred.succeed(ready, where) }).pipe(
    Effect.provideService(Settings, demo),
    Effect.forkScoped
  )
  const where = yield* screen.step("Service", Effect.raceFirst(Deferred.await(ready), Fiber.join(service)), {
    show: ({ api, platform }) => `${api}, platform on ${hostOf(platform ?? "")}`
  })
  return { demo, receiver, servers, service, where }
})

/** The shorter form of a path: relative or absolute. */
const shortest = (file: string): string => {
  const relative = path.relative(process.cwd(), file) || "."
  return relative.startsWith("..") ? file : relative
}

const write = (file: string, content: typeof DemoFile.Type) =>
  Effect.sync(() => {
    fs.writeFileSync(`${file}.${process.pid}`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
    fs.renameSync(`${file}.${process.pid}`, file)
  })

/** Runs the demo: once, or until it is interrupted. */
export const run = (once: boolean) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const dataDir = yield* DataDir
    const { style } = screen
    yield* portsFree
    yield* Log.toFile(dataDir.at("log", "demo.log"))
    const data = yield* read
    screen.line(`\n ${style.bold("Custody Data Service")}  ${style.dim("demo with real transactions, on this machine only")}\n`)
    let stoppingSince = performance.now()
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => screen.line(` Stopped in ${span(performance.now() - stoppingSince)}. Data is kept in ${shortest(dataDir.root)}.`))
    )

    const file = dataDir.at("demo.json")
    const earlier = yield* earlierRun(file)
    const loadedAt = earlier.loadedAt ?? new Date().toISOString()
    const { demo, receiver, servers, service, where } = yield* prepare(data, loadedAt)
    const token = yield* platformToken
    const feed = Client.make(where, token, "")
    yield* screen.step("Demo data", feed.history(data.history), {
      show: (changed) => (changed === 0 ? "already loaded" : `${changed.toLocaleString("en")} records, ${data.organizations} organizations`)
    })
    const { from, to, vaultId } = data.lastWeek
    yield* screen.step("Balances", feed.history(data.balances), {
      show: (changed) =>
        changed === 0 ? "already loaded" : `${changed.toLocaleString("en")} in history, from ${data.since} to ${to.slice(0, 4)}`
    })
    yield* screen.step("Statements", Effect.provideService(sealStatements, Settings, demo), {
      show: ({ revised, sealed }) =>
        sealed + revised === 0 ? "already sealed" : `${(sealed + revised).toLocaleString("en")} sealed, one per vault and day since ${from}`
    })
    const secrets = yield* ensure(data, earlier.keys ?? {}).pipe(
      Effect.provide(ApiKeys.layer),
      Effect.provide(commandDatabase),
      Effect.scoped
    )
    const client = Client.make(where, token, secrets.owner)
    const webhooks = yield* screen.step("Webhooks", createWebhooks(client, receiver, data), {
      show: () => "2, and 6 API keys with different rights"
    })
    const content: typeof DemoFile.Type = {
      baseUrl: where.api ?? "",
      platformUrl: where.platform ?? "",
      platformToken: Redacted.value(token),
      temporalUi: servers.ui,
      receiverUrl: receiver.url(LEDGER),
      playUrl: receiver.url(PLAY),
      organizationId: data.organizationId,
      entityIds: data.entityIds,
      vaultIds: data.vaultIds,
      keys: secrets,
      webhookId: webhooks.ledger.id,
      loadedAt
    }
    yield* write(file, content)
    const portal = yield* portalLink(data.ownerId, where.portal ?? "").pipe(
      Effect.provide(Invitations.layer),
      Effect.provide(commandDatabase),
      Effect.scoped
    )
    panel.show(screen, content, { file, portal, statement: { vaultId, day: to } })

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        stoppingSince = performance.now()
        screen.line("\n Stopping: requests and attempts in flight first, then the servers …")
      })
    )
    const story = play({ client, data, receiver, screen, webhooks }, once, panel.footer(content))
    return yield* Effect.raceFirst(story, Fiber.join(service))
  }).pipe(Effect.scoped, Effect.provide(Screen.layer))
