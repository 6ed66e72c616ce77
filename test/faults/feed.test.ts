/**
 * The guarantee of the event feed: several API processes, several writers of each organization, events of webhooks from
 * workers, kills between any two statements that record events, and readers that poll, wait and stream with different
 * keys. Every reader gets what its key may see, each once, in one order common to all, and nothing is
 * recorded before a cursor that was issued. C-1.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { App, type Process } from "../support/app.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { asset, entity, hash, network, organization, transaction, user, vault } from "../support/records.ts"
import { long, randoms, report } from "./Rig.ts"

const APIS = long ? 3 : 2,
  WORKERS = long ? 2 : 1,
  WRITERS = long ? 8 : 3,
  READERS = long ? 30 : 10,
  KILLS = long ? 60 : 2
/** A process is killed at one of this many places between the statements that record events. */
const PLACES = long ? 400 : 40

const random = randoms()
const pick = <A>(some: ReadonlyArray<A>): A => {
  const one = some[Math.floor(random() * some.length)]
  if (one === undefined) throw new Error("nothing to pick from")
  return one
}

const app = new App()
const receiver = new Receiver()

const entities: Readonly<Record<string, string>> = { entity_1: "org_a", entity_2: "org_a", entity_3: "org_b" }
const vaults: Readonly<Record<string, string>> = {
  vault_0: "entity_1",
  vault_1: "entity_1",
  vault_2: "entity_2",
  vault_3: "entity_2",
  vault_4: "entity_3"
}

/** A reader: what its user may see, and the limits of its key. */
interface Caller {
  readonly user: string
  readonly organizationId: string
  readonly owner: boolean
  readonly roles: ReadonlyArray<string>
  readonly allowlist: ReadonlyArray<string> | null
}
const caller = (user: string, owner: boolean, roles: ReadonlyArray<string>, allowlist: ReadonlyArray<string> | null = null): Caller => ({
  user,
  organizationId: roles.includes("vault_4") ? "org_b" : "org_a",
  owner,
  roles,
  allowlist
})
const callers = [
  caller("user_owner", true, ["vault_0", "vault_1", "vault_2", "vault_3"]),
  caller("user_owner", true, ["vault_0", "vault_1", "vault_2", "vault_3"], ["vault_3", "vault_1"]),
  caller("user_one", false, ["vault_0"]),
  caller("user_two", false, ["vault_1", "vault_2"]),
  caller("user_two", false, ["vault_1", "vault_2"], ["vault_2"]),
  caller("user_other", true, ["vault_4"])
]
const secrets = new Map<Caller, string>()

interface EventRow {
  readonly id: string
  readonly organizationId: string
  readonly entityId: string
  readonly vaultId: string | null
  readonly kind: string
  readonly audience: ReadonlyArray<string> | null
  readonly position: number
}

/** Decision D-9, implemented from its text alone. */
const sees = ({ allowlist, organizationId, owner, roles }: Caller, event: EventRow): boolean => {
  const reaches = (entityId: string) => (owner ? entities[entityId] === organizationId : roles.some((id) => vaults[id] === entityId))
  if (event.organizationId !== organizationId || ![event.entityId, ...(event.audience ?? [])].every(reaches)) return false
  if (event.vaultId === null) return allowlist === null
  return roles.includes(event.vaultId) && (allowlist === null || allowlist.includes(event.vaultId))
}

/** The running API processes. */
const apis: Array<Process> = []
let killed = 0,
  writing = true,
  recording = true

beforeAll(async () => {
  await receiver.open()
  receiver.on("/broken", () => new Response("", { status: 500 }))
  await app.open([], {
    ...receiverEnv(receiver),
    WEBHOOK_ROTATION_GRACE: "1s",
    WEBHOOK_HOLD: "off",
    WEBHOOK_DISABLE_AFTER: "1s",
    WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s"
  })
  app.main = await app.start(["api"])
  await app.feed(
    [
      network("ethereum"),
      asset("ethereum/native"),
      organization("org_a", ["ethereum"]),
      organization("org_b", ["ethereum"]),
      ...Object.entries(entities).map(([id, organizationId]) => entity(id, organizationId)),
      ...Object.entries(vaults).map(([id, entityId]) => vault(id, entityId)),
      ...[...new Map(callers.map((one) => [one.user, one])).values()].map(({ organizationId, owner, roles, user: id }) =>
        user(id, organizationId, roles, { organizationRole: owner ? "owner" : "member" })
      )
    ],
    { "x-record-events": "none" }
  )
  for (const one of callers) secrets.set(one, (await app.key(one.user, { vaultIds: one.allowlist })).secret)
})
afterAll(async () => {
  writing = recording = false
  await app.close()
  await receiver.close()
})

