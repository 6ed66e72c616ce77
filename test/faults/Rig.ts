/**
 * The common setup of fault tests: the real program, a platform that feeds it and repeats what was not acknowledged, a
 * receiver that records each request, and the history check at the end of every fault. Reliability, fault matrix.
 */
import { afterAll, beforeAll } from "bun:test"
import { type Answer, App, cli, type Process } from "../support/app.ts"
import { webhookOf, world } from "../support/deliveryFixtures.ts"
import { type Received, Receiver, receiverEnv, until } from "../support/receiver.ts"
import { hash, transaction } from "../support/records.ts"

/** Whether this is the long run of `bun run faults`, and not the short one among the tests. */
export const long = process.env["CUSTODY_FAULTS"] === "long"

/** The result of a history check. All but `events`, `deliveries`, `requests` and `repeated` must be 0. */
export interface History {
  readonly events: number
  readonly deliveries: number
  readonly requests: number
  /** Acknowledged records whose event a receiver did not get, by matching webhook. */
  readonly lost: number
  /** Events, deliveries or requests without a cause, or duplicated. */
  readonly unexpected: number
  /** Deliveries in a state other than DELIVERED. */
  readonly unfinished: number
  /** Requests without their own attempt, and answered attempts without a request. */
  readonly unmatched: number
  /** Requests of a delivery after the first that got 2xx: at-least-once allows them when a sender is killed. */
  readonly repeated: number
}

/** A history without a fault, to compare with in `expect`. */
export const sound = { lost: 0, unexpected: 0, unfinished: 0, unmatched: 0 }

const ALL = ["api", "worker", "dispatcher"] as const
/** Records of one request of the feed. */
const BATCH = 5

/** Webhooks by the path of the receiver that they send to, each with its entity. */
const webhooks = { "/one": 0, "/two": 0, "/three": 1 } as const

const attemptOf = ({ headers }: Received) => `${headers["x-service-delivery-id"]} ${headers["x-service-attempt"]}`

export class Rig {
  readonly app = new App()
  readonly receiver = new Receiver()
  key = ""
  /** Hashes of the transactions that were acknowledged. */
  readonly acknowledged = new Set<string>()
  /** The response status of each request, by delivery and attempt. */
  readonly #answered = new Map<string, number>()
  #ids = new Map<string, string>()
  #next = 0
  #stopped = false
  #database = ""
  /** Root of the sources from which processes are started; this version if absent. */
  version: string | undefined

  /** Opens it; `roles` are those of the first process, `through` the URL by which it reaches a database. */
  async open(
    env: { readonly [name: string]: string } = {},
    roles: ReadonlyArray<string> = ALL,
    through: (databaseUrl: string) => Promise<string> = async (url) => url
  ): Promise<void> {
    await this.receiver.open()
    await this.app.open([], {
      ...receiverEnv(this.receiver),
      WEBHOOK_RETRY_SCHEDULE: `0s${",1s".repeat(14)}`,
      ...env
    })
    this.#database = await through(this.app.databaseUrl)
    await this.restart({}, roles)
    // Nothing is at fault yet, and the first connections to a new database take longest.
    this.app.patient = true
    await this.app.feed(world(2), { "x-record-events": "none" })
    this.key = await this.#ownersKey()
    for (const [path, entity] of Object.entries(webhooks)) {
      this.#ids.set(path, (await webhookOf(this.app, this.key, entity, this.receiver.url(path))).id)
      this.answer(path, () => 200)
    }
    this.app.patient = false
  }

