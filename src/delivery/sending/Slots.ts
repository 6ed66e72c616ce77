/**
 * Slots of attempts in flight in this process. A webhook has a limited number, so that no endpoint takes the capacity of
 * others, and an organization a third as many as are free, so that no tenant does: one alone a quarter of all, four together
 * hardly more than half, and somebody else always finds some. For webhooks that have none it is half as many as are free, so that
 * those of an organization that have many leave some to the others. An attempt that finds no slot waits for one for a second, and
 * its delivery then joins its webhook's queue. Decision D-52.
 */
import { Effect } from "effect"
import { WorkerProcess } from "./WorkerProcess.ts"

/** Attempts in flight in a process. */
export const SLOTS = 1_000

/** An attempt that asks for a slot. */
interface Asking {
  readonly webhookId: string
  readonly organizationId: string
}

interface Waiting extends Asking {
  readonly enter: () => void
}

/** Frees a slot. */
export type Release = () => void

export class Slots {
  readonly #webhooks = new Map<string, number>()
  readonly #organizations = new Map<string, number>()
  readonly #waiting = new Set<Waiting>()
  readonly #share: () => number
  #all = 0

  /** `share` is how many attempts of one webhook may be in flight in this process now. */
  constructor(share: () => number) {
    this.#share = share
  }

  /** Attempts of a webhook in flight in this process. */
  of(webhookId: string): number {
    return this.#webhooks.get(webhookId) ?? 0
  }

  /** Whether the process and the organization have a slot, whatever the limit of the webhook. */
  hasSlot({ organizationId, webhookId }: Asking): boolean {
    return (this.#organizations.get(organizationId) ?? 0) < (SLOTS - this.#all) / (this.of(webhookId) === 0 ? 2 : 3)
  }

  #take(asking: Asking): Release {
    const add = (counts: Map<string, number>, key: string, more: number) => {
      const now = (counts.get(key) ?? 0) + more
      if (now === 0) counts.delete(key)
      else counts.set(key, now)
    }
    const change = (more: number) => {
      this.#all += more
      add(this.#webhooks, asking.webhookId, more)
      add(this.#organizations, asking.organizationId, more)
    }
    change(1)
    let taken = true
    return () => {
      if (!taken) return
      taken = false
      change(-1)
      this.#letIn()
    }
  }

  #fits(asking: Asking, share = this.#share()): boolean {
    return this.of(asking.webhookId) < share && this.hasSlot(asking)
  }

  /** Lets in those that wait and fit now, in the order in which they came. */
  #letIn(): void {
    if (this.#waiting.size === 0) return
    const share = this.#share()
    for (const waiting of this.#waiting) if (this.#fits(waiting, share)) waiting.enter()
  }

  /** A slot of the process for an attempt of a drain, which keeps the webhook's limit itself; undefined if there is none. */
  takeNow(asking: Asking): Release | undefined {
    return this.hasSlot(asking) ? this.#take(asking) : undefined
  }

  /**
   * A slot for an attempt, for which it waits until a time on the clock of `performance.now`; undefined if there is none.
   * `waits` is called if it has to wait.
   */
  take(asking: Asking, until: number, waits?: () => void): Effect.Effect<Release | undefined> {
    return Effect.async((resume) => {
      if (this.#fits(asking)) return resume(Effect.succeed(this.#take(asking)))
      // Nothing to wait for.
      if (this.#share() === 0) return resume(Effect.succeed(undefined))
      let release: Release | undefined
      const stop = () => {
        clearTimeout(timer)
        this.#waiting.delete(waiting)
      }
      const waiting: Waiting = {
        ...asking,
        enter: () => {
          stop()
          release = this.#take(asking)
          resume(Effect.succeed(release))
        }
      }
      const timer = setTimeout(
        () => {
          stop()
          resume(Effect.succeed(undefined))
        },
        Math.max(0, until - performance.now())
      )
      this.#waiting.add(waiting)
      waits?.()
      return Effect.sync(() => {
        stop()
        // It was let in and interrupted at once.
        release?.()
      })
    })
  }
}

/** The slots of this process, of which every sender takes. */
export class WorkerSlots extends Effect.Service<WorkerSlots>()("custody/WorkerSlots", {
  effect: Effect.map(WorkerProcess, ({ share }) => new Slots(share))
}) {
  static readonly layer = this.Default
}
