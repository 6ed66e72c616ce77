/**
 * What the deterministic side and the rest of the program agree on: names, ids, inputs, results, search keys. Inputs
 * and results hold ids, numbers and results only: a history can be read by anyone who may open the Temporal UI, so no
 * payload, URL or secret ever enters one. Architecture, What must hold 2. Decision D-35.
 */
import { defineSearchAttributeKey } from "@temporalio/common"

/** Search attributes by which operators find workflows. */
export const searchKeys = {
  webhookId: defineSearchAttributeKey("WebhookId", "KEYWORD"),
  eventId: defineSearchAttributeKey("EventId", "KEYWORD"),
  eventKind: defineSearchAttributeKey("EventKind", "KEYWORD"),
  entityId: defineSearchAttributeKey("EntityId", "KEYWORD"),
  deliveryStatus: defineSearchAttributeKey("DeliveryStatus", "KEYWORD"),
  /** Of a group of first attempts: everything that it holds. */
  deliveryIds: defineSearchAttributeKey("DeliveryIds", "KEYWORD_LIST"),
  webhookIds: defineSearchAttributeKey("WebhookIds", "KEYWORD_LIST"),
  eventIds: defineSearchAttributeKey("EventIds", "KEYWORD_LIST")
} as const

/** Names of the workflow functions. */
export const workflows = {
  deliver: "deliver",
  firstAttempts: "firstAttempts",
  ping: "ping",
  notify: "notify",
  retain: "retain",
  sealStatements: "sealStatements",
  hold: "hold",
  recover: "recover"
} as const

/** Names of the signals that a delivery takes, from operators and from the service itself. */
export const signals = { retryNow: "retryNow", cancel: "cancel", wake: "wake" } as const

/** Task queue on which notices are sent, apart from everything else: a mail server that hangs holds nothing up but mail. */
export const noticeQueueOf = (taskQueue: string): string => `${taskQueue}-notices`

/** Task queue on which pings are sent, apart from everything else. */
export const pingQueueOf = (taskQueue: string): string => `${taskQueue}-pings`

/**
 * Task queue of the deliveries whose senders keep dying: a worker takes one of them at a time, so that none takes the
 * attempts of other deliveries with it more often than it must.
 */
export const quarantineQueueOf = (taskQueue: string): string => `${taskQueue}-quarantine`

/** Task queue on which held endpoints are probed and what was held is sent, apart from everything else. */
export const holdQueueOf = (taskQueue: string): string => `${taskQueue}-holds`

/** Task queue on which recoveries create their deliveries, apart from everything else. */
export const recoveryQueueOf = (taskQueue: string): string => `${taskQueue}-recoveries`

/** Workflow id of a webhook's hold. */
export const holdIdOf = (webhookId: string): string => `hold/${webhookId}`

/** Input of a delivery. */
export interface DeliverInput {
  readonly deliveryId: string
  readonly webhookId: string
  /** Wait before each attempt in ms; a running delivery keeps the schedule that it started with. */
  readonly waitsMs: ReadonlyArray<number>
  /** Task queue of first attempts that may take long. */
  readonly slowQueue: string
  /** Task queue of retries, apart from the former, so that no first attempt ever waits behind one. */
  readonly retryQueue: string
  /** Whether the namespace has the search attributes; without them a delivery runs all the same, harder to find. */
  readonly indexed: boolean
  /**
   * Task queue of the one process in which the first attempt is under way already, begun by a group: the first step joins
   * it there. Absent where there is none.
   */
  readonly hostQueue?: string
  /** Whether the last search attribute is left out at the end, because the execution's status says the same; default false. */
  readonly statusAtEnd?: "execution"
}

/** Input of a group of first attempts. */
export interface FirstAttemptsInput {
  readonly deliveries: ReadonlyArray<{ readonly deliveryId: string; readonly webhookId: string }>
  /** Wait before each attempt in ms, as for a delivery. */
  readonly waitsMs: ReadonlyArray<number>
}

/** What came of a group: the result of each delivery that is done, and that the others go on as workflows of their own. */
export interface FirstAttemptsOutcome {
  /** By delivery: `2xx`, `goes on` in the workflow whose id is the delivery's, or `held`. */
  readonly deliveries: Readonly<Record<string, "2xx" | "goes on" | "held">>
  readonly notices: ReadonlyArray<string>
}

/** One step of a delivery: at most one attempt. */
export interface AttemptInput {
  readonly deliveryId: string
  readonly webhookId: string
  readonly waitsMs: ReadonlyArray<number>
  /**
   * The last attempt whose wait is over, 0 at the beginning. A step that finds a later one recorded is one that is run
   * again, or belongs to a workflow that was started again, and waits until the attempt is due.
   */
  readonly after: number
  /** From 0 to 1, from the workflow's own random: spreads the wait by ±20 %. */
  readonly jitter: number
  /** Whether the step runs inside a workflow task, where it must not take long. */
  readonly local: boolean
  /** Whether the workflow was asked to cancel: what still waits is then canceled instead of attempted. */
  readonly cancel: boolean
  /** Whether the step runs on the queue where a delivery is tried alone; default false. */
  readonly alone?: boolean
  /** Whether the asker knows of deliveries that are held; default false. */
  readonly holds?: boolean
  /** Of a delivery that is held and whose turn it is: whether it probes an endpoint that is down. Absent for every other one. */
  readonly held?: "probe" | "drain"
}

