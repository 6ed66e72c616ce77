/**
 * No answer that the OpenAPI document does not describe: every operation, with every media type that it has and with every
 * error that a request can cause. Status, media type, codes, and every field of every body.
 */
import { beforeAll, expect, test } from "bun:test"
import { type Answer, cli, useApp } from "../support/app.ts"
import { isNode, type Json, list, misfits, type Node, node, referent } from "../support/jsonSchema.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { address, balance, smallest, transaction, user } from "../support/records.ts"
import { fields } from "../support/webhookFixtures.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), STATEMENT_DELAY: "0s", STATEMENT_HISTORY: "7d" }))

/** The document, with no fields in bodies beyond those that it names. */
let document: Node = {}
const keys = { owner: "", member: "", reader: "", vaultReader: "", limited: "", elsewhere: "" }
const ids = { vaultId: "vault_a", transactionId: "", webhookId: "", eventId: "", deliveryId: "", recoveryId: "", date: "" }

const exactly = (value: Json): Json =>
  Array.isArray(value)
    ? value.map(exactly)
    : isNode(value)
      ? {
          ...Object.fromEntries(Object.entries(value).map(([name, one]) => [name, exactly(one)])),
          ...(value["type"] === "object" && isNode(value["properties"]) ? { additionalProperties: false } : {})
        }
      : value

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    user("user_m", "org_a", ["vault_a"]),
    transaction("vault_a", 1),
    balance("vault_a", "ethereum/native", "1.5"),
    address("vault_a", "a")
  ])
  keys.owner = (await app.key("user_a")).secret
  keys.member = (await app.key("user_m")).secret
  keys.reader = (await app.key("user_a", { scopes: ["webhook:read"] })).secret
  keys.vaultReader = (await app.key("user_a", { scopes: ["vault:read"] })).secret
  keys.limited = (await app.key("user_a", { vaultIds: ["vault_a"] })).secret
  keys.elsewhere = (await app.key("user_a", { ipAllowlist: ["203.0.113.0/24"] })).secret
  document = node(exactly((await app.get("/v1/openapi.json")).json))
  const created = await app.request("POST", "/v1/webhooks", { key: keys.owner, body: fields({ url: receiver.url("/a") }) })
  ids.webhookId = created.json.id
  await app.feed([transaction("vault_a", 9)])
  const delivery = await until("a delivery", async () => {
    const [found] = (await app.get(`/v1/webhooks/${ids.webhookId}/deliveries`, keys.owner)).json.data
    return found?.status === "DELIVERED" ? found : undefined
  })
  ids.deliveryId = delivery.id
  ids.eventId = delivery.eventId
  // While it is paused, the recovery of the transaction from before it existed does not end.
  await app.request("PATCH", `/v1/webhooks/${ids.webhookId}`, { key: keys.owner, body: { status: "PAUSED" } })
  const sealed = await cli(["statements", "seal"], app.env)
  expect([sealed.code, sealed.stderr]).toEqual([0, ""])
  ids.transactionId = (await app.get("/v1/vaults/vault_a/transactions", keys.owner)).json.data[0].id
  ids.date = (await app.get("/v1/vaults/vault_a/statements", keys.owner)).json.data[0].date
})

interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly value: Node
}
const operations = (): ReadonlyArray<Operation> =>
  Object.entries(node(document["paths"])).flatMap(([path, item]) =>
    Object.entries(node(item)).map(([method, one]) => ({
      id: String(node(one)["operationId"]),
      method: method.toUpperCase(),
      path,
      value: node(one)
    }))
  )
/** What the walk got, as `operation status media type`. */
const seen = new Set<string>()

/** Checks an answer against its operation. */
const described = ({ id, value }: Operation, answer: Answer): void => {
  const response = referent(node(value["responses"])[String(answer.status)], document)
  const type = answer.headers.get("content-type")?.split(";", 1)[0] ?? "none"
  const content = node(response["content"])
  const media = node(content[type])
  const isDescribed = Object.keys(content).length === 0 ? type === "none" : Object.hasOwn(content, type)
  expect([id, answer.status, type, isDescribed]).toEqual([id, answer.status, type, true])
  const body: Json = type.endsWith("json") && type !== "application/x-ndjson" ? answer.json : answer.text
  if (type !== "none") expect([id, answer.status, misfits(media["schema"] ?? {}, body, document)]).toEqual([id, answer.status, []])
  if (answer.status >= 300) expect([id, Object.keys(node(media["examples"]))]).toEqual([id, expect.arrayContaining([answer.json.code])])
  for (const name of Object.keys(node(response["headers"])).filter((header) => !/^(RateLimit|X-Key)/.test(header)))
    expect([id, answer.status, name, answer.headers.has(name)]).toEqual([id, answer.status, name, true])
  seen.add(`${id} ${answer.status} ${type}`)
}

/** Parameters without which an operation refuses a request. */
const needed = (): { readonly [id: string]: string } => ({
  listBalanceHistory: "asset=ethereum/native",
  exportTransactions: "format=csv",
  exportAllTransactions: "format=csv",
  listEventCheckpoints: "entityId=entity_a",
  getLatestEventCheckpoint: "entityId=entity_a",
  getStatementSummary: `from=${ids.date}&to=${ids.date}`
})
const bodies: { readonly [id: string]: () => unknown } = {
  createWebhook: () => fields(),
  previewWebhook: () => ({ entityIds: ["entity_a"], eventKinds: ["transaction.confirmed"] }),
  updateWebhook: () => ({ description: "walked" }),
  createRecovery: () => ({ since: new Date(Date.now() - 3_600_000).toISOString() })
}

