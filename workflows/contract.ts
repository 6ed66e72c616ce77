/**
 * The contract between workflows and the rest of the program: names, ids, inputs, results, search attributes. Inputs and
 * results contain only ids, numbers and results: anyone with access to the Temporal UI can read a history, so it never
 * contains a payload, URL or secret. Architecture, What must hold 2. Decision D-35.
 */
import { defineSearchAttributeKey } from "@temporalio/common"

/** Search attributes for operators. */
export const searchKeys = {
  webhookId: defineSearchAttributeKey("WebhookId", "KEYWORD"),
  eventId: defineSearchAttributeKey("EventId", "KEYWORD"),
  eventKind: defineSearchAttributeKey("EventKind", "KEYWORD"),
  /** The organization that a workflow works for; absent for a group, whose deliveries may be of several. Decision D-55. */
  organizationId: defineSearchAttributeKey("OrganizationId", "KEYWORD"),
  entityId: defineSearchAttributeKey("EntityId", "KEYWORD"),
  deliveryStatus: defineSearchAttributeKey("DeliveryStatus", "KEYWORD"),
  /** For a group: its deliveries and their webhooks. Temporal accepts lists of up to 2,048 bytes, which 50 ids never exceed. */
  deliveryIds: defineSearchAttributeKey("DeliveryIds", "KEYWORD_LIST"),
  webhookIds: defineSearchAttributeKey("WebhookIds", "KEYWORD_LIST")
} as const

/** Names of the workflow functions. */
export const workflows = {
  deliver: "deliver",
  drain: "drain",
  recover: "recover",
  ping: "ping",
  notify: "notify",
  retain: "retain",
  sealStatements: "sealStatements",
  announceExpiringKeys: "announceExpiringKeys"
} as const

/**
 * Names of signals. `wake` comes from the service, for `deliver` with the time in ms until the next step is due; `retryNow` and `cancel`
 * come from operators.
 */
export const signals = { wake: "wake", retryNow: "retryNow", cancel: "cancel" } as const

/**
 * The task queues. `deliveries`, with the configured name, has workflow tasks and the first attempts inside them; `attempts`
 * has retries, probes and drains; `pings` has pings; `mail` has notices; `background` has recoveries, retention,
 * statements and expiring keys.
 */
export const taskQueuesOf = (taskQueue: string) => ({
  deliveries: taskQueue,
  attempts: `${taskQueue}-attempts`,
  pings: `${taskQueue}-pings`,
  mail: `${taskQueue}-mail`,
  background: `${taskQueue}-background`
})

/** Options of an activity that lasts while there is work: an attempt, a step of a drain or of a recovery; another worker takes it over when its worker dies. */
export const stepOptions = {
  startToCloseTimeout: "6 hours",
  heartbeatTimeout: "4 seconds",
  retry: { initialInterval: "500 milliseconds", backoffCoefficient: 2, maximumInterval: "15 seconds" }
} as const

/** How long a delivery's workflow waits for the signal of an attempt in flight, in ms; an attempt takes at most 11 s, or 16 s with a new access token. */
export const IN_FLIGHT_MS = 15_000

/** Most deliveries of one workflow. */
export const GROUP = 50

/** Workflow id of a webhook's drain. */
export const drainIdOf = (webhookId: string): string => `drain/${webhookId}`

/** A delivery, as workflows know it. */
export interface Member {
  readonly deliveryId: string
  readonly webhookId: string
  readonly organizationId: string
}

/** Input of `deliver`: what a claim found, 1 to {@link GROUP} deliveries, or a delivery that waits for its next attempt. */
export interface DeliverInput {
  readonly deliveries: ReadonlyArray<Member>
  /** Wait before each attempt in ms; a running delivery keeps its initial schedule. */
  readonly waitsMs: ReadonlyArray<number>
  /** Whether the namespace has the search attributes; without them a delivery works but is harder to find. */
  readonly indexed: boolean
  /** Whether the first attempts are to be made. */
  readonly first: boolean
  /** Of a continued workflow: the number of its last attempt, and the time in ms until the next step. */
  readonly resumed?: { readonly last: number; readonly waitMs: number }
}

/** Input of the first attempts of a claim. */
export interface FirstAttemptsInput {
  readonly deliveries: ReadonlyArray<Member>
  readonly waitsMs: ReadonlyArray<number>
}

/** Input of a later attempt of a delivery. */
export interface AttemptInput extends Member {
  readonly waitsMs: ReadonlyArray<number>
  /**
   * The last attempt whose wait is over, 0 at the beginning. If a later one is recorded, the step is a repetition or
   * belongs to a restarted workflow, and waits until the attempt is due.
   */
  readonly after: number
  /** Whether the workflow was asked to cancel: a waiting delivery is then canceled instead of attempted. */
  readonly cancel: boolean
}

