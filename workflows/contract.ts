/**
 * What the deterministic side and the rest of the program agree on: names, ids, inputs, results, search keys. Inputs
 * and results hold ids, numbers and results only: a history can be read by anyone who may open the Temporal UI, so no
 * payload, URL or secret ever enters one. Architecture, What must hold 2.
 */
import { defineSearchAttributeKey } from "@temporalio/common"

/** Search attributes by which operators find workflows. */
export const searchKeys = {
  webhookId: defineSearchAttributeKey("WebhookId", "KEYWORD"),
  eventId: defineSearchAttributeKey("EventId", "KEYWORD"),
  eventKind: defineSearchAttributeKey("EventKind", "KEYWORD"),
  entityId: defineSearchAttributeKey("EntityId", "KEYWORD"),
  deliveryStatus: defineSearchAttributeKey("DeliveryStatus", "KEYWORD")
} as const

/** Names of the workflow functions. */
export const workflows = { deliver: "deliver", ping: "ping", notify: "notify", retain: "retain" } as const

/** Names of the signals that a delivery takes, from operators and from the service itself. */
export const signals = { retryNow: "retryNow", cancel: "cancel", wake: "wake" } as const

/** Task queue on which notices are sent, apart from everything else: a mail server that hangs holds nothing up but mail. */
export const noticeQueueOf = (taskQueue: string): string => `${taskQueue}-notices`

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
    }
  /** The endpoint has as many attempts in flight as it may: no attempt was made, and none is used up. */
  | { readonly next: "busy"; readonly waitMs: number }
  /** The endpoint may take long: run the step on the slow queue. */
  | { readonly next: "elsewhere" }

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

/** The activities of the worker, by name. */
export interface Activities {
  attempt(input: AttemptInput): Promise<AttemptOutcome>
  ping(input: PingInput): Promise<PingOutcome>
  sendNotice(input: NotifyInput): Promise<{ readonly channel: string }>
  retain(): Promise<Retained>
  /** Asks the server to cancel the workflow that runs it, so that a canceled delivery ends as Canceled. */
  cancelSelf(): Promise<void>
}

/** Type of the failure by which a delivery ends whose schedule is used up. */
export const EXHAUSTED = "EXHAUSTED"