/** What came of a step. */
export type AttemptOutcome =
  /** A 2xx. */
  | { readonly next: "delivered"; readonly number: number; readonly result: string }
  /** The schedule is used up. */
  | { readonly next: "failed"; readonly number: number; readonly result: string; readonly notices: ReadonlyArray<string> }
  /** The delivery was canceled, or ended otherwise, before this step. */
  | { readonly next: "ended"; readonly status: "DELIVERED" | "FAILED" | "CANCELED"; readonly notices: ReadonlyArray<string> }
  /** Another attempt after the wait; `number` and `result` are the last attempt's. */
  | {
      readonly next: "wait"
      readonly number: number
      readonly result: string
      readonly waitMs: number
      readonly notices: ReadonlyArray<string>
      /** Whether the next attempt is to be made alone; default false. */
      readonly alone?: boolean
    }
  /** The endpoint has as many attempts in flight as it may: no attempt was made, and none is used up. */
  | { readonly next: "busy"; readonly waitMs: number }
  /** The webhook is paused or its endpoint is down: the delivery waits without a timer until it is woken. */
  | { readonly next: "held"; readonly number: number; readonly notices: ReadonlyArray<string> }
  /** The endpoint may take long: run the step on the slow queue. */
  | { readonly next: "elsewhere" }

/** Input of a hold: the webhook, and the pace of what is being sent. */
export interface HoldInput {
  readonly webhookId: string
  /** Deliveries in flight at a time, and rounds in a row of which none succeeded. */
  readonly width: number
  readonly failures: number
}

/** What came of a step of a hold. */
export type HoldOutcome =
  /** Nothing is held any more, or nothing may be sent now: the workflow ends, and is started again when it may. */
  | { readonly next: "ended"; readonly details: string; readonly notices: ReadonlyArray<string> }
  /** Another step after the wait. */
  | {
      readonly next: "wait"
      readonly waitMs: number
      readonly width: number
      readonly failures: number
      readonly details: string
      readonly notices: ReadonlyArray<string>
    }

/** Input of a recovery: its workflow's id is the recovery's. */
export interface RecoverInput {
  readonly recoveryId: string
}

/** A step of a recovery; `waits` counts those in a row that had nothing to do, `cancel` ends it. */
export interface RecoverStep extends RecoverInput {
  readonly waits: number
  readonly cancel: boolean
}

/** What came of a step of a recovery: how it stands, and when to go on; without a time it waits for a signal. */
export type RecoverOutcome =
  | { readonly next: "ended"; readonly details: string }
  | { readonly next: "wait"; readonly waitMs: number | null; readonly idle: boolean; readonly details: string }

/** Input of a ping. */
export interface PingInput {
  readonly webhookId: string
  readonly eventId: string
}

/** What came of a ping; the whole result stands in the database, because it holds what the endpoint answered. */
export interface PingOutcome {
  readonly result: string
}

/** Input of a notice. */
export interface NotifyInput {
  readonly noticeId: string
}

/** What retention did. */
export interface Retained {
  readonly partitionsDropped: number
  readonly rowsRemoved: number
}

/** Where sealing goes on: after this vault. */
export interface SealInput {
  readonly after: string
}

/** What a part of sealing did. */
export interface SealOutcome {
  readonly sealed: number
  readonly revised: number
  readonly failed: number
  /** The vault to go on after; null when every vault was looked at. */
  readonly after: string | null
}

/** The activities of the worker, by name. */
export interface Activities {
  attempt(input: AttemptInput): Promise<AttemptOutcome>
  /** Makes first attempts at once, and starts the workflow of each delivery that is not done. */
  firstAttempts(input: FirstAttemptsInput): Promise<FirstAttemptsOutcome>
  ping(input: PingInput): Promise<PingOutcome>
  /** Probes a held webhook when that is due, or sends a part of what was held. */
  hold(input: HoldInput): Promise<HoldOutcome>
  /** Creates a part of a recovery's deliveries and makes their first attempts, or looks whether all of them ended. */
  recover(input: RecoverStep): Promise<RecoverOutcome>
  sendNotice(input: NotifyInput): Promise<{ readonly channel: string }>
  retain(): Promise<Retained>
  sealStatements(input: SealInput): Promise<SealOutcome>
  /** Asks the server to cancel the workflow that runs it, so that a canceled delivery ends as Canceled. */
  cancelSelf(): Promise<void>
}

/** Type of the failure by which a delivery ends whose schedule is used up. */
export const EXHAUSTED = "EXHAUSTED"
