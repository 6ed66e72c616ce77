/**
 * Redeliveries for `custody listen`. The feed has every event once, so a delivery that somebody redelivers is not in it: the
 * newest deliveries of the visible webhooks are read again and again, slowly enough for the key's rate limit. C-12.
 */
import { setTimeout } from "node:timers/promises"
import type { CustodyClient, Delivery, WebhookEvent } from "../../../client/index.ts"

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
  /** The time of the newest delivery of each webhook, and the redeliveries so far. */
  const newest = new Map<string, string>()
  const known = new Set<string>()
  let isFirst = true

  const fresh = async (webhookId: string): Promise<ReadonlyArray<Delivery>> => {
    const query = { limit: isFirst ? 1 : READ, createdAfter: newest.get(webhookId) }
    const { data } = await custody.listWebhookDeliveries(webhookId, query, { signal })
    const [latest] = data
    if (latest !== undefined) newest.set(webhookId, latest.createdAt)
    return data.filter(({ id, replayedFromDeliveryId }) => replayedFromDeliveryId !== null && !known.has(id)).reverse()
  }

  const round = async () => {
    for await (const { data } of custody.listWebhooks({}, { signal }).pages()) {
      for (const webhook of data) {
        for (const { eventId, id } of await fresh(webhook.id)) {
          known.add(id)
          if (isFirst) continue
          const { deliveryCounts: _, matchedCount: __, ...event } = await custody.getEvent(eventId, { signal })
          await onRedelivery({ deliveryId: id, event })
        }
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
