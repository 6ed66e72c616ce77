/** Batches of records that wait for their turn, as behind a long transaction. */
import pg from "pg"
import type { App } from "./app.ts"
import { until } from "./receiver.ts"

/** Connections of waiting batches. */
const waitingBatches =
  "FROM pg_stat_activity WHERE application_name = 'custody-ledger' AND datname = current_database() AND wait_event_type = 'Lock'"

/** Batches wait while this runs. */
export const whileLocked = async (app: App, use: () => Promise<unknown>): Promise<void> => {
  const other = new pg.Client({ connectionString: app.databaseUrl })
  await other.connect()
  try {
    await other.query("BEGIN; LOCK TABLE transactions")
    await use()
  } finally {
    await other.end()
  }
}

/** Waits for a batch that waits. */
export const untilOneWaits = (app: App): Promise<unknown> =>
  until("a batch", async () => (await app.sql(`SELECT 1 ${waitingBatches}`)).length > 0)

/** Lets waiting batches lose their connection until the service has answered one with 503. */
export const refuseOne = async (app: App): Promise<void> => {
  const seen = () => (app.main?.output().match(/"status":503/g) ?? []).length
  const before = seen()
  await until("a 503", async () => {
    await app.sql(`SELECT pg_terminate_backend(pid) ${waitingBatches}`)
    return seen() > before
  })
}
