/** Shared steps of webhook tests. */
import { beforeAll } from "bun:test"
import type { Answer, App } from "./app.ts"
import { entity, organization, smallest, user, vault } from "./records.ts"

type Fields = { readonly [field: string]: unknown }

/** A body that creates a webhook over `entity_a`, everything that a test does not care about filled in. */
export const fields = (more: Fields = {}): Fields => ({
  url: "https://hooks.example.com/custody",
  entityIds: ["entity_a"],
  eventKinds: ["transaction.confirmed"],
  notificationEmail: "ops@example.com",
  ...more
})

/** One request that creates a webhook, whatever its response. */
export const tryCreate = (app: App, key: string, more: Fields = {}, headers: { readonly [name: string]: string } = {}): Promise<Answer> =>
  app.request("POST", "/v1/webhooks", { key, body: fields(more), headers })

/** A new webhook, as returned by its creation; fails the test if it was refused. */
export const create = async (app: App, key: string, more: Fields = {}): Promise<Answer["json"]> => {
  const answer = await tryCreate(app, key, more)
  if (answer.status !== 201) throw new Error(`the webhook was refused: ${answer.text}`)
  return answer.json
}

/** A merge patch of a webhook, whatever its response. */
export const patch = (app: App, key: string, id: string, body: unknown): Promise<Answer> =>
  app.request("PATCH", `/v1/webhooks/${id}`, { key, body })

/** A response in short: its status, and the code of a problem. */
export const short = ({ json, status }: Answer): string => (status < 300 ? String(status) : `${status} ${json?.code}`)

/** The fields at fault with their codes, sorted. */
export const issues = ({ json }: Answer): ReadonlyArray<string> =>
  (json.errors ?? []).map(({ code, field }: { code: string; field: string }) => `${field} ${code}`).sort()

/**
 * Two entities with three vaults, an owner, a member, a stranger of another organization, and their keys; filled in
 * before the tests of the file that calls this.
 */
export const useKeys = (app: App) => {
  const keys = {
    /** Everything, as the owner. */
    owner: "",
    /** The owner, to read only. */
    reader: "",
    /** The owner, to manage without reading. */
    manager: "",
    /** The owner, limited to `vault_a`. */
    limited: "",
    /** A member with the Developer role on `vault_a`. */
    member: "",
    /** The owner of another organization. */
    stranger: ""
  }
  beforeAll(async () => {
    await app.feed(
      [
        ...smallest(),
        entity("entity_b", "org_a"),
        vault("vault_a2", "entity_a"),
        vault("vault_b", "entity_b"),
        user("user_a", "org_a", ["vault_a", "vault_a2", "vault_b"], { organizationRole: "owner" }),
        user("user_m", "org_a", ["vault_a"]),
        organization("org_z", ["ethereum"]),
        entity("entity_z", "org_z"),
        vault("vault_z", "entity_z"),
        user("user_z", "org_z", ["vault_z"], { organizationRole: "owner" })
      ],
      { "x-record-events": "none" }
    )
    keys.owner = (await app.key("user_a")).secret
    keys.reader = (await app.key("user_a", { scopes: ["webhook:read"] })).secret
    keys.manager = (await app.key("user_a", { scopes: ["webhook:manage"] })).secret
    keys.limited = (await app.key("user_a", { vaultIds: ["vault_a"] })).secret
    keys.member = (await app.key("user_m")).secret
    keys.stranger = (await app.key("user_z")).secret
  })
  return keys
}
