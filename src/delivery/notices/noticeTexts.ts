/** The texts of operational notices: what happened, since when, and what to do. Decision D-23. */

import { Duration } from "effect"
import type { Values } from "../../runtime/settings/table.ts"

/** The content of a notice. */
export interface Facts {
  readonly webhookId: string
  /** Host of the webhook's URL; the rest may contain a secret and is not mailed. */
  readonly host: string
  /** Since when attempts fail, UTC ISO 8601. */
  readonly since: string
  /** Failed attempts in a row. */
  readonly failures: number
  readonly lastResult: string
  readonly deliveryId: string
  /** Deliveries held because the endpoint is down; undefined if none is. */
  readonly held?: number | undefined
}

/** What became of the deliveries of a hold that has ended. */
export interface Released {
  readonly delivered: number
  /** Those that wait for their next attempt now, counted up to 10,001. */
  readonly retrying: number
  /** Those whose schedule was used up since the ten minutes in which the hold began. */
  readonly failed: number
}

/** The settings in the texts. */
export type Terms = Pick<Values, "webhookRetrySchedule" | "webhookProbeSchedule" | "webhookDisableAfter">

/** A subject and a plain text. */
export interface Text {
  readonly subject: string
  readonly body: string
}

/** A time (UTC ISO 8601) in a text: `2026-12-05 08:00 UTC`. */
export const minuteOf = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`

/** Names and values in two columns. */
export const rows = (all: ReadonlyArray<readonly [string, string]>) =>
  all.map(([name, value]) => `${`${name}:`.padEnd(17)}${value}`).join("\n")

const table = ({ failures, host, lastResult, since, webhookId }: Facts, more: ReadonlyArray<readonly [string, string]> = []) =>
  rows([
    ["Webhook", webhookId],
    ["Host", host],
    ["Failing since", since],
    ["Failed in a row", `${failures} ${failures === 1 ? "attempt" : "attempts"}`],
    ["Last result", lastResult],
    ...more
  ])

const redeliver = (webhookId: string) => `To redeliver an event once the endpoint works:
  POST /v1/webhook-deliveries/{deliveryId}/redeliver
To list the deliveries that did not arrive:
  GET /v1/webhooks/${webhookId}/deliveries?status=FAILED&status=CANCELED`

/**
 * A recovery from an hour before a time in ms: an event is older than its delivery and its attempt. What was delivered is not sent again.
 * Redeliveries, and what a long pause held, may be of older events.
 */
const recover = (webhookId: string, at: number, include = "") =>
  `  POST /v1/webhooks/${webhookId}/recoveries with {"since": "${new Date(at - 3_600_000).toISOString()}"${include}}