/** What distinguishes a request from one that succeeds. */
interface Change {
  readonly key?: string | undefined
  /** A further parameter. */
  readonly query?: string
  /** The parameters that the operation needs, in other words. */
  readonly needed?: string
  readonly headers?: { readonly [name: string]: string }
  readonly body?: unknown
  readonly raw?: string
  /** Whether its ids name nothing. */
  readonly absent?: boolean
}

/** Sends a request and checks that its answer is described. */
const send = async (one: Operation, more: Change = {}): Promise<Answer> => {
  const path = one.path.replaceAll(/\{(\w+)\}/g, (_, name: keyof typeof ids) => (more.absent === true ? "absent" : ids[name]))
  const query = [more.needed ?? needed()[one.id], more.query].filter((part) => part !== undefined).join("&")
  const key = "key" in more ? more.key : keys.owner
  const body = "body" in more ? more.body : bodies[one.id]?.()
  const answer = await app.request(one.method, `${path}${query === "" ? "" : `?${query}`}`, {
    ...(key === undefined ? {} : { key }),
    ...(more.raw !== undefined ? { raw: more.raw } : body === undefined ? {} : { body }),
    ...(more.headers === undefined ? {} : { headers: more.headers })
  })
  described(one, answer)
  return answer
}

/** The operations in an order in which each succeeds. */
const inOrder = (): ReadonlyArray<Operation> => {
  const last = ["createRecovery", "getRecovery", "pauseRecovery", "resumeRecovery", "cancelRecovery", "deleteWebhook"]
  return [...operations()].sort((a, b) => last.indexOf(a.id) - last.indexOf(b.id))
}

test("every error that a request can cause is described", async () => {
  for (const one of operations()) {
    const isOpen = list(one.value["security"]).length === 0
    const has = (status: number) => node(one.value["responses"])[String(status)] !== undefined
    const got = async (status: number, more: Change) =>
      expect([one.id, more, (await send(one, more)).status]).toEqual([one.id, more, status])
    await got(400, { query: "nonsense=1" })
    await got(414, { query: `nonsense=${"x".repeat(8_200)}` })
    if (isOpen) continue
    await got(401, { key: undefined })
    await got(401, { key: "nonsense" })
    await got(403, { key: keys.elsewhere })
    await got(406, { headers: { accept: "text/html" } })
    if (one.path.includes("{")) await got(404, { absent: true })
    const others = one.method === "GET" ? [keys.vaultReader, keys.limited] : [keys.vaultReader, keys.reader, keys.member]
    // Some of them succeed.
    for (const key of others) await send(one, { key })
    if (bodies[one.id] !== undefined) {
      await got(400, { raw: "{", headers: { "content-type": "application/json" } })
      await got(400, { body: { nonsense: 1 } })
      await got(415, { raw: "{}", headers: { "content-type": "text/plain" } })
      await got(413, { raw: `{"a":"${"x".repeat(70_000)}"}`, headers: { "content-type": "application/json" } })
    }
    if (list(one.value["parameters"]).some((parameter) => node(parameter)["name"] === "idempotency-key"))
      await got(400, { headers: { "idempotency-key": "not printable" } })
    if (list(one.value["parameters"]).some((parameter) => node(parameter)["name"] === "cursor"))
      await got(400, { query: "cursor=nonsense" })
    expect(has(500) && has(503) && has(429)).toBe(true)
  }
})

test("every operation succeeds as described, with every media type", async () => {
  const variants: { readonly [id: string]: ReadonlyArray<Change> } = {
    exportTransactions: [{ needed: "format=csv" }, { needed: "format=ndjson" }],
    exportAllTransactions: [{ needed: "format=csv" }, { needed: "format=ndjson" }],
    getStatement: [{}, { headers: { accept: "text/csv" } }],
    listStatements: [{}, { headers: { accept: "text/csv" }, query: `from=${ids.date}&to=${ids.date}` }],
    getStatementSummary: [{}, { headers: { accept: "text/csv" } }]
  }
  for (const one of inOrder()) {
    for (const change of variants[one.id] ?? [{}]) {
      const answer = await send(one, change)
      expect([one.id, answer.status < 300 || answer.text]).toEqual([one.id, true])
      if (one.id === "createRecovery") ids.recoveryId = answer.json.id
    }
  }
  const wanted = operations().flatMap(({ id, value }) =>
    Object.entries(node(value["responses"])).flatMap(([status, response]) => {
      if (Number(status) >= 300) return []
      const types = Object.keys(node(node(response)["content"]))
      return (types.length === 0 ? ["none"] : types).map((type) => `${id} ${status} ${type}`)
    })
  )
  expect(wanted.filter((one) => !seen.has(one))).toEqual([])
})

test("the document names its service on loopback, and no host that only the request names", async () => {
  const serversOf = async (headers: { readonly [name: string]: string }) =>
    (await app.get("/v1/openapi.json", undefined, headers)).json.servers
  expect(await serversOf({})).toEqual([{ url: app.main?.baseUrl }])
  expect(await serversOf({ "x-forwarded-for": "203.0.113.7" })).toEqual([{ url: "/" }])
  expect(await serversOf({ host: "evil.example" })).toEqual([{ url: "/" }])
})
