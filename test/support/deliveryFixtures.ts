/** Shared steps of delivery tests: a separate entity per webhook, and an event for it. */
import type { Answer, App, Record } from "./app.ts"
import { until } from "./receiver.ts"
import { asset, entity, network, organization, transaction, user, vault } from "./records.ts"

/** An organization with this many entities, `entity_0` and so on, each with one vault, `vault_0` and so on, and their owner. */
export const world = (entities: number): ReadonlyArray<Record> => {
  const numbers = Array.from({ length: entities }, (_, number) => number)
  return [
    network("ethereum"),
    asset("ethereum/native", { symbol: "ETH", name: "Ether" }),
    organization("org_a", ["ethereum"]),
    ...numbers.flatMap((number) => [entity(`entity_${number}`, "org_a"), vault(`vault_${number}`, `entity_${number}`)]),
    user(
      "user_a",
      "org_a",
      numbers.map((number) => `vault_${number}`),
      { organizationRole: "owner" }
    )
  ]
}

/** Feeds these organizations, without events, and returns their owner's key. */
export const feedOrganization = async (app: App, entities: number): Promise<string> => {
  await app.feed(world(entities), { "x-record-events": "none" })
  return (await app.key("user_a")).secret
}

/** Feeds another organization with an entity, a vault and an owner (`org_b`, `entity_b`, `vault_b`, `user_b`), without events, and returns its owner's key. */
export const feedOtherOrganization = async (app: App): Promise<string> => {
  await app.feed(
    [
      organization("org_b", ["ethereum"]),
      entity("entity_b", "org_b"),
      vault("vault_b", "entity_b"),
      user("user_b", "org_b", ["vault_b"], { organizationRole: "owner" })
    ],
    { "x-record-events": "none" }
  )
  return (await app.key("user_b")).secret
}

/** A webhook for the confirmed transactions of an entity; fails the test if it is rejected. */
export const webhookOf = async (
  app: App,
  key: string,
  number: number,
  url: string,
  more: { readonly [field: string]: unknown } = {}
): Promise<Answer["json"]> => {
  const answer = await app.request("POST", "/v1/webhooks", {
    key,
    body: {
      url,
      entityIds: [`entity_${number}`],
      eventKinds: ["transaction.confirmed"],
      notificationEmail: "ops@example.com",
      ...more
    }
  })
  if (answer.status !== 201) throw new Error(`the webhook was refused: ${answer.text}`)
  return answer.json
}

let hashes = 0

/** One confirmed transaction for each of the entities, fed at once. */
export const feedTransactions = (app: App, numbers: ReadonlyArray<number>) =>
  app.feed(numbers.map((number) => transaction(`vault_${number}`, ++hashes)))

/** The deliveries of a webhook, newest first. */
export const deliveriesOf = async (app: App, key: string, webhookId: string): Promise<Array<Answer["json"]>> =>
  (await app.get(`/v1/webhooks/${webhookId}/deliveries?limit=500`, key)).json.data

/** The newest delivery of a webhook, once it satisfies the condition. */
export const deliveryWhen = (
  app: App,
  key: string,
  webhookId: string,
  wanted: (delivery: Answer["json"]) => boolean,
  seconds?: number
): Promise<Answer["json"]> =>
  until(
    `the delivery of ${webhookId}`,
    async () => {
      const [delivery] = await deliveriesOf(app, key, webhookId)
      return delivery !== undefined && wanted(delivery) ? delivery : undefined
    },
    seconds
  )

/** CPU time of a process so far, user and system, in ms. */
export const cpuOf = async (pid: number): Promise<number> => {
  const stat = await Bun.file(`/proc/${pid}/stat`).text()
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  // Clock ticks of 10 ms.
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Memory of a process that is in RAM, in MB. */
export const rssOf = async (pid: number): Promise<number> =>
  Number(/VmRSS:\s+(\d+) kB/.exec(await Bun.file(`/proc/${pid}/status`).text())?.[1] ?? 0) / 1_024