/** An API process that is killed at a place between two statements and replaced by another, until there were enough kills. */
const keepApi = async (index: number): Promise<void> => {
  while (writing) {
    const deadly = killed < KILLS
    const started = await app.start(["api"], deadly ? { FAIL_AT: `event-writer:${1 + Math.floor(random() * PLACES)}` } : {})
    apis[index] = started
    if (!deadly) return
    await until("its end", () => started.child.signalCode !== null || !writing, 600)
    if (started.child.signalCode !== null) killed++
  }
}

/** Feeds batches, each until a process acknowledges it, once per key. */
const keepWriting = async (writer: number): Promise<number> => {
  let batches = 0
  while (writing) {
    const records = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, index) => {
      const [vaultId, number] = [pick(Object.keys(vaults)), writer * 1e9 + batches * 10 + index]
      return random() < 0.1
        ? { type: "address", vaultId, network: "ethereum", address: `0x${number.toString(16).padStart(40, "0")}`, assetType: "native" }
        : transaction(vaultId, 0, { hash: hash(number) })
    })
    const body = records.map((record) => JSON.stringify(record)).join("\n")
    const headers = {
      authorization: `Bearer ${app.env.PLATFORM_TOKEN}`,
      "content-type": "application/x-ndjson",
      "idempotency-key": `writer-${writer}-batch-${batches}`
    }
    for (;;) {
      const answer = await fetch(`${pick(apis).platformUrl}/platform/v1/records`, { method: "POST", body, headers }).catch(() => undefined)
      if (answer?.status === 200) break
      if (!writing) return batches
      await Bun.sleep(20)
    }
    batches++
    await Bun.sleep(random() * 40)
  }
  return batches
}

