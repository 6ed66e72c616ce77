/** A year of statements as one CSV file: read in parts from one moment, with the limits of an export. C-10. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { until } from "../../support/receiver.ts"
import { entity, organization, smallest, user, vault } from "../../support/records.ts"

const app = useApi()
const query = "from=2023-01-01&to=2023-12-31"
const ASSETS = 400
let key = "",
  other = ""

/** A line whose amounts make the file larger than what a part has. */
const line = `{"asset":"ethereum/native","symbol":"ETH","opening":"${"1".repeat(78)}","inbound":"0","outbound":"0","fees":"0","other":"0","closing":"${"1".repeat(78)}","transactionCount":0}`
const moved =
  '{"asset":"ethereum/native","symbol":"=ETH, 1","opening":"1","inbound":"2","outbound":"0","fees":"0","other":"-0.5","closing":"2.5","transactionCount":1}'

/** Inserts a revision of each of these days, as the sealer writes them. */
const insert = (vaultId: string, from: string, to: string, revision: number, assets: string) =>
  app.insert(`
    INSERT INTO statement_chains (vault_id, first_date, next_date) VALUES ('${vaultId}', '2023-01-01', '2024-01-01') ON CONFLICT DO NOTHING;
    INSERT INTO statements (vault_id, date, revision, sealed_at, previous_hash, hash, assets, jws)
    SELECT '${vaultId}', day, ${revision}, now(), NULL, repeat('0', 64), ${assets}, ''
    FROM generate_series('${from}'::date, '${to}'::date, interval '1 day') day`)

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      organization("org_other", ["ethereum"]),
      entity("entity_other", "org_other"),
      vault("vault_other", "entity_other"),
      user("user_other", "org_other", ["vault_other"])
    ],
    { "x-record-events": "none" }
  )
  await insert("vault_a", "2023-01-01", "2023-12-31", 1, `'[' || repeat('${line},', ${ASSETS}) || '${moved}]'`)
  await insert("vault_other", "2023-12-31", "2023-12-31", 1, `'[${moved}]'`)
  key = (await app.key("user_a")).secret
  other = (await app.key("user_other")).secret
})

const file = (more = "", secret = key, vaultId = "vault_a", method = "GET") =>
  app.send("api", `/v1/vaults/${vaultId}/statements?${query}${more}`, {
    method,
    headers: { authorization: `Bearer ${secret}`, accept: "text/csv" }
  })
const held = async () => {
  const [row] = await app.sql(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'custody-export' AND datname = current_database() AND state <> 'idle'"
  )
  return row?.["n"]
}
const released = () => until("the release", async () => (await held()) === 0, 30)
const csvLine = (date: string, revision: number) => `${date},${revision},ethereum/native,"'=ETH, 1",'1,'2,'0,'0,'-0.5,'2.5,1`

test("a file has the revisions of one moment, in parts of a few days", async () => {
  const reader = (await file()).body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  const parts: Array<number> = []
  for (;;) {
    const part = await reader?.read()
    if (part?.done !== false) break
    if (parts.length === 0) await insert("vault_a", "2023-06-01", "2023-12-31", 2, "'[]'")
    parts.push(part.value.split("\r\n").filter((one) => one.includes("=ETH")).length)
    text += part.value
  }
  await app.sql("DELETE FROM statements WHERE revision = 2")
  expect([parts.length > 50, Math.max(...parts) < 8]).toEqual([true, true])
  const lines = text.split("\r\n")
  expect([lines.length, lines.at(-2), lines.at(-1)]).toEqual([1 + 365 * (ASSETS + 1) + 1, csvLine("2023-12-31", 1), ""])
  await released()
})

test("a file of what moved has a line for each movement", async () => {
  const lines = (await (await file("&movedOnly=true")).text()).split("\r\n")
  expect([lines.length, lines[1], lines.at(-2)]).toEqual([1 + 365 + 1, csvLine("2023-01-01", 1), csvLine("2023-12-31", 1)])
  await released()
})

test("files of a key run twice at a time, and hold up no other organization", async () => {
  const open = [await file(), await file()]
  const refused = await file("&movedOnly=true")
  expect([refused.status, ((await refused.json()) as { readonly code: string }).code, refused.headers.get("retry-after")]).toEqual([
    429,
    "too_many_exports",
    "5"
  ])
  expect(await (await file("", other, "vault_other")).text()).toEndWith(`${csvLine("2023-12-31", 1)}\r\n`)
  const json = await app.get("/v1/vaults/vault_a/statements?limit=1", key)
  expect(json.status).toBe(200)
  for (const { body } of open) await body?.cancel()
  await released()
})

test("a file of a hidden vault is 404, and HEAD has only the headers", async () => {
  const hidden = await file("", other)
  expect([hidden.status, ((await hidden.json()) as { readonly code: string }).code]).toEqual([404, "not_found"])
  const head = await file("", key, "vault_a", "HEAD")
  expect([head.status, head.headers.get("content-type"), head.headers.get("vary")]).toEqual([200, "text/csv; charset=utf-8", "accept"])
  await released()
})
