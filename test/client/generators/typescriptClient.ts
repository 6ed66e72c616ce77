/** A client of openapi-typescript, made into `schema.d.ts`, and openapi-fetch. */
import createClient from "openapi-fetch"
import type { components, paths } from "./schema.d.ts"

const { API_KEY = "", BASE_URL = "", LATER_URL = "", WEBHOOK_ID = "", WEBHOOK_URL = "" } = process.env
const of = (baseUrl: string) => createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${API_KEY}` } })
const client = of(BASE_URL)
const later = of(LATER_URL)

const found = <A>(answer: { readonly data?: A; readonly error?: components["schemas"]["Problem"] }): A => {
  if (answer.data === undefined) throw new Error(answer.error?.detail)
  return answer.data
}

const vaults = found(await client.GET("/v1/vaults")).data
const vaultId = vaults[0]?.id ?? ""
const transactions: Array<components["schemas"]["Transaction"]> = []
for (let cursor: string | null | undefined; cursor !== null; ) {
  const query = { limit: 100, status: "confirmed", ...(cursor === undefined ? {} : { cursor }) } as const
  const page = found(await client.GET("/v1/vaults/{vaultId}/transactions", { params: { path: { vaultId }, query } }))
  transactions.push(...page.data)
  cursor = page.pagination.nextCursor
}
const body: components["schemas"]["CreateWebhook"] = {
  url: WEBHOOK_URL,
  entityIds: ["entity_a"],
  eventKinds: ["vault.updated"],
  notificationEmail: "ops@example.com"
}
const webhook = found(await client.POST("/v1/webhooks", { body }))
const deliveries = found(await client.GET("/v1/webhooks/{webhookId}/deliveries", { params: { path: { webhookId: WEBHOOK_ID } } })).data
const absent = { params: { path: { vaultId: "vault_absent" } } }
const { error } = await client.GET("/v1/vaults/{vaultId}", absent)
const [unknown] = found(await later.GET("/v1/vaults/{vaultId}/transactions", { params: { path: { vaultId } } })).data
const gone = (await later.GET("/v1/vaults/{vaultId}", absent)).error
// @ts-expect-error A request has no status that the service does not know.
if (vaults.length > 1) await client.POST("/v1/webhooks", { body: { ...body, status: "SNOOZED" } })

console.log(
  JSON.stringify({
    vaults: vaults.map(({ label }) => label),
    transactions: new Set(transactions.map(({ hash }) => hash)).size,
    webhook: [webhook.status, webhook.secret.slice(0, 6), webhook.disabledReason],
    deliveries: deliveries.map(({ attempts, nextAttemptAt, status }) => [status, attempts[0]?.httpStatus, nextAttemptAt]),
    error: [error?.status, error?.code],
    later: [unknown?.status, unknown?.amount, gone?.code]
  })
)
