/** What a sign-in reads: anybody may try any address, so its cost must not depend on the number of users and sign-ins. */
import { beforeAll, expect, test } from "bun:test"
import { useApp } from "../support/app.ts"
import { withoutAutovacuum } from "../support/plans.ts"
import { until } from "../support/receiver.ts"
import { smallest, user } from "../support/records.ts"
import { Visitor } from "./client.ts"

const app = useApp(["api"], { PORTAL_BASE_URL: "http://localhost:8080" })
/** Users with an account, and sign-ins of two of them. */
const USERS = 20_000,
  SIGN_INS = 60_000

const attempt = async (email: string) =>
  expect([email, (await new Visitor(app).request("POST", "/api/sign-in", { email, password: "not the password" })).status]).toEqual([
    email,
    401
  ])
/** No account's address, one that is up to date, one from before a change, and the address after it. */
const attemptAll = async (number: number) => {
  for (const name of ["nobody", `user_${number}`, `old_${number + 1}`, `new_${number + 3}`]) await attempt(`${name}@example.com`)
}

beforeAll(async () => {
  await app.feed([...smallest(), user("user_a", "org_a", ["vault_a"])])
  await withoutAutovacuum(app)
  // Plans the statements for empty tables.
  await attempt("nobody@example.com")
  await app.insert(`
    INSERT INTO users (id, organization_id, email, name, status, organization_role)
    SELECT 'user_' || n, 'org_a', CASE WHEN n % 2 = 0 THEN 'User_' ELSE 'New_' END || n || '@example.com', 'Ada', 'active', 'member' FROM generate_series(1, ${USERS}) n;
    INSERT INTO portal_users (id, name, email, email_verified)
    SELECT 'user_' || n, 'Ada', CASE WHEN n % 2 = 0 THEN 'user_' ELSE 'old_' END || n || '@example.com', true FROM generate_series(1, ${USERS}) n;
    INSERT INTO audit_log (id, organization_id, at, actor_type, user_id, action, target_type, target_id, client_address, changes)
    SELECT 'aud_' || n, 'org_a', now() - n * interval '1 second', 'session', id, 'account.signed_in', 'account', id, '192.0.2.1', '{}'
    FROM generate_series(1, ${SIGN_INS}) n, LATERAL (SELECT CASE WHEN n % 2 = 0 THEN 'user_2' ELSE 'user_12' END AS id) u`)
})

test("a sign-in reads few rows, however many users and sign-ins there are", async () => {
  await attemptAll(2)
  await app.sql("ANALYZE users, portal_users, audit_log")
  await attemptAll(12)
  // Sessions report everything when they end.
  await app.main?.end()
  const left = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'custody-%'"
  await until("the end of its sessions", async () => (await app.sql(left)).length === 0)
  const rows = await app.sql(`
    SELECT relname AS name, sum(read)::int AS read FROM (
      SELECT relname, seq_tup_read AS read FROM pg_stat_user_tables UNION ALL SELECT relname, idx_tup_read FROM pg_stat_user_indexes) r
    WHERE relname IN ('users', 'portal_users', 'audit_log') GROUP BY relname ORDER BY relname`)
  // Of the audit log, the hundred sign-ins of each account that count.
  expect(rows.map(({ name, read }) => [name, Number(read) > 0 && Number(read) < 1_000])).toEqual([
    ["audit_log", true],
    ["portal_users", true],
    ["users", true]
  ])
})
