/** A service with an event log of any length, for `bench feed-read`: two keys that read it, and cursors into it. */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import type pg from "pg"
import { BEGINNING, seal } from "../../src/events/feed/cursor.ts"
import { sealing } from "../../src/runtime/crypto/MasterKey.ts"
import * as Partitions from "../../src/runtime/database/Partitions.ts"
import * as Id from "../../src/values/Id.ts"
import { announced, custody, database, embedded, environment, folder, start, stop } from "./servers.ts"

/** Vaults that share the events, and days over which they are spread. */
const VAULTS = 20,
  DAYS = 29
const DAY = 86_400_000
/** Of the first events, one in a hundred is in the rare vault, so that a page of it is full at every size; later, one in ten thousand. */
const FIRST = 10_000
/** Readers of other organizations, each with a key, and the organizations. */
const OTHERS = 200,
  OTHER_ORGANIZATIONS = 20

const vaultIds = Array.from({ length: VAULTS }, (_, index) => `vault_${index}`)
const vault = (id: string, entityId: string) => ({
  type: "vault",
  id,
  entityId,
  label: id,
  networks: ["ethereum"],
  createdAt: "2020-01-01T00:00:00Z"
})
const user = (id: string, organizationId: string, organizationRole: string, vaults: ReadonlyArray<string>) => ({
  type: "user",
  id,
  organizationId,
  email: `${id}@example.com`,
  name: id,
  status: "active",
  organizationRole,
  vaultRoles: vaults.map((vaultId) => ({ vaultId, role: "developer" }))
})
const organization = (id: string, entityId: string) => [
  { type: "organization", id, name: id, networks: ["ethereum"] },
  { type: "entity", id: entityId, organizationId: id, name: entityId }
]
const records = [
  { type: "network", name: "ethereum", kind: "mainnet" },
  { type: "asset", id: "ethereum/native", symbol: "ETH", name: "Ether", decimals: 18, network: "ethereum" },
  ...organization("org_bench", "entity_bench"),
  ...[...vaultIds, "vault_rare", "vault_empty"].map((id) => vault(id, "entity_bench")),
  user("user_owner", "org_bench", "owner", [...vaultIds, "vault_rare", "vault_empty"]),
  user("user_rare", "org_bench", "member", ["vault_rare"]),
  user("user_empty", "org_bench", "member", ["vault_empty"]),
  ...Array.from({ length: OTHER_ORGANIZATIONS }, (_, index) => [
    ...organization(`org_${index}`, `entity_${index}`),
    vault(`vault_of_${index}`, `entity_${index}`)
  ]).flat(),
  ...Array.from({ length: OTHERS }, (_, index) =>
    user(`user_${index}`, `org_${index % OTHER_ORGANIZATIONS}`, "owner", [`vault_of_${index % OTHER_ORGANIZATIONS}`])
  )
]

/** The id of the event `n` that was recorded at `at`: ids ascend with positions. */
const idFunction = `
  CREATE FUNCTION bench_id(at timestamptz, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'evt_' || ${Array.from({ length: 10 }, (_, place) => `substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((ms >> ${5 * (9 - place)}) & 31)::int, 1)`).join(" || ")}
      || 'e' || lpad(to_hex(n), 15, '0') FROM (SELECT floor(extract(epoch FROM at) * 1000)::bigint AS ms) t $$`

const makePartitions = async (client: pg.Client, today: number) => {
  for (let day = today - DAYS - 1; day < today - 1; day++) {
    for (const [table, prefix] of Partitions.tables) {
      const range = [day, day + 1].map((bound) => `'${Id.floor(prefix, bound * DAY)}'`)
      await client.query(
        `CREATE TABLE ${Partitions.nameOf(table, day)} PARTITION OF ${table} FOR VALUES FROM (${range[0]}) TO (${range[1]})`
      )
    }
  }
}