  /** A key of the owner; another version makes it by its own code, which knows its schema. */
  async #ownersKey(): Promise<string> {
    if (this.version === undefined) return (await this.app.key("user_a")).secret
    const scopes = "vault:read,webhook:read,webhook:manage"
    const made = await cli(
      ["keys", "create", "--user", "user_a", "--scopes", scopes, "--all-vaults"],
      this.app.env,
      undefined,
      this.version
    )
    return JSON.parse(made.stdout).secret
  }

  /** Sets a path's response, and its delay in ms. */
  answer(path: string, status: (request: Received, count: number) => number, delay: () => number = () => Math.random() * 20): void {
    this.receiver.on(path, async (request, count) => {
      const code = status(request, count)
      await Bun.sleep(delay())
      this.#answered.set(attemptOf(request), code)
      return new Response("", { status: code })
    })
  }

  get paths(): ReadonlyArray<string> {
    return Object.keys(webhooks)
  }

  idOf(path: string): string {
    return this.#ids.get(path) ?? ""
  }

  /** Restarts the process with the API. */
  async restart(env: { readonly [name: string]: string } = {}, roles: ReadonlyArray<string> = ALL): Promise<Process> {
    this.app.main = await this.app.start(roles, { DATABASE_URL: this.#database, ...env }, this.version)
    return this.app.main
  }

  /** Feeds this many transactions and repeats unacknowledged ones, until it is closed; `pace` is the pause between requests in ms. */
  async feed(count: number, pace = 0): Promise<void> {
    for (let fed = 0; fed < count; fed += BATCH) {
      const hashes = Array.from({ length: Math.min(BATCH, count - fed) }, () => hash(++this.#next))
      const records = hashes.map((text, index) => transaction(`vault_${(fed + index) % 2}`, 0, { hash: text }))
      let last: unknown
      await until(
        "the feed's acknowledgement",
        async () => {
          if (this.#stopped) return true
          last = await this.app.records(records).catch(String)
          return typeof last === "object" && last !== null && "status" in last && last.status === 200
        },
        120
      ).catch((error: unknown) => {
        const main = this.app.main
        throw new Error(`${error}; last: ${Bun.inspect(last)}; ended with ${main?.child.exitCode}: ${main?.output().slice(-4_000)}`)
      })
      if (this.#stopped) return
      for (const text of hashes) this.acknowledged.add(text)
      await Bun.sleep(pace)
    }
  }

  /** Waits until no delivery waits; Postgres may be unavailable meanwhile. */
  async settle(seconds = 150): Promise<void> {
    await until(
      "the end of every delivery",
      async () => {
        const [row] = await this.app
          .sql(`
          SELECT (SELECT count(*) FROM event_outbox)
            + (SELECT count(*) FROM deliveries WHERE status IN ('PENDING', 'RETRYING', 'HELD')) AS waiting`)
          .catch(() => [])
        return Number(row?.["waiting"]) === 0
      },
      seconds
    )
  }

  /** Compares what was acknowledged, what the API shows and what the receiver saw. */
  async history(): Promise<History> {
    // The fault is over, and a list that a busy service refuses is asked for again.
    const { patient } = this.app
    this.app.patient = true
    return await this.#history().finally(() => {
      this.app.patient = patient
    })
  }

  async #history(): Promise<History> {
    const events = await this.app.walk("/v1/webhook-events?kind=transaction.confirmed", this.key, 500)
    const eventOf = new Map<string, Answer["json"]>()
    let unexpected = 0,
      lost = 0,
      unfinished = 0,
      unmatched = 0,
      repeated = 0,
      deliveries = 0
    for (const event of events) {
      const { hash: text } = event.payload.data.transaction
      if (eventOf.has(text)) unexpected++
      eventOf.set(text, event)
    }
    const attempts = new Map<string, string>()
    for (const [path, entity] of Object.entries(webhooks)) {
      const rows = await this.app.walk(`/v1/webhooks/${this.idOf(path)}/deliveries`, this.key, 500)
      const byEvent = new Map<string, Answer["json"]>()
      deliveries += rows.length
      for (const row of rows) {
        if (byEvent.has(row.eventId)) unexpected++
        byEvent.set(row.eventId, row)
        if (row.status !== "DELIVERED") unfinished++
        row.attempts.forEach(({ result }: { result: string }, index: number) => {
          attempts.set(`${row.id} ${index + 1}`, result)
        })
      }
      const received = new Map<string, number>()
      for (const request of this.receiver.to(path)) {
        const id = request.headers["webhook-id"] ?? ""
        if (this.#answered.get(attemptOf(request)) === 200) received.set(id, (received.get(id) ?? 0) + 1)
        if (!byEvent.has(id)) unexpected++
      }
      for (const count of received.values()) repeated += count - 1
      for (const text of this.acknowledged) {
        const event = eventOf.get(text)
        if (event === undefined) lost++
        else if (event.entityId === `entity_${entity}` && !received.has(event.id)) lost++
      }
    }
    const requests = this.paths.flatMap((path) => this.receiver.to(path)).map(attemptOf)
    // A number is used once, each request has its row, and each recorded answer had a request.
    unmatched += requests.length - new Set(requests).size
    for (const one of new Set(requests)) if (!attempts.has(one)) unmatched++
    const seen = new Set(requests)
    for (const [one, result] of attempts) if (/^[2-5]xx$/.test(result) && !seen.has(one)) unmatched++
    return { events: events.length, deliveries, requests: requests.length, lost, unexpected, unfinished, unmatched, repeated }
  }

  async close(): Promise<void> {
    this.#stopped = true
    await this.app.close()
    await this.receiver.close()
  }
}

/** A rig for the test file that calls this. */
export const useRig = (env: { readonly [name: string]: string } = {}, roles: ReadonlyArray<string> = ALL): Rig => {
  const rig = new Rig()
  beforeAll(() => rig.open(env, roles))
  afterAll(() => rig.close())
  return rig
}

/** Reports the result of a fault in the long run. */
export const report = (fault: string, figures: object): void => {
  if (long) console.log(`${fault}: ${JSON.stringify(figures)}`)
}

/** Numbers from 0 to 1, equal for equal `CUSTODY_FAULTS_SEED`; the long run prints its seed. */
export const randoms = (): (() => number) => {
  const seed = Number(process.env["CUSTODY_FAULTS_SEED"] ?? Math.floor(Math.random() * 2 ** 32))
  report("seed", { CUSTODY_FAULTS_SEED: seed })
  // Mulberry32.
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
