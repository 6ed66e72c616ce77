/** Authentication of the floors of reads: one look-up of the key, by its hash. */
import { createHash } from "node:crypto"
import type pg from "pg"

/** Whether the request has a key that exists. */
export const hasKey = async (pool: pg.Pool, request: Request): Promise<boolean> => {
  const secret = request.headers.get("authorization")?.slice(7) ?? ""
  const { rows } = await pool.query({
    name: "key",
    text: "SELECT id, user_id, scopes, vault_ids, ip_allowlist, expires_at, revoked_at FROM api_keys WHERE secret_hash = $1",
    values: [createHash("sha256").update(secret).digest()]
  })
  return rows.length > 0
}