/** The result of an attempt, or of a step that made none. `result` is the last attempt's; `down`: it means that the endpoint is down. */
export type AttemptOutcome =
  /** A 2xx. */
  | { readonly next: "delivered"; readonly number: number; readonly result: string }
  /** The schedule is used up. */
  | { readonly next: "failed"; readonly number: number; readonly result: string; readonly down?: true }
  /** Another attempt after the wait. */
  | { readonly next: "retry"; readonly number: number; readonly result: string; readonly waitMs: number; readonly down?: true }
  /** It waits in its webhook's queue. */
  | {
      readonly next: "held"
      readonly number: number
      readonly result: string | null
      readonly because: "PAUSED" | "DOWN" | "TURN"
      readonly down?: true
    }
  /** Its attempt is still in flight: whoever makes it sends a signal when it is recorded. */
  | { readonly next: "in flight"; readonly waitMs: number }
  /** No attempt can be made now, and none is used up: by this process, or at all. */
  | { readonly next: "later"; readonly waitMs: number; readonly because: string }
  /** The delivery had ended before this step, or was canceled. */
  | { readonly next: "ended"; readonly status: "DELIVERED" | "FAILED" | "CANCELED" }

/** Input of a drain: its webhook, and how many of its steps in a row found the endpoint failing or no free slot. */
export interface DrainInput {
  readonly webhookId: string
  readonly organizationId: string
  readonly waitsMs: ReadonlyArray<number>
  readonly failures: number
}

/** The result of a step of a drain. */
export type DrainOutcome =
  /** Nothing can be sent: the workflow ends, and is started again when needed. */
  | { readonly next: "ended"; readonly details: string }
  /** Another step after the wait. */
  | { readonly next: "wait"; readonly waitMs: number; readonly failures: number; readonly details: string }

/** Input of a recovery: its workflow's id is the recovery's. */
export interface RecoverInput {
  readonly recoveryId: string
}

/** A step of a recovery; `waits` counts idle steps in a row, `cancel` ends it. */
export interface RecoverStep {
  readonly recoveryId: string
  readonly waits: number
  readonly cancel: boolean
}

/** The result of a step of a recovery: its state and when to continue; without a time it waits for a signal. */
export type RecoverOutcome =
  | { readonly next: "ended"; readonly details: string }
  | { readonly next: "wait"; readonly waitMs: number | null; readonly idle: boolean; readonly details: string }

/** Input of a ping. */
export interface PingInput {
  readonly webhookId: string
  readonly eventId: string
  /** The kind of the sample event to send; without it, the event is a `webhook.ping`. */
  readonly eventKind?: string
}

/** The result of a ping; the complete result is in the database, because it contains the endpoint's response. */
export interface PingOutcome {
  readonly result: string
}

/** Input of a notice. */
export interface NotifyInput {
  readonly noticeId: string
}

/** The result of retention. */
export interface Retained {
  readonly partitionsDropped: number
  readonly rowsRemoved: number
}

/** Input of sealing: the vault to continue after. */
export interface SealInput {
  readonly after: string
}

/** The result of a part of sealing. */
export interface SealOutcome {
  readonly sealed: number
  readonly revised: number
  readonly failed: number
  /** The vault to continue after; null if every vault was checked. */
  readonly after: string | null
}

/** The result of a look for API keys that expire soon. `failed` keys are retried by the next one. */
export interface AnnouncedKeys {
  readonly announced: number
  readonly failed: number
}

/** The activities of the worker, by name. */
export interface Activities {
  /** Makes the first attempts of a claim, and returns after a second at the latest what became of each delivery. */
  firstAttempts(input: FirstAttemptsInput): Promise<Readonly<Record<string, AttemptOutcome>>>
  /** Makes a later attempt of a delivery. */
  attempt(input: AttemptInput): Promise<AttemptOutcome>
  /** Probes the endpoint of a webhook with a queue if that is due, or sends a part of the queue. */
  drain(input: DrainInput): Promise<DrainOutcome>
  ping(input: PingInput): Promise<PingOutcome>
  /** Creates a part of a recovery's deliveries, or checks whether all have ended. */
  recover(input: RecoverStep): Promise<RecoverOutcome>
  sendNotice(input: NotifyInput): Promise<{ readonly channel: string }>
  retain(): Promise<Retained>
  sealStatements(input: SealInput): Promise<SealOutcome>
  announceExpiringKeys(): Promise<AnnouncedKeys>
  /** Requests the cancellation of its own workflow, so that a canceled delivery ends as Canceled. */
  cancelSelf(): Promise<void>
}

/** Failure type of a delivery whose schedule is used up. */
export const EXHAUSTED = "EXHAUSTED"