To list what is older, for another recovery or POST /v1/webhook-deliveries/{deliveryId}/redeliver:
  GET /v1/webhooks/${webhookId}/deliveries?status=FAILED&status=CANCELED`

/** A duration in words, in its largest unit: `3 days`, `1 hour`. */
const inWords = (duration: Duration.Duration): string => {
  const seconds = Math.round(Duration.toSeconds(duration))
  for (const [unit, size] of [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60]
  ] as const) {
    const count = Math.round(seconds / size)
    if (seconds >= size) return `${count} ${unit}${count === 1 ? "" : "s"}`
  }
  return `${seconds} second${seconds === 1 ? "" : "s"}`
}

/** Deliveries are counted up to 10,000. */
const deliveriesInWords = (count: number): string =>
  count === 1 ? "1 delivery" : count > 10_000 ? "more than 10,000 deliveries" : `${count} deliveries`

/** When an endpoint that is down is probed: `after 30 seconds and later every 5 minutes`. */
const probesInWords = (schedule: ReadonlyArray<Duration.Duration>): string => {
  const [first = Duration.zero, last = first] = [schedule[0], schedule.at(-1)]
  const every = `every ${inWords(last).replace(/^1 /, "")}`
  return Duration.equals(first, last) ? every : `after ${inWords(first)} and later ${every}`
}

/** The texts for the configured settings. */
export const noticeTexts = ({ webhookDisableAfter: disableAfter, webhookProbeSchedule, webhookRetrySchedule: schedule }: Terms) => {
  const wait = schedule.reduce(Duration.sum, Duration.zero)
  const span = inWords(wait)
  return {
    /** After ten failed attempts and an hour, once per streak. */
    streak: (facts: Facts): Text => ({
      subject: `Webhook ${facts.webhookId} is failing (${facts.host})`,
      body:
        `Deliveries to your webhook keep failing. Each delivery is attempted ${schedule.length} times over about ${span}.\n\n${table(facts)}\n\n` +
        `${facts.held === undefined ? "" : `Nothing is lost: ${deliveriesInWords(facts.held)} ${facts.held === 1 ? "is" : "are"} held until the endpoint works. `}` +
        `No action is needed if the endpoint recovers. Otherwise the webhook is disabled when the endpoint has not ` +
        `returned 2xx for ${inWords(disableAfter)}.\n`
    }),

    /** When an endpoint is down and its deliveries are held, at most once an hour. */
    held: (facts: Facts): Text => ({
      subject: `Webhook ${facts.webhookId} is on hold: its endpoint is down (${facts.host})`,
      body:
        `The endpoint does not accept deliveries, so they are held. Nothing is lost: while a delivery is held, no attempt of its schedule ` +
        `is used up. The endpoint is probed ${probesInWords(webhookProbeSchedule)}; when it answers, everything is sent, ` +
        `oldest first.\n\n${table(facts, [["Held", deliveriesInWords(facts.held ?? 0)]])}\n\n` +
        `What to do: restore the endpoint. If it does not return 2xx for ${inWords(disableAfter)}, the webhook is disabled and its ` +
        `waiting deliveries are canceled.\n`
    }),

    /** When no delivery that was held for a down endpoint waits any more: it accepted or rejected them, or they were canceled. */
    recovered: (facts: Pick<Facts, "webhookId" | "host" | "since"> & Released): Text => {
      const { delivered, failed, host, retrying, since, webhookId } = facts
      const table = [
        ["Webhook", webhookId],
        ["Host", host],
        ["Held since", since],
        ["Delivered", deliveriesInWords(delivered)]
      ] as const
      if (failed + retrying === 0)
        return {
          subject: `Webhook ${webhookId} recovered: ${delivered} delivered (${host})`,
          body: `The endpoint accepts deliveries again, and no held delivery waits any more.\n\n${rows(table)}\n\nNo action is needed.\n`
        }
      return {
        subject: `Webhook ${webhookId} answers again, but not everything was delivered (${host})`,
        body:
          `The endpoint answers again, and all held deliveries have been sent. Some were not answered with 2xx.\n\n` +
          `${rows([...table, ["Retried", deliveriesInWords(retrying)], ["Failed", deliveriesInWords(failed)]])}\n\n` +
          `What to do: correct the endpoint before the retries are used up. The results of their attempts:\n` +
          `  GET /v1/webhooks/${webhookId}/deliveries?status=RETRYING&status=FAILED\n` +
          // A retry that joined the queue may have waited as long as the schedule, and longer by jitter and Retry-After.
          `Then, to get what failed:\n${recover(webhookId, Date.parse(since) - 2 * Duration.toMillis(wait), ', "include": ["FAILED"]')}\n`
      }
    },

    /** After the first delivery that failed permanently, at most once a day. */
    failed: (facts: Facts): Text => ({
      subject: `A delivery to webhook ${facts.webhookId} failed permanently (${facts.host})`,
      body:
        `All ${schedule.length} attempts of a delivery failed, and it is not retried. You receive this notice at most once a day; ` +
        `there may be more failed deliveries.\n\n${table(facts, [["Delivery", facts.deliveryId]])}\n\n${redeliver(facts.webhookId)}\n`
    }),

    /** After an automatic disable. */
    disabled: (facts: Facts & { readonly gone: boolean; readonly canceled: number; readonly oldest: string | null }): Text => ({
      subject: `Webhook ${facts.webhookId} was disabled (${facts.host})`,
      body:
        `${facts.gone ? "The endpoint repeatedly returned 410 Gone" : `The endpoint has not returned 2xx for ${inWords(disableAfter)}`}, ` +
        `so the webhook was disabled. New events are still recorded, and events are kept for 31 days. Waiting deliveries were canceled.\n\n` +
        `${table(facts, [["Canceled", deliveriesInWords(facts.canceled)]])}\n\n` +
        `To enable it again:\n  PATCH /v1/webhooks/${facts.webhookId} with {"status": "ACTIVE"}\n` +
        `Then, to get the events that did not arrive, including those from before it was enabled:\n` +
        `${recover(facts.webhookId, Math.min(Date.parse(facts.since), Date.parse(facts.oldest ?? facts.since)))}\n`
    })
  }
}
