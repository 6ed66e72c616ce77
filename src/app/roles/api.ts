/** The API: the public listener, and the record feed of the platform listener. */
import { type Context, Layer, type Redacted } from "effect"
import { Authentication } from "../../access/credentials/Authentication.ts"
import { Ledger } from "../../custody/ledger/Ledger.ts"
import * as PortalPool from "../../portal/server/PortalPool.ts"
import * as Database from "../../runtime/database/Database.ts"
import type { Notifications } from "../../runtime/database/Notifications.ts"
import type { ReadReplica } from "../../runtime/database/replica/ReadReplica.ts"
import { Snapshots } from "../../runtime/database/Snapshots.ts"
import type { TemporalConnection } from "../../runtime/temporal/Connection.ts"

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
