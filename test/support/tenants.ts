/** Organizations with a row in every table that can hold one of theirs, and how two states of the whole database are compared. */
import { createHash } from "node:crypto"
import type { App } from "./app.ts"
import { deliveriesOf } from "./deliveryFixtures.ts"
import { type Receiver, until } from "./receiver.ts"
import { ALICE, address, asset, balance, entity, network, organization, transaction, user, vault } from "./records.ts"

/** Tables that organizations share, or that are of the whole service: nothing of them is deleted. */
export const sharedTables = ["assets", "networks", "catalog_version", "signing_keys", "effect_sql_migrations", "processes", "audit_log"]

/** Every table of the schema, without its partitions. */
export const tablesOf = async (app: App): Promise<ReadonlyArray<string>> =>
  (
    await app.sql(`
      SELECT t.table_name AS name FROM information_schema.tables t JOIN pg_class c ON c.oid = format('%I.%I', t.table_schema, t.table_name)::regclass
      WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND NOT c.relispartition ORDER BY 1`)
  ).map(({ name }) => String(name))

/** The rows of every table as text, sorted. */
export const contentOf = async (app: App): Promise<ReadonlyMap<string, ReadonlyArray<string>>> => {
  const content = new Map<string, ReadonlyArray<string>>()
  for (const table of await tablesOf(app)) {
    const rows = await app.sql(`SELECT t::text AS row FROM ${table} t ORDER BY 1`)
    content.set(
      table,
      rows.map(({ row }) => String(row))
    )
  }
  return content
}

let hashes = 0

/** The owner's key of an organization. */
export const ownerKey = async (app: App, name: string): Promise<string> => (await app.key(`user_${name}`)).secret

/** Records of an organization: two entities, each with a vault, and what each kind of record leaves. */
export const recordsOf = (name: string, prefix: string) => [
  organization(`org_${name}`, ["ethereum"]),
  entity(`entity_${name}`, `org_${name}`),
  entity(`entity_${name}_2`, `org_${name}`),
  vault(`vault_${name}`, `entity_${name}`),
  vault(`vault_${name}_2`, `entity_${name}_2`),
  user(`user_${name}`, `org_${name}`, [`vault_${name}`, `vault_${name}_2`], { organizationRole: "owner" }),
  user(`user_${name}_2`, `org_${name}`, [`vault_${name}_2`], { status: "deactivated" }),
  address(`vault_${name}`, ALICE, { createdAt: "2024-05-01T00:00:00.000Z" }),
  { ...balance(`vault_${name}`, "ethereum/native", "100000000000000000000.000000000000000001"), occurredAt: "2024-05-01T00:00:00.000Z" },
  { ...balance(`vault_${name}`, "ethereum/native", "7"), occurredAt: "2024-06-01T00:00:00.000Z" },
  { ...balance(`vault_${name}`, `ethereum/erc20:${prefix}`, "0.5"), occurredAt: "2024-06-01T00:00:00.000Z" }
]

/** What organizations share. */
export const shared = (tokens: ReadonlyArray<string>) => [
  network("ethereum"),
  asset("ethereum/native", { symbol: "ETH", name: "Ether" }),
  ...tokens.map((token) => asset(`ethereum/erc20:${token}`, { symbol: "TOK" }))
]

/** The paths of an organization's endpoints: one that works, one that fails, one whose webhook is paused. */
export const pathsOf = (name: string) => ({ fine: `/${name}/fine`, fails: `/${name}/fails`, paused: `/${name}/paused` })

/** A webhook of the organization's first entity. */
const webhook = async (app: App, key: string, name: string, url: string) => {
  const answer = await app.request("POST", "/v1/webhooks", {
    key,
    headers: { "idempotency-key": `${name}-${url.split("/").at(-1)}` },
    body: {
      url,
      entityIds: [`entity_${name}`],
      eventKinds: ["transaction.confirmed"],
      notificationEmail: `ops@${name}.example.com`,
      headers: [{ name: "X-Api-Key", value: `key-${name}` }]
    }
  })
  if (answer.status !== 201) throw new Error(`the webhook was refused: ${answer.text}`)
  return String(answer.json.id)
}

