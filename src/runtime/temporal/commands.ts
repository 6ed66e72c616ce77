/**
 * The outbox of commands to Temporal: whatever must reach a workflow is a row of `commands`, written in the transaction that
 * makes it necessary. Its key names the workflow: a delivery (`del_…`), the drain of a webhook (`drain/whs_…`), a recovery
 * (`rec_…`) or a notice (`ntc_…`); `claim/…` has the deliveries whose first attempts a workflow is to make. A row says only
 * that the workflow must hear of a change: what it hears, the relay reads from the delivery or webhook when it sends it
 * (dispatch/CommandRelay.ts), so a late command is never wrong. Writing a key twice is one command. Decision D-22.
 */
import type { SqlClient, Statement } from "@effect/sql"

/** The channel that announces commands that are due; the database notifies it of each (a trigger of `commands`). */
export const COMMANDS_CHANNEL = "custody_commands"
/** The channel that announces claims whose first attempts have begun, or wait for their webhooks: the payload is the key. */
export const BEGUN_CHANNEL = "custody_begun"

/** When a command that a dispatcher is sending, and that of a claim, is sent again if it is still there, in seconds. */
export const AGAIN_S = 10

/** `INSERT` of commands of drains, recoveries and notices, whose keys are the rows of a query with one text column, for use as a statement or a CTE; in order, so that no two deadlock. */
export const insertCommands = (sql: SqlClient.SqlClient, keys: Statement.Fragment) => sql`
  INSERT INTO commands (key) SELECT * FROM (${keys}) keys ORDER BY 1
  ON CONFLICT (key) DO UPDATE SET id = DEFAULT, due = least(commands.due, excluded.due)`

/** The same for deliveries, whose organizations take turns: the rows of a query with id and organization. */
export const insertDeliveryCommands = (sql: SqlClient.SqlClient, deliveries: Statement.Fragment) => sql`
  INSERT INTO commands (key, organization_id) SELECT * FROM (${deliveries}) deliveries ORDER BY 1
  ON CONFLICT (key) DO UPDATE SET id = DEFAULT, due = least(commands.due, excluded.due)`

/** Makes the workflows of deliveries hear of a change. */
export const wakeDeliveries = (
  sql: SqlClient.SqlClient,
  deliveries: ReadonlyArray<{ readonly deliveryId: string; readonly organizationId: string }>
) =>
  insertDeliveryCommands(
    sql,
    sql`SELECT * FROM unnest(${deliveries.map((_) => _.deliveryId)}::text[], ${deliveries.map((_) => _.organizationId)}::text[])`
  )

/** Commands for these workflows, which are not of deliveries. */
export const command = (sql: SqlClient.SqlClient, ...keys: ReadonlyArray<string>) =>
  insertCommands(sql, sql`SELECT unnest(${keys}::text[])`)

/** The key of a claim. */
export const claimKeyOf = (deliveryId: string): string => `claim/${deliveryId}`
