/** Sends a custody platform's outbox to the service until it is stopped. `feed.ts reconcile` compares what both have instead. */
import { setTimeout } from "node:timers/promises"
import pg from "pg"

const { CUSTODY_API_KEY, CUSTODY_URL, DATABASE, PLATFORM, PLATFORM_TOKEN } = process.env
const db = new pg.Client({ connectionString: DATABASE })
await db.connect()

/** Whether this is the service's answer to so many records, and not the page of a gateway. */
const isAccepted = (answer: string, count: number): boolean => {
  try {
    return JSON.parse(answer).received === count
  } catch {
    return false
  }
}

/** Posts a batch until it is answered. It has the same records and key each time, so it is applied once. */
const send = async (batch: string, history: boolean, records: string): Promise<string> => {
  const headers = {
    authorization: `Bearer ${PLATFORM_TOKEN}`,
    "content-type": "application/x-ndjson",
    "idempotency-key": batch,
    ...(history ? { "x-record-events": "none" } : {})
  }
  for (;;) {
    let wait = 1
    try {
      const response = await fetch(`${PLATFORM}/platform/v1/records`, {
        method: "POST",
        headers,
        body: records,
        redirect: "manual",
        signal: AbortSignal.timeout(60_000)
      })
      const { status } = response
      const answer = await response.text()
      if (status === 200 && isAccepted(answer, records.split("\n").length)) return answer
      if (status >= 300 && status < 500 && ![409, 429].includes(status)) {
        console.error(`batch ${batch} was refused: ${status} ${answer}`)
        process.exit(1)
      }
      const after = response.headers.get("retry-after") ?? ""
      if (/^\d{1,6}$/.test(after)) wait = Math.min(Number(after), 60)
      console.error(`batch ${batch} is sent again: ${status} ${answer.slice(0, 200)}`)
    } catch (error) {
      // No answer: the batch may or may not have been applied.
      console.error(`batch ${batch} is sent again: ${error}`)
    }
    await setTimeout(wait * 1_000)
  }
}

const follow = async () => {
  for (;;) {
    const { rows } = await db.query("SELECT batch, history, records FROM custody_next_batch()")
    for (const { batch, history, records } of rows) {
      console.log(batch, await send(batch, history, records))
      await db.query("UPDATE custody_outbox SET sent_at = now() WHERE batch = $1", [batch])
    }
    if (rows.length === 0) await setTimeout(1_000)
  }
}

const reconcile = async (): Promise<boolean> => {
  let equal = true
  const vaults = await db.query("SELECT DISTINCT record->>'id' AS id FROM custody_outbox WHERE record->>'type' = 'vault'")
  for (const { id } of vaults.rows) {
    const url = `${CUSTODY_URL}/v1/vaults/${id}/transactions/export?format=ndjson`
    const headers = { authorization: `Bearer ${CUSTODY_API_KEY}` }
    const response = await fetch(url, { headers, redirect: "manual", signal: AbortSignal.timeout(1_800_000) })
    if (!response.ok) throw new Error(`${url} answered ${response.status}`)
    const { rows } = await db.query("SELECT * FROM custody_reconcile($1, $2)", [id, await response.text()])
    console.log(id, rows[0])
    equal &&= rows[0].our_hash === rows[0].their_hash
  }
  return equal
}

if (process.argv[2] === "reconcile") process.exit((await reconcile()) ? 0 : 1)
await follow()