/** One confirmed transaction in the organization's first vault. */
export const feedTransactions = (app: App, name: string, count = 1) =>
  app.feed(Array.from({ length: count }, () => transaction(`vault_${name}`, ++hashes)))

/**
 * Feeds an organization, and drives it until it has webhooks that deliver, retry and hold, a failed delivery with its notice, a
 * ping, a redelivery, a recovery and a key. Needs every role, and a schedule of `0s,1h`.
 */
export const tenant = async (app: App, receiver: Receiver, name: string, token: string) => {
  const paths = pathsOf(name)
  receiver.on(paths.fine, () => new Response("ok"))
  receiver.on(paths.paused, () => new Response("ok"))
  receiver.on(paths.fails, () => new Response("no", { status: 500 }))
  await app.feed(recordsOf(name, token), { "idempotency-key": crypto.randomUUID() })
  await app.feed([transaction(`vault_${name}`, ++hashes, { status: "pending" })])
  await app.feed([transaction(`vault_${name}`, hashes, { status: "dropped" })])
  const key = await ownerKey(app, name)
  const [fine, fails, paused] = [
    await webhook(app, key, name, receiver.url(paths.fine)),
    await webhook(app, key, name, receiver.url(paths.fails)),
    await webhook(app, key, name, receiver.url(paths.paused))
  ]
  await app.request("PATCH", `/v1/webhooks/${paused}`, { key, body: { status: "PAUSED" } })
  await feedTransactions(app, name, 3)
  const are = (webhookId: string, status: string) =>
    until(`three deliveries as ${status}`, async () => {
      const all = await deliveriesOf(app, key, webhookId)
      return all.length === 3 && all.every((one) => one.status === status) && all
    })
  const [delivered] = await are(fine, "DELIVERED")
  const waiting = await are(fails, "RETRYING")
  await are(paused, "HELD")
  for (const [path, body] of [
    [`/v1/webhooks/${fine}/ping`],
    [`/v1/webhook-deliveries/${delivered?.id}/redeliver`],
    [`/v1/webhooks/${paused}/recoveries`, { since: new Date(Date.now() - 86_400_000).toISOString(), include: ["MISSED"] }]
  ] as const) {
    const answer = await app.request("POST", path, { key, ...(body === undefined ? {} : { body }) })
    if (answer.status >= 300) throw new Error(`${path} answered ${answer.status}: ${answer.text}`)
  }
  return { key, webhooks: { fine, fails, paused }, waiting: waiting.map(({ id }) => String(id)) }
}

