/** The typed client that Effect derives from the contract: what the service answers decodes by the contract's own schemas. */
import { beforeAll, expect, test } from "bun:test"
import { Effect, Either } from "effect"
import { clientOf, useApi } from "../support/api.ts"
import { smallest, transaction } from "../support/records.ts"

const app = useApi()
const VAULT = { vaultId: "vault_a" }
let key = ""

beforeAll(async () => {
  await app.feed([...smallest(), transaction("vault_a", 1), transaction("vault_a", 2)])
  key = (await app.key("user_a")).secret
})

/** Runs a call of the typed client with the key. */
const call = <A, E>(use: (client: Effect.Effect.Success<ReturnType<typeof clientOf>>) => Effect.Effect<A, E>) =>
  Effect.runPromise(Effect.flatMap(clientOf(app, key), use))

/** What no operation here takes. */
const none = { urlParams: {} }

const transactions = (cursor: string | undefined) =>
  call(({ vaults }) => vaults.listTransactions({ path: VAULT, urlParams: { limit: 1, ...(cursor === undefined ? {} : { cursor }) } }))

test("lists decode, and their cursors lead through all pages", async () => {
  const first = await transactions(undefined)
  const second = await transactions(first.pagination.nextCursor ?? "")
  expect(new Set([...first.data, ...second.data].map(({ hash }) => hash)).size).toBe(2)
  expect(second.pagination.nextCursor).toBeNull()
})

test("a webhook decodes when created and read, and once deleted it is a 404", async () => {
  const payload = {
    url: "https://hooks.example.com/custody",
    description: "typed",
    eventKinds: ["transaction.confirmed"],
    entityIds: ["entity_a"],
    vaultIds: null,
    status: "DISABLED",
    notificationEmail: "custody@example.com",
    headers: []
  } as const
  const created = await call(({ webhooks }) => webhooks.createWebhook({ payload, headers: {}, ...none }))
  const path = { webhookId: created.id }
  expect(await call(({ webhooks }) => webhooks.getWebhook({ path, ...none }))).toMatchObject({ description: "typed" })
  await call(({ webhooks }) => webhooks.deleteWebhook({ path, ...none }))
  const gone = await call(({ webhooks }) => Effect.either(webhooks.getWebhook({ path, ...none })))
  expect(Either.isLeft(gone) && gone.left).toMatchObject({ _tag: "Problem", code: "not_found" })
})
