/**
 * Redeliveries for `custody listen`. The feed has every event once, so a delivery that somebody redelivers is not in it: the
 * newest deliveries of the visible webhooks are read again and again, slowly enough for the key's rate limit. C-12.
 */
import { setTimeout } from "node:timers/promises"
import { type CustodyClient, isCustodyError, type WebhookEvent } from "../../../client/index.ts"

/** Pauses in ms: after each webhook and each page of them, and after all of them. */
const STEP = 200,
  ROUND = 2_000
/** Most deliveries of a webhook that are read in a round. */
const READ = 500

/** A redelivery and its event. */
export interface Redelivery {
  readonly deliveryId: string
  readonly event: WebhookEvent
}

/** Calls back with each redelivery from now on, until `signal` is aborted. What cannot be read now is read in a later round. */
export const watchRedeliveries = async (
  custody: CustodyClient,
  onRedelivery: (redelivery: Redelivery) => Promise<void>,
  signal: AbortSignal
): Promise<void> => {
  /** The time of the newest delivery of each webhook that was shown or came before, and the redeliveries so far. */
  const newest = new Map<string, string | undefined>()
  const known = new Set<string>()
  let isFirst = true

  /** The event of a redelivery, unless it is not kept or not visible any more. */
  const eventOf = (eventId: string) =>
    custody.getEvent(eventId, { signal }).catch((error) => {
      if (isCustodyError(error, "not_found")) return undefined
      throw error
    })

  const read = async (webhookId: string) => {
    const isEarlier = isFirst && !newest.has(webhookId)
    const query = { limit: isEarlier ? 1 : READ, createdAfter: newest.get(webhookId) }
    const { data } = await custody.listWebhookDeliveries(webhookId, query, { signal })
    if (isEarlier) newest.set(webhookId, undefined)
    for (const { createdAt, eventId, id, replayedFromDeliveryId } of data.toReversed()) {
      if (replayedFromDeliveryId !== null && !known.has(id)) {
        const found = isEarlier ? undefined : await eventOf(eventId)
        if (found !== undefined) {
          const { deliveryCounts: _, matchedCount: __, ...event } = found
          await onRedelivery({ deliveryId: id, event })
        }
        known.add(id)
      }
      newest.set(webhookId, createdAt)
    }
  }

  const round = async () => {
    for await (const { data } of custody.listWebhooks({}, { signal }).pages()) {
      for (const webhook of data) {
        await read(webhook.id)
        await setTimeout(STEP, undefined, { signal })
      }
      await setTimeout(STEP, undefined, { signal })
    }
    isFirst = false
  }

  while (!signal.aborted) {
    await round().catch(() => {})
    await setTimeout(ROUND, undefined, { signal }).catch(() => {})
  }
}
