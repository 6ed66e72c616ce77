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
  /** The organization that a workflow works for. A group of first attempts names several in `webhookIds`. */
  organizationId: defineSearchAttributeKey("OrganizationId", "KEYWORD"),
  entityId: defineSearchAttributeKey("EntityId", "KEYWORD"),
  deliveryStatus: defineSearchAttributeKey("DeliveryStatus", "KEYWORD"),
  /**
   * For a group of first attempts: all of its members. Postgres and SQLite have room for three lists of a namespace, so a
   * group has its organization ids among `WebhookIds`. Decision D-55.
   */
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

/** Names of a delivery's signals, from operators and from the service. */
export const signals = { retryNow: "retryNow", cancel: "cancel", wake: "wake" } as const

/** Task queue of notices, separate so that a mail server that hangs only delays mail. */
export const noticeQueueOf = (taskQueue: string): string => `${taskQueue}-notices`

/** Task queue of pings. */
export const pingQueueOf = (taskQueue: string): string => `${taskQueue}-pings`

/**
 * Task queue of deliveries in quarantine: a worker runs one at a time, so that a crash interrupts as few other attempts
 * as possible.
 */
export const quarantineQueueOf = (taskQueue: string): string => `${taskQueue}-quarantine`

/** Task queue of holds, which probe endpoints and send held deliveries. */
export const holdQueueOf = (taskQueue: string): string => `${taskQueue}-holds`

/** Task queue of recoveries. */
export const recoveryQueueOf = (taskQueue: string): string => `${taskQueue}-recoveries`

/** A step of a hold or of a recovery: it runs as long as there is work, and another worker takes it over when it dies. */
export const stepOptions = {
  startToCloseTimeout: "6 hours",
  heartbeatTimeout: "4 seconds",
  retry: { initialInterval: "500 milliseconds", backoffCoefficient: 2, maximumInterval: "15 seconds" }
} as const

/** Workflow id of a webhook's hold. */
export const holdIdOf = (webhookId: string): string => `hold/${webhookId}`

/**
 * The organization of a workflow, with which its notices and continued runs carry the search attribute. Absent in older
 * histories, and while the namespace lacks the attributes. Decision D-55.
 */
export interface OfOrganization {
  readonly organizationId?: string
}

/** Input of a delivery. */
export interface DeliverInput extends OfOrganization {
  readonly deliveryId: string
  readonly webhookId: string
  /** Wait before each attempt in ms; a running delivery keeps its initial schedule. */
  readonly waitsMs: ReadonlyArray<number>
  /** Task queue of first attempts at slow or unknown endpoints. */
  readonly slowQueue: string
  /** Task queue of retries, separate so that no first attempt waits behind one. */
  readonly retryQueue: string
  /** Whether the namespace has the search attributes; without them a delivery works but is harder to find. */
  readonly indexed: boolean
  /**
   * Task queue of the process in which the first attempt, begun by a group, is in flight: the first step joins it there.
   * Absent if there is none.
   */
  readonly hostQueue?: string
  /** If set, the final `DeliveryStatus` is not written, because the workflow's own status shows it. */
  readonly statusAtEnd?: "execution"
}

/** Input of a group of first attempts. */
export interface FirstAttemptsInput {
  readonly deliveries: ReadonlyArray<{ readonly deliveryId: string; readonly webhookId: string } & OfOrganization>
  /** Wait before each attempt in ms, as for a delivery. */
  readonly waitsMs: ReadonlyArray<number>
}

/** The result of a group: the result of each delivery; all others continue in their own workflows. */
export interface FirstAttemptsOutcome {
  /** By delivery: `2xx`, `goes on` if it continues in the workflow with the delivery's id, or `held`. */
  readonly deliveries: Readonly<Record<string, "2xx" | "goes on" | "held">>
  readonly notices: ReadonlyArray<string>
  /** By notice, the organization, if the input names it. */
  readonly organizations?: Readonly<Record<string, string>>
}

/** One step of a delivery: at most one attempt. */
export interface AttemptInput {
  readonly deliveryId: string
  readonly webhookId: string
  readonly waitsMs: ReadonlyArray<number>
  /**
   * The last attempt whose wait is over, 0 at the beginning. If a later one is recorded, the step is a repetition or
   * belongs to a restarted workflow, and waits until the attempt is due.
   */
  readonly after: number
  /** From 0 to 1, from the workflow's random generator: jitter of ±20 %. */
  readonly jitter: number
  /** Whether the step runs inside a workflow task, where it must be short. */
  readonly local: boolean
  /** Whether the workflow was asked to cancel: a waiting delivery is then canceled instead of attempted. */
  readonly cancel: boolean
  /** Whether the step runs on the quarantine queue; default false. */
  readonly alone?: boolean
  /** Whether the workflow supports held deliveries; default false. */
  readonly holds?: boolean
  /** For a held delivery whose turn it is: whether it probes an endpoint that is down. Absent otherwise. */
  readonly held?: "probe" | "drain"
}

/** The result of a step. */
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
      /** Whether the next attempt runs in quarantine; default false. */
      readonly alone?: boolean
    }
  /** The endpoint has its maximum of attempts in flight: none was made, and none is used up. */
  | { readonly next: "busy"; readonly waitMs: number }
  /** The webhook is paused, or its endpoint is down or cannot keep up: the delivery waits without a timer until it is woken. */
  | { readonly next: "held"; readonly number: number; readonly notices: ReadonlyArray<string> }
  /** The endpoint may be slow: run the step on the slow queue. */
  | { readonly next: "elsewhere" }

/** Input of a hold: the webhook, and the pace of draining. */
export interface HoldInput extends OfOrganization {
  readonly webhookId: string
  /** Deliveries in flight, and failed rounds in a row. */
  readonly width: number
  readonly failures: number
}

/** The result of a step of a hold. */
export type HoldOutcome =
  /** Nothing is held, or nothing may be sent now: the workflow ends, and is started again when needed. */
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
export interface RecoverInput extends OfOrganization {
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
export interface PingInput extends OfOrganization {
  readonly webhookId: string
  readonly eventId: string
}

/** The result of a ping; the complete result is in the database, because it contains the endpoint's response. */
export interface PingOutcome {
  readonly result: string
}

/** Input of a notice. */
export interface NotifyInput extends OfOrganization {
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

/** The activities of the worker, by name. */
export interface Activities {
  attempt(input: AttemptInput): Promise<AttemptOutcome>
  /** Makes first attempts concurrently, and starts the workflow of each delivery that is not done. */
  firstAttempts(input: FirstAttemptsInput): Promise<FirstAttemptsOutcome>
  ping(input: PingInput): Promise<PingOutcome>
  /** Probes a held webhook if that is due, or sends a part of its held deliveries. */
  hold(input: HoldInput): Promise<HoldOutcome>
  /** Creates a part of a recovery's deliveries and makes their first attempts, or checks whether all have ended. */
  recover(input: RecoverStep): Promise<RecoverOutcome>
  sendNotice(input: NotifyInput): Promise<{ readonly channel: string }>
  retain(): Promise<Retained>
  sealStatements(input: SealInput): Promise<SealOutcome>
  /** Requests the cancellation of its own workflow, so that a canceled delivery ends as Canceled. */
  cancelSelf(): Promise<void>
}

/** Failure type of a delivery whose schedule is used up. */
export const EXHAUSTED = "EXHAUSTED"