/** Workers disable webhooks with broken endpoints, and this enables and rotates them: a constant source of webhook events. */
const keepWebhooks = async (): Promise<void> => {
  const key = secrets.get(callers[0] as Caller) ?? ""
  const ask = async (method: string, target: string, body?: unknown): Promise<{ readonly id: string } | undefined> => {
    const answer = await fetch(`${pick(apis).baseUrl}${target}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    }).catch(() => undefined)
    return answer?.ok === true && answer.status !== 204
      ? (answer.json() as Promise<{ readonly id: string }>).catch(() => undefined)
      : undefined
  }
  const ids: Array<string> = []
  for (const entityIds of [["entity_1"], ["entity_1", "entity_2"]]) {
    const created = await until("a webhook", () =>
      ask("POST", "/v1/webhooks", {
        url: receiver.url("/broken"),
        entityIds,
        eventKinds: ["deposit_address.created"],
        notificationEmail: "ops@example.com"
      })
    )
    ids.push(created.id)
  }
  while (writing) {
    for (const id of ids) await ask("PATCH", `/v1/webhooks/${id}`, { status: "ACTIVE" })
    await ask("POST", `/v1/webhooks/${pick(ids)}/rotate-secret`)
    await Bun.sleep(300)
  }
}

const positionOf = async (organizationId: string): Promise<number> => {
  const [row] = await app.sql("SELECT position FROM event_streams WHERE organization_id = $1", [organizationId])
  return Number(row?.["position"])
}

/** A reader of the feed: from a cursor that it got at some time, by a randomly chosen way of reading. */
class Reader {
  readonly seen: Array<string> = []
  readonly ways = { poll: 0, wait: 0, stream: 0 }
  /** The position at which it began is between these two. */
  from = 0
  until = 0
  #cursor = ""
  readonly caller = pick(callers)

  async #get(query: string, process = pick(apis)): Promise<Readonly<Record<string, unknown>> | undefined> {
    const headers = { authorization: `Bearer ${secrets.get(this.caller)}` }
    const answer = await fetch(`${process.baseUrl}/v1/event-feed?${query}`, { headers }).catch(() => undefined)
    if (answer === undefined || answer.status === 503) return undefined
    const text = await answer.text().catch(() => undefined)
    if (text === undefined) return undefined
    if (answer.status !== 200) throw new Error(`the feed answered ${answer.status}: ${text}`)
    return JSON.parse(text)
  }

  async begin(): Promise<void> {
    this.from = await positionOf(this.caller.organizationId)
    const page = await until("a cursor", async () => this.#get("from=now").catch(() => undefined))
    this.until = await positionOf(this.caller.organizationId)
    this.#cursor = String(page["resumeCursor"])
  }

  /** A page; whether there is more. */
  async #page(wait: number): Promise<boolean> {
    const page = await this.#get(`after=${this.#cursor}&limit=${1 + Math.floor(random() * 30)}&wait=${wait}`)
    if (page === undefined) return Bun.sleep(50).then(() => true)
    const { data, pagination, resumeCursor } = page as {
      readonly data: ReadonlyArray<{ readonly id: string }>
      readonly pagination: { readonly nextCursor: string | null }
      readonly resumeCursor: string
    }
    this.seen.push(...data.map(({ id }) => id))
    this.ways[wait > 0 ? "wait" : "poll"] += data.length
    this.#cursor = resumeCursor
    return pagination.nextCursor !== null
  }

  /** Reads a stream for a while, and continues from its last cursor. */
  async #stream(millis: number): Promise<void> {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), millis)
    try {
      const response = await fetch(`${pick(apis).baseUrl}/v1/event-feed/stream`, {
        headers: { authorization: `Bearer ${secrets.get(this.caller)}`, "last-event-id": this.#cursor },
        signal: abort.signal
      })
      if (response.status !== 200) return await Bun.sleep(50)
      const decoder = new TextDecoder()
      let text = ""
      for await (const chunk of response.body ?? []) {
        const blocks = (text + decoder.decode(chunk, { stream: true })).split("\n\n")
        text = blocks.pop() ?? ""
        for (const block of blocks) {
          const [, place = ""] = /^(?:id: |: at )(\S+)$/m.exec(block) ?? []
          const [, data] = /^data: (.*)$/m.exec(block) ?? []
          if (data !== undefined) {
            this.seen.push(JSON.parse(data).id)
            this.ways.stream++
          }
          this.#cursor = place
        }
      }
    } catch {
      // The reader stopped, or the process was killed.
    } finally {
      clearTimeout(timer)
    }
  }

  async read(): Promise<void> {
    while (recording) {
      const way = random()
      if (way < 0.3) await this.#page(0).then((more) => (more ? undefined : Bun.sleep(random() * 200)))
      else if (way < 0.6) await this.#page(1)
      else await this.#stream(random() * 1_500)
    }
    // Then the rest.
    while (await this.#page(0));
  }
}

test(
  "every reader gets each visible event after its cursor once, in one order",
  async () => {
    const keeping = Array.from({ length: APIS }, (_, index) => keepApi(index))
    await until("the processes", () => apis.filter(Boolean).length === APIS)
    const workers = Promise.all(Array.from({ length: WORKERS }, () => app.start(["worker", "dispatcher"])))
    const readers = Array.from({ length: READERS }, () => new Reader())
    const begun = readers.map(async (reader, index) => {
      await Bun.sleep((index / READERS) * (long ? 60_000 : 3_000))
      await reader.begin()
      await reader.read()
    })
    const writers = Array.from({ length: WRITERS }, (_, index) => keepWriting(index + 1))
    const webhooks = keepWebhooks()
    await workers
    const count = async (kind: string) =>
      Number((await app.sql("SELECT count(*)::int AS count FROM events WHERE kind = $1", [kind]))[0]?.["count"])
    await until("the kills", () => killed >= KILLS, long ? 900 : 240)
    await until("events of webhooks", async () => (await count("webhook.disabled")) > 1 && (await count("webhook.secret_rotated")) > 1)
    // The last killed process is replaced, and every reader has begun.
    await until("the last processes", () => apis.every(({ child }) => child.signalCode === null))
    await until("events enough", async () => Number((await app.sql("SELECT count(*)::int AS count FROM events"))[0]?.["count"]) > 150)
    writing = false
    const batches = (await Promise.all(writers)).reduce((sum, one) => sum + one, 0)
    await Promise.all([webhooks, ...keeping])
    await Promise.all((await workers).map((worker) => worker.end()))
    recording = false
    await Promise.all(begun)

    const events = (
      await app.sql(`SELECT id, organization_id AS "organizationId", entity_id AS "entityId", vault_id AS "vaultId", kind, audience,
        position::int AS position FROM events ORDER BY organization_id, position`)
    ).map((row) => row as unknown as EventRow)
    const ways = { poll: 0, wait: 0, stream: 0 }
    for (const { caller, from, seen, until, ways: own } of readers) {
      const visible = events.filter((event) => sees(caller, event))
      // It began between the two positions: events in between may or may not be included.
      const sure = visible.filter(({ position }) => position > until).map(({ id }) => id)
      const early = seen.slice(0, Math.max(0, seen.length - sure.length))
      const maybe = visible.filter(({ position }) => position > from && position <= until).map(({ id }) => id)
      expect([caller.user, seen]).toEqual([caller.user, [...early, ...sure]])
      expect([caller.user, early]).toEqual([caller.user, early.length === 0 ? [] : maybe.slice(-early.length)])
      for (const way of ["poll", "wait", "stream"] as const) ways[way] += own[way]
    }
    const figures = { events: events.length, batches, kills: killed, ...ways }
    report("event feed", figures)
    for (const way of ["poll", "wait", "stream"] as const) expect([way, ways[way] > 0]).toEqual([way, true])
    expect(events.length).toBeGreaterThan(100)
    // Positions have no gaps, so no reader waits for one that never comes.
    for (const id of ["org_a", "org_b"]) {
      const positions = events.filter(({ organizationId }) => organizationId === id).map(({ position }) => position)
      expect(positions).toEqual(Array.from({ length: positions.length }, (_, index) => index + 1))
    }
  },
  long ? 1_200_000 : 600_000
)
