/** The API: the public listener, and the record feed of the platform listener. */
import { type Context, Layer, type Redacted } from "effect"
import { Authentication } from "../credentials/Authentication.ts"
import * as Database from "../database/Database.ts"
import type { Notifications } from "../database/Notifications.ts"
import type { ReadReplica } from "../database/replica/ReadReplica.ts"
import { Snapshots } from "../database/Snapshots.ts"
import { Ledger } from "../ledger/Ledger.ts"
import * as PortalPool from "../portal/PortalPool.ts"
import type { TemporalConnection } from "../temporal/Connection.ts"

export { recordFeedRoutes } from "../platform/recordFeed.ts"
export { serve } from "../Server.ts"

/** The dependencies of the public API and the record feed, each with its own connections. */
export const layer = (url: Redacted.Redacted, connection: Context.Context<TemporalConnection | Notifications | ReadReplica>) =>
  Layer.merge(
    Layer.provideMerge(
      Authentication.layer,
      Layer.mergeAll(Layer.succeedContext(connection), Database.layer(url, Database.pools.api), Snapshots.layer(url), PortalPool.layer(url))
    ),
    Layer.provide(Ledger.layer, Database.layer(url, Database.pools.ledger))
  )
