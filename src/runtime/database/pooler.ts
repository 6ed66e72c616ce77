/** A connection pooler such as PgBouncer between the service and Postgres: it drops the settings of a connection, or rejects them. */
import { postgresErrorOf } from "./hasSqlState.ts"

/** SQL: whether a connection lost its settings, of which every one of ours has this one (Database.ts). */
export const LOST_SETTINGS = "current_setting('custody.session', true) IS DISTINCT FROM 'on'"

/** Whether a pooler rejected the settings. */
export const rejectedSettings = (error: unknown): boolean => /unsupported startup parameter/.test(postgresErrorOf(error)?.message ?? "")
