/** The sign-in library's connections; it uses its own client for Postgres. */
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { LIFETIME, session } from "../../runtime/database/Database.ts"

export class PortalPool extends Context.Tag("custody/portal/Pool")<PortalPool, pg.Pool>() {}

/** A small pool on the service's database. It connects when somebody first opens the portal. */
export const layer = (url: Redacted.Redacted) =>
  Layer.scoped(
    PortalPool,
    Effect.acquireRelease(
      Effect.sync(() => {
        const pool = new pg.Pool({
          connectionString: Redacted.value(url),
          max: 4,
          connectionTimeoutMillis: 1_000,
          idleTimeoutMillis: 30_000,
          maxLifetimeSeconds: Duration.toSeconds(LIFETIME),
          keepAlive: true,
          application_name: "custody-portal",
          options: `${session} -c statement_timeout=2000 -c idle_in_transaction_session_timeout=5000 -c lock_timeout=2000`
        })
        // The pool replaces a connection that breaks while idle; the next statement reports errors.
        pool.on("error", () => {})
        return pool
      }),
      (pool) => Effect.promise(() => pool.end()).pipe(Effect.interruptible, Effect.timeoutOption("2 seconds"))
    )
  )
