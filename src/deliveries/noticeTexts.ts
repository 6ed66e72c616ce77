/** The texts of operational notices: what happened, since when, and how to go on. Decision D-23. */

/** What a notice tells. */
export interface Facts {
  readonly webhookId: string
  /** Host of the webhook's URL; the rest of a URL may hold a secret and is not mailed. */
  readonly host: string
  /** Since when attempts fail, UTC ISO 8601. */
  readonly since: string
  readonly failures: number
  readonly lastResult: string
  readonly deliveryId: string
}

const table = ({ failures, host, lastResult, since, webhookId }: Facts) =>
  [
    `Webhook:        ${webhookId}`,
    `Host:           ${host}`,
    `Failing since:  ${since}`,
    `Failed in a row: ${failures} attempts`,
    `Last result:    ${lastResult}`
  ].join("\n")

const redeliver = `To send an event again once the endpoint works:
  POST /v1/webhook-deliveries/{deliveryId}/redeliver
The deliveries that failed: GET /v1/webhooks/{webhookId}/deliveries?status=FAILED&status=CANCELED`

/** At ten failed attempts and an hour, once a streak. */
export const streakText = (facts: Facts) => ({
  subject: `Webhook ${facts.webhookId} is failing (${facts.host})`,
  body:
    `Deliveries to a webhook of yours keep failing. They are tried again for about three days.\n\n${table(facts)}\n\n` +
    `Nothing has to be done if the endpoint comes back by itself. If it does not, the webhook is disabled after five days without a 2xx.\n`
})

/** At the first delivery that used up its schedule, once a day at the most. */
export const failedText = (facts: Facts) => ({
  subject: `A delivery to webhook ${facts.webhookId} has failed for good (${facts.host})`,
  body: `A delivery used up its attempts and is not tried again.\n\n${table(facts)}\nDelivery:       ${facts.deliveryId}\n\n${redeliver}\n`
})

/** At the automatic disable. */
export const disabledText = (facts: Facts & { readonly gone: boolean }) => ({
  subject: `Webhook ${facts.webhookId} was disabled (${facts.host})`,
  body:
    `${facts.gone ? "The endpoint answered 410 Gone twice" : "The endpoint has not answered 2xx for too long"}, so the webhook was disabled. ` +
    `Events are still recorded for 31 days; what was waiting was canceled.\n\n${table(facts)}\n\n` +
    `To enable it again: PATCH /v1/webhooks/${facts.webhookId} with {"status": "ACTIVE"}\n${redeliver}\n`
})
