/**
 * One delivery, from its first attempt to its end: DELIVERED ends Completed, FAILED ends Failed, CANCELED ends
 * Canceled. Waits are durable. The first attempt runs inside the workflow task, which is what makes a healthy
 * endpoint cheap; everything that may take long runs on the retry queue.
 * Spec: Delivery contract. Decisions D-20, D-22.
 */
import {
  ApplicationFailure,
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  ParentClosePolicy,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  startChild,
  upsertSearchAttributes,
  WorkflowIdReusePolicy
} from "@temporalio/workflow"
import { type Activities, type AttemptOutcome, type DeliverInput, EXHAUSTED, searchKeys, signals, workflows } from "./contract.ts"

const retry = { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "15 seconds" } as const

// An attempt ends by itself within seconds; the timeouts leave it time to write its outcome while Postgres is away.
const local = proxyLocalActivities<Activities>({ startToCloseTimeout: "2 minutes", localRetryThreshold: "10 seconds", retry })

export const retryNow = defineSignal(signals.retryNow)

/** What the Temporal UI shows of a running delivery. */
const describe = (outcome: AttemptOutcome, of: number): string =>
  outcome.next === "wait"
    ? `attempt ${outcome.number} of ${of}: ${outcome.result}; next in ${Math.round(outcome.waitMs / 1000)} s`
    : outcome.next === "busy"
      ? `waits ${Math.round(outcome.waitMs / 100) / 10} s for room at the endpoint`
      : outcome.next === "delivered" || outcome.next === "failed"
        ? `attempt ${outcome.number} of ${of}: ${outcome.result}`
        : outcome.next

export async function deliver({ deliveryId, retryQueue, waitsMs, webhookId }: DeliverInput): Promise<{ attempts: number; result: string }> {
  const queued = proxyActivities<Activities>({
    taskQueue: retryQueue,
    startToCloseTimeout: "5 minutes",
    heartbeatTimeout: "4 seconds",
    retry
  })
  let hurry = false
  let cancel = false
  let status = "PENDING"
  setHandler(retryNow, () => {
    hurry = true
  })

  const become = (next: string) => {
    if (next === status) return
    status = next
    upsertSearchAttributes([{ key: searchKeys.deliveryStatus, value: next }])
  }

  /** Waits, unless somebody asks for the next attempt now. A cancellation ends the wait; the next step then reads what became of the delivery. */
  const pause = async (waitMs: number) => {
    hurry = false
    try {
      if (waitMs > 0) await condition(() => hurry, waitMs)
    } catch (error) {
      if (!isCancellation(error)) throw error
      cancel = true
    }
  }

  /** Notices are workflows of their own: they outlive this one, and each is sent once. */
  const announce = async (notices: ReadonlyArray<string>) => {
    for (const noticeId of notices) {
      await startChild(workflows.notify, {
        workflowId: noticeId,
        args: [{ noticeId }],
        parentClosePolicy: ParentClosePolicy.ABANDON,
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE
      }).catch(() => {
        // It is under way already, or the sweeper starts it: the notice stands in the database.
      })
    }
  }

  const [firstWait = 0] = waitsMs
  let first = true
  await pause(firstWait)
  for (;;) {
    const input = { deliveryId, webhookId, waitsMs, jitter: Math.random(), cancel }
    // An attempt that has begun is finished and recorded, whatever is asked meanwhile.
    let outcome = await CancellationScope.nonCancellable(() =>
      first ? local.attempt({ ...input, local: true }) : queued.attempt({ ...input, local: false })
    )
    if (outcome.next === "elsewhere") {
      outcome = await CancellationScope.nonCancellable(() => queued.attempt({ ...input, local: false }))
    }
    setCurrentDetails(describe(outcome, waitsMs.length))
    if ("notices" in outcome && outcome.notices.length > 0)
      await CancellationScope.nonCancellable(() => announce("notices" in outcome ? outcome.notices : []))

    if (outcome.next === "delivered") {
      become("DELIVERED")
      return { attempts: outcome.number, result: outcome.result }
    }
    if (outcome.next === "failed" || (outcome.next === "ended" && outcome.status === "FAILED")) {
      become("FAILED")
      throw ApplicationFailure.nonRetryable("the schedule is used up", EXHAUSTED)
    }
    if (outcome.next === "ended" && outcome.status === "DELIVERED") {
      become("DELIVERED")
      return { attempts: 0, result: "2xx" }
    }
    if (outcome.next === "ended") {
      become("CANCELED")
      // Only a workflow that was asked to cancel can end as Canceled.
      await local.cancelSelf()
      await condition(() => false)
      continue
    }
    if (outcome.next === "wait") {
      first = false
      become("RETRYING")
    }
    if (outcome.next === "busy" || outcome.next === "wait") await pause(outcome.waitMs)
  }
}