/** Inserts a row into each table that the steps above leave empty. The service must be stopped. */
export const insertRemainingRows = async (app: App, name: string) => {
  const user = `user_${name}`
  const one = async (table: string, columns: { readonly [column: string]: unknown }) => {
    const names = Object.keys(columns)
    await app.sql(
      `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map((_, index) => `$${index + 1}`).join(", ")}) ON CONFLICT DO NOTHING`,
      Object.values(columns)
    )
  }
  const [webhook] = await app.sql("SELECT id FROM webhooks WHERE organization_id = $1 ORDER BY id DESC LIMIT 1", [`org_${name}`])
  const [event] = await app.sql("SELECT id, position FROM events WHERE organization_id = $1 LIMIT 1", [`org_${name}`])
  const [delivery] = await app.sql("SELECT id FROM deliveries WHERE webhook_id = $1 LIMIT 1", [webhook?.["id"]])
  const soon = new Date(Date.now() + 3_600_000),
    past = new Date(Date.now() - 60_000)
  await one("webhook_queues", { webhook_id: webhook?.["id"], live: true, due: past })
  await one("rate_buckets", { key: user, tokens: 1, granted: 0, at: past })
  await one("recent_attempts", { key: `ping/${webhook?.["id"]}`, times: [past], granted: 0, at: past })
  await one("recent_attempts", { key: `sign-in account at address/${hashOf(name)}/10.0.0.0`, times: [past], granted: 0, at: past })
  await one("portal_users", { id: user, name, email: `${user}@example.com`, email_verified: true })
  await one("portal_accounts", {
    id: `acc_${name}`,
    user_id: user,
    account_id: user,
    provider_id: "credential",
    password: "a-password-hash"
  })
  await one("portal_sessions", { id: `ses_${name}`, user_id: user, token: `a-token-${name}`, expires_at: soon, second_factor_at: past })
  await one("portal_passkeys", {
    id: `pk_${name}`,
    user_id: user,
    name: "key",
    credential_id: name,
    public_key: Buffer.from(name),
    counter: 0,
    transports: []
  })
  await one("portal_second_factors", { user_id: user, secret: Buffer.from("a-totp-secret"), backup_codes: [Buffer.from("a-backup-code")] })
  await one("portal_invitations", {
    id: `inv_${name}`,
    user_id: user,
    email: `${name}@example.com`,
    token_hash: Buffer.alloc(32, name),
    reset: false,
    expires_at: soon
  })
  await one("portal_verifications", {
    id: `ver_${name}`,
    identifier: "passkey/x",
    value: JSON.stringify(["challenge", user]),
    expires_at: soon
  })
  await one("event_outbox", {
    organization_id: `org_${name}`,
    position: -1,
    event_id: event?.["id"],
    entity_id: `entity_${name}`,
    kind: "vault.created"
  })
  await one("event_dates", { organization_id: `org_${name}`, object: `transaction vault_${name}\ntx_01`, date: past })
  await one("event_checkpoints", { entity_id: `entity_${name}`, at: past, count: 1, hash: Buffer.alloc(32), position: 1 })
  await one("commands", { key: delivery?.["id"] })
  await one("commands", { key: `drain/${webhook?.["id"]}` })
  await one("notices", {
    id: `ntc_${name}`,
    webhook_id: webhook?.["id"],
    organization_id: `org_${name}`,
    cause: name,
    recipient: "a@b.example",
    subject: "s",
    body: "b"
  })
  const [key] = await app.sql("SELECT k.id FROM api_keys k WHERE k.user_id = $1 LIMIT 1", [user])
  await one("notices", {
    id: `ntc_${name}_key`,
    key_id: key?.["id"],
    key_expires_at: soon,
    organization_id: `org_${name}`,
    cause: `${name} key`,
    recipient: "a@b.example",
    subject: "s",
    body: "b"
  })
  await one("commands", { key: `ntc_${name}_key` })
  await one("webhook_health", { webhook_id: webhook?.["id"] })
  await one("statement_chains", { vault_id: `vault_${name}`, first_date: "2024-05-01", next_date: "2024-05-02" })
  await one("statement_changes", { vault_id: `vault_${name}`, date: "2024-05-01", cause: "ethereum/native" })
  await one("statements", {
    vault_id: `vault_${name}`,
    date: "2024-05-01",
    revision: 1,
    sealed_at: past,
    hash: "0".repeat(64),
    assets: "[]",
    jws: "j"
  })
}

/** How a limit on sign-ins names an account. */
const hashOf = (name: string) => createHash("sha256").update(`user_${name}@example.com`).digest("base64url")

/** Every id that belongs to an organization, as its rows have them. */
export const idsOf = async (app: App, name: string): Promise<ReadonlyArray<string>> => {
  const organizationId = `org_${name}`
  const rows = await app.sql(
    `SELECT id FROM webhooks WHERE organization_id = $1 UNION ALL SELECT id FROM events WHERE organization_id = $1
     UNION ALL SELECT id FROM deliveries WHERE organization_id = $1 UNION ALL SELECT id FROM recoveries WHERE organization_id = $1
     UNION ALL SELECT k.id FROM api_keys k JOIN users u ON u.id = k.user_id WHERE u.organization_id = $1`,
    [organizationId]
  )
  // Every other id contains the name.
  return [name, hashOf(name), ...rows.map(({ id }) => String(id))]
}
