/** Thousands of webhooks, made through the API: organizations of a few entities each, and as many webhooks as an entity may have. */
import type { App } from "./app.ts"
import { asset, entity, network, organization, transaction, user, vault } from "./records.ts"

/** Active and paused webhooks that one entity may have. */
export const PER_ENTITY = 20
/** Entities of an organization: requests of one organization run a few at a time. */
const ENTITIES = 10
/** Requests in flight. */
const AT_ONCE = 12

/** A webhook, and the vault whose transactions it gets. */
export interface OneOfMany {
  readonly id: string
  readonly vaultId: string
  readonly key: string
}

/** Runs a function for each of these, a few at a time. */
export const eachOf = async <A>(all: ReadonlyArray<A>, run: (one: A, index: number) => Promise<void>): Promise<void> => {
  const rest = all.entries()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [index, one] of rest) await run(one, index)
    })
  )
}

/**
 * Feeds organizations, named by `name`, and makes this many webhooks for the confirmed transactions of their vaults; webhooks
 * beside each other in the list belong to different organizations.
 */
export const manyWebhooks = async (
  app: App,
  name: string,
  count: number,
  urlOf: (number: number) => string,
  more: { readonly [field: string]: unknown } = {}
): Promise<ReadonlyArray<OneOfMany>> => {
  const organizations = Array.from({ length: Math.ceil(count / PER_ENTITY / ENTITIES) }, (_, number) => {
    const entities = Array.from({ length: ENTITIES }, (_, one) => `${name}_${number}_${one}`)
    return { id: `${name}_${number}`, entities }
  })
  await app.feed(
    [
      network("ethereum"),
      asset("ethereum/native", { symbol: "ETH", name: "Ether" }),
      ...organizations.flatMap(({ entities, id }) => [
        organization(`org_${id}`, ["ethereum"]),
        ...entities.flatMap((one) => [entity(`entity_${one}`, `org_${id}`), vault(`vault_${one}`, `entity_${one}`)]),
        user(
          `user_${id}`,
          `org_${id}`,
          entities.map((one) => `vault_${one}`),
          { organizationRole: "owner" }
        )
      ])
    ],
    { "x-record-events": "none" }
  )
  const keys = await Promise.all(organizations.map(async ({ id }) => (await app.key(`user_${id}`)).secret))
  const made: Array<OneOfMany> = []
  await eachOf(Array.from({ length: count }), async (_, index) => {
    const number = index % organizations.length
    const one = organizations[number]?.entities[Math.floor(index / organizations.length) % ENTITIES] ?? ""
    const key = keys[number] ?? ""
    const answer = await app.request("POST", "/v1/webhooks", {
      key,
      body: {
        url: urlOf(index),
        entityIds: [`entity_${one}`],
        eventKinds: ["transaction.confirmed"],
        notificationEmail: "ops@example.com",
        ...more
      }
    })
    if (answer.status !== 201) throw new Error(`the webhook was refused: ${answer.text}`)
    made.push({ id: answer.json.id, vaultId: `vault_${one}`, key })
  })
  return made
}

let hashes = 2_000_000

/** Feeds this many confirmed transactions of each of the webhooks' vaults: each webhook gets as many deliveries. */
export const feedEach = (app: App, webhooks: ReadonlyArray<OneOfMany>, count = 1) => {
  const vaults = [...new Set(webhooks.map(({ vaultId }) => vaultId))]
  return app.feed(Array.from({ length: count }, () => vaults.map((vaultId) => transaction(vaultId, ++hashes))).flat())
}

/** How many deliveries there are by status. */
export const statusesOf = async (app: App): Promise<{ readonly [status: string]: number }> =>
  Object.fromEntries(
    (await app.sql("SELECT status, count(*)::int AS count FROM deliveries GROUP BY status")).map(({ count, status }) => [
      String(status),
      Number(count)
    ])
  )
