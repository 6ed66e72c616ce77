/** The schema of version 0.1, by subject. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { credentials } from "./baseline/credentials.ts"
import { custody } from "./baseline/custody.ts"
import { deliveries } from "./baseline/deliveries.ts"
import { events } from "./baseline/events.ts"
import { ledger } from "./baseline/ledger.ts"
import { portal } from "./baseline/portal.ts"
import { processes } from "./baseline/processes.ts"
import { webhooks } from "./baseline/webhooks.ts"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  // In the order of their references.
  Effect.forEach([custody, ledger, credentials, portal, events, webhooks, deliveries, processes], (text) => sql.unsafe(text), {
    discard: true
  })
)
