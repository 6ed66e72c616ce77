/**
 * What a consumer of the package writes, with its own compiler settings and no library but the client. Compiled and run
 * by consumer.test.ts; lines that must not compile say so.
 */
import {
  type CustodyClient,
  createClient,
  isCustodyError,
  isErrorOf,
  NoAnswerError,
  type ReceivedEvent,
  SignatureError,
  type Transaction,
  verifySignature,
  type WebhookWithHealth
} from "custody-data-client"

/** Whether two types are one and the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(_: Same<A, B>) => {}

const custody: CustodyClient = createClient({
  baseUrl: process.env["CUSTODY_URL"] ?? "",
  apiKey: process.env["CUSTODY_API_KEY"] ?? "",
  fetch: (request) => fetch(request)
})

export const reads = async (vaultId: string) => {
  const vault = await custody.getVault(vaultId)
  same<typeof vault.networks, ReadonlyArray<string>>(true)
  const all: Array<Transaction> = []
  for await (const transaction of custody.listTransactions(vaultId, { status: "confirmed", limit: 2 })) all.push(transaction)
  const page = await custody.listTransactions(vaultId)
  same<typeof page.pagination.nextCursor, string | null>(true)
  for await (const { data } of custody.listWebhooks().pages()) same<(typeof data)[number]["status"], "ACTIVE" | "PAUSED" | "DISABLED">(true)
  return all
}

export const manages = async () => {
  const { id, secret } = await custody.createWebhook({
    url: "https://hooks.example.com/",
    entityIds: ["entity_a"],
    eventKinds: ["transaction.confirmed", "vault.created"],
    notificationEmail: "ops@example.com"
  })
  const webhook: WebhookWithHealth = await custody.getWebhook(id)
  same<typeof webhook.health.state, "HEALTHY" | "DEGRADED" | "FAILING" | "HOLDING">(true)
  const gone = await custody.deleteWebhook(id)
  same<typeof gone, void>(true)
  return secret
}

/** The code that a call was refused with, in the words that a switch over the operation's codes has. */
export const refusals = async (): Promise<string> => {
  try {
    await custody.getVault("vault_absent")
    return "found"
  } catch (error) {
    if (error instanceof NoAnswerError) return error.reason
    if (!isErrorOf(error, "getVault")) throw error
    switch (error.code) {
      case "not_found":
        return `not found: ${error.requestId === "" ? "" : error.detail}`
      case "rate_limited":
        return `in ${error.retryAfter} s`
      // @ts-expect-error reading a vault is never refused for this
      case "webhook_limit_reached":
        return ""
      default:
        same<Extract<typeof error.code, "invalid_api_key">, "invalid_api_key">(true)
        return isCustodyError(error, "expired_api_key") ? error.title : error.code
    }
  }
}

export const receives = async (body: string, headers: Record<string, string | string[] | undefined>, secret: string): Promise<string> => {
  try {
    const event: ReceivedEvent = await verifySignature(body, headers, [secret], { tolerance: 60 })
    switch (event.kind) {
      case "transaction.confirmed":
        same<typeof event.vaultIds, ReadonlyArray<string>>(true)
        return event.data.transaction.amount
      case "webhook.disabled":
        same<typeof event.vaultIds, null>(true)
        return event.data.webhook.disabledReason
      default:
        return event.kind
    }
  } catch (error) {
    if (error instanceof SignatureError) return error.reason
    throw error
  }
}

/** What must not compile; never called. */
export const wrong = async (vaultId: string, id: string) => {
  // @ts-expect-error nothing is verified before it is awaited
  console.log(verifySignature("{}", {}, id).kind)
  const { data } = await custody.listTransactions(vaultId)
  const webhook = await custody.getWebhook(id)
  // @ts-expect-error a status that no transaction has
  custody.listTransactions(vaultId, { status: "settled" })
  // @ts-expect-error a filter that the list does not have
  custody.listVaults({ network: "ethereum" })
  // @ts-expect-error which vault
  custody.listBalances()
  // @ts-expect-error amounts are decimal strings, never numbers
  data[0]?.amount.toFixed(2)
  // @ts-expect-error the secret is answered once, at creation
  console.log(webhook.secret)
  // @ts-expect-error no such kind
  await custody.updateWebhook(id, { eventKinds: ["*"] })
  // @ts-expect-error the entities of a webhook do not change
  await custody.updateWebhook(id, { entityIds: ["entity_b"] })
}

const transactions = await reads("vault_a")
const secret = await manages()
console.log(
  JSON.stringify({
    transactions: transactions.length,
    secret: secret.startsWith("whsec_"),
    refused: await refusals(),
    received: await receives("{}", {}, secret)
  })
)