/** Writes events 1 to `count` as the ledger would. Indexes are made afterwards, which takes a fraction of the time. */
const seed = async (client: pg.Client, count: number, from: number) => {
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
     WHERE i.indrelid = 'events'::regclass AND NOT i.indisprimary`
  )
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`)
  const step = (DAYS * DAY - 3_600_000) / count
  for (let first = 1; first <= count; first += 250_000) {
    await client.query(
      `WITH made AS (
         SELECT n, to_timestamp(${from} / 1000.0) + n * interval '${step} milliseconds' AS at, '0x' || md5(n::text) || md5('b' || n) AS hash,
           CASE WHEN n % 10000 = 7 OR (n <= ${FIRST} AND n % 100 = 7) THEN 'vault_rare' ELSE 'vault_' || n % ${VAULTS} END AS vault_id
         FROM generate_series($1::bigint, $2::bigint) AS n
       ), ids AS (SELECT *, bench_id(at, n) AS id, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS date FROM made)
       INSERT INTO events (id, organization_id, position, entity_id, vault_id, kind, schema_version, payload, occurred_at, created_at, dispatched_at)
       SELECT id, 'org_bench', n, 'entity_bench', vault_id, 'transaction.confirmed', 1, format(
         '{"id":"%s","kind":"transaction.confirmed","schemaVersion":1,"date":"%s","entityId":"entity_bench","vaultIds":["%s"],"data":{"vaultId":"%s","transaction":{"hash":"%s","network":"ethereum","status":"confirmed","direction":"inbound","asset":"ethereum/native","amount":"%s","from":"%s","to":"%s","timestamp":"%s"}}}',
         id, date, vault_id, vault_id, hash, (n % 1000 + 1)::numeric / 1000, left(hash, 42), left(hash, 42), date), at, at, at FROM ids`,
      [first, Math.min(count, first + 249_999)]
    )
  }
  await client.query("SET maintenance_work_mem = '1GB'")
  for (const { definition } of indexes) await client.query(definition.replace(" ON ONLY ", " ON "))
  await client.query("UPDATE event_streams SET position = $1, clock = now() WHERE organization_id = 'org_bench'", [count])
  await client.query("VACUUM (ANALYZE, PARALLEL 0) events")
  // Otherwise the disk is busy with these rows while pages are measured.
  await client.query("CHECKPOINT")
}

/** Keys of the readers of other organizations, as rows: a command for each would take minutes. */
const otherKeys = async (client: pg.Client, like: string): Promise<ReadonlyArray<string>> => {
  const { hash, make } = await import("../../src/access/credentials/keySecret.ts")
  const { Redacted } = await import("effect")
  const secrets = Array.from({ length: OTHERS }, () => Redacted.value(make()))
  await client.query(
    `INSERT INTO api_keys SELECT copy.* FROM (SELECT k FROM api_keys k WHERE user_id = $1 LIMIT 1) AS one (base),
       unnest($2::text[], $3::text[], $4::bytea[]) AS n (id, user_id, secret_hash),
       jsonb_populate_record(base, jsonb_build_object('id', n.id, 'user_id', n.user_id, 'secret_hash', n.secret_hash)) AS copy`,
    [like, secrets.map(() => Id.make("key")), secrets.map((_, index) => `user_${index}`), secrets.map(hash)]
  )
  return secrets
}

/**
 * A service whose organization has `count` events. Its Postgres keeps the times of commits, for {@link committed}.
 * `name` is its data directory; `bunArgs` are options of its runtime.
 */
export const feedLog = async (name: string, count: number, bunArgs: ReadonlyArray<string> = []) => {
  const masterKey = randomBytes(32)
  const env = environment({ DATA_DIR: path.join(folder, name), MASTER_KEY: masterKey.toString("base64") })
  const begin = (args: ReadonlyArray<string> = []) => start("src/main.ts", ["start", "--roles", "api"], env, announced, args)
  const once = await begin()
  const setting = await database(name)
  await setting.query("ALTER SYSTEM SET track_commit_timestamp = on")
  await setting.end()
  await stop(once.process)
  const service = await begin(bunArgs)
  const file = path.join(folder, `${name}.ndjson`)
  fs.writeFileSync(file, records.map((record) => JSON.stringify(record)).join("\n"))
  await custody(["load", file, "--no-events"], env)
  const keyOf = async (id: string): Promise<string> =>
    JSON.parse(await custody(["keys", "create", "--user", id, "--scopes", "webhook:read", "--all-vaults"], env)).secret
  const keys = { owner: await keyOf("user_owner"), rare: await keyOf("user_rare"), empty: await keyOf("user_empty") }

  const client = await database(name)
  client.on("error", () => {})
  const today = Partitions.dayOf(Date.now())
  const from = (today - DAYS) * DAY
  await client.query(idFunction)
  await makePartitions(client, today)
  await seed(client, count, from)
  const master = sealing(masterKey, undefined)
  return {
    ...service,
    env,
    keys,
    count,
    client,
    databaseUrl: embedded(name).databaseUrl,
    token: fs.readFileSync(path.join(folder, name, "platform-token"), "utf8").trim(),
    otherKeys: () => otherKeys(client, "user_owner"),
    /** The cursor after `position` events. */
    cursor: (position: number) =>
      seal(
        master,
        "org_bench",
        position === 0
          ? { position: BEGINNING, at: from, id: null }
          : { position, at: from + Math.floor((position * (DAYS * DAY - 3_600_000)) / count), id: null }
      ),
    /** When events were committed, in epoch milliseconds, by id. */
    committed: async (ids: ReadonlyArray<string>): Promise<ReadonlyMap<string, number>> => {
      const { rows } = await client.query<{ id: string; at: number }>(
        "SELECT id, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 * 1000 AS at FROM events WHERE id = ANY($1)",
        [ids]
      )
      return new Map(rows.map(({ at, id }) => [id, at]))
    }
  }
}
export type FeedLog = Awaited<ReturnType<typeof feedLog>>
