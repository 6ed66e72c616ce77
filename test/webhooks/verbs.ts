/** What tests of webhooks do again and again. */
import type { Answer, App } from "../support/app.ts"

type Fields = { readonly [field: string]: unknown }

/** A body that creates a webhook over `entity_a`, everything that a test does not care about filled in. */
export const fields = (more: Fields = {}): Fields => ({
  url: "https://hooks.example.com/custody",
  entityIds: ["entity_a"],
  eventKinds: ["transaction.confirmed"],
  notificationEmail: "ops@example.com",
  ...more
})

/** One request that creates a webhook, whatever its answer. */
export const tryCreate = (app: App, key: string, more: Fields = {}, headers: { readonly [name: string]: string } = {}): Promise<Answer> =>
  app.request("POST", "/v1/webhooks", { key, body: fields(more), headers })

/** A new webhook as its creation answered it; fails the test when it was refused. */
export const create = async (app: App, key: string, more: Fields = {}): Promise<Answer["json"]> => {
  const answer = await tryCreate(app, key, more)
  if (answer.status !== 201) throw new Error(`the webhook was refused: ${answer.text}`)
  return answer.json
}

/** A merge patch of a webhook, whatever its answer. */
export const patch = (app: App, key: string, id: string, body: unknown): Promise<Answer> =>
  app.request("PATCH", `/v1/webhooks/${id}`, { key, body })

/** An answer in short: its status, and the code of a problem. */
export const short = ({ json, status }: Answer): string => (status < 300 ? String(status) : `${status} ${json?.code}`)
