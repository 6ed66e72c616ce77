/** The time range that the event log shows, and ids at its start: ids begin with the time of recording. Spec: Limits. */
import * as Id from "../../values/Id.ts"

/** Days that the log shows, and for which deliveries are held and notices are kept and retried (workflows/notify.ts). Spec: Limits. */
export const RETENTION_DAYS = 31

/** Events without a vault that are searched for a page of a reader who may see none of them: their audiences are checked one by one. */
export const WITHOUT_VAULT = 2_000

/** How much earlier a delivery's id may be than its event's, in ms: a redelivery's id comes from the clock of a process. */
export const DELIVERY_SLACK_MS = 2 * 86_400_000

/** The start of the log's time range, in ms. */
export const oldestTime = (): number => Date.now() - RETENTION_DAYS * 86_400_000

/** The smallest id in the log's time range. */
export const oldestId = (prefix: Id.Prefix): string => Id.floor(prefix, oldestTime())

/** The smallest id that a delivery of an event can have. */
export const oldestDelivery = (eventId: string): string => Id.floor("del", Math.min(Id.time(eventId) ?? 0, Date.now()) - DELIVERY_SLACK_MS)
